//! What a data-reduction probe has told of a target.

use fathom_core::facts;
use fathom_core::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a probe of writes has told of what a target makes of data of which something can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reduction {
    /// How often each kind of data was written, in turns by chance.
    pub passes: u32,
    /// Whether the target compresses.
    pub compresses: Answer,
    /// Whether it deduplicates.
    pub deduplicates: Answer,
    /// Whether it leaves out zeros, by more than it saves on other data.
    pub skips_zeros: Answer,
    /// Unique blocks of which a compressor saves three quarters, against unique data.
    pub compressible: Saving,
    /// The same few blocks over and over, against unique data.
    pub repeated: Saving,
    /// Zeros against unique data.
    pub zeros: Saving,
    /// Zeros against the repeated blocks.
    pub zeros_to_repeated: Saving,
}

/// What is known of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is there.
    Yes,
    /// It is not, or too small to matter.
    No,
    /// It could not be told.
    Unknown,
}

/// How one kind of data compares with another, all else alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saving {
    /// How many times as fast it was written.
    pub speed: Option<Ratio>,
    /// What of it reached the devices below, of what did of the other; none where nobody counts that.
    pub reached: Option<Ratio>,
}

/// A ratio with the ends of its 95 % interval, all of a probe known at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// What was measured.
    pub value: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
}

impl From<&facts::Reduction> for Reduction {
    fn from(known: &facts::Reduction) -> Self {
        Self {
            passes: known.passes,
            compresses: Answer::from(known.compresses()),
            deduplicates: Answer::from(known.deduplicates()),
            skips_zeros: Answer::from(known.skips_zeros()),
            compressible: Saving::from(known.compressible),
            repeated: Saving::from(known.repeated),
            zeros: Saving::from(known.zeros),
            zeros_to_repeated: Saving::from(known.zeros_to_repeated),
        }
    }
}

impl Reduction {
    /// The same as the verdict knows it.
    pub fn to_core(&self) -> facts::Reduction {
        facts::Reduction {
            passes: self.passes,
            compressible: self.compressible.to_core(),
            repeated: self.repeated.to_core(),
            zeros: self.zeros.to_core(),
            zeros_to_repeated: self.zeros_to_repeated.to_core(),
        }
    }
}

impl From<facts::Answer> for Answer {
    fn from(answer: facts::Answer) -> Self {
        match answer {
            facts::Answer::Yes => Self::Yes,
            facts::Answer::No => Self::No,
            facts::Answer::Unknown => Self::Unknown,
        }
    }
}

impl From<facts::Saving> for Saving {
    fn from(saving: facts::Saving) -> Self {
        let ratio = |one: stats::Ratio| Ratio { value: one.value, low: one.low, high: one.high };
        Self { speed: saving.speed.map(ratio), reached: saving.reached.map(ratio) }
    }
}

impl Saving {
    fn to_core(self) -> facts::Saving {
        let ratio = |one: Ratio| stats::Ratio { value: one.value, low: one.low, high: one.high };
        facts::Saving { speed: self.speed.map(ratio), reached: self.reached.map(ratio) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_as_it_was() {
        let ratio = |value: f64| Some(stats::Ratio { value, low: value / 2.0, high: value * 1.5 });
        let saving = |value| facts::Saving { speed: ratio(value), reached: None };
        let known = facts::Reduction {
            passes: 6,
            compressible: saving(2.0),
            repeated: saving(3.0),
            zeros: facts::Saving { speed: None, reached: ratio(0.5) },
            zeros_to_repeated: saving(5.0),
        };
        assert_eq!(Reduction::from(&known).to_core(), known);
    }
}
