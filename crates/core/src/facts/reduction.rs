//! How a target treats data of which something can be saved, as found by a probe with writes. A
//! target that compresses, deduplicates or leaves out zeros moves less data than requested, and its
//! figures are then not those of unique data.
//!
//! Two signs show it: less of such data reaches the devices, if the kernel counts that, or it is
//! written faster. Either sign is enough.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::differences::{ends_of_share, ends_of_times};
use crate::figures::{percent, ratio};
use crate::spec::Payload;
use crate::stats::Ratio;

/// This factor is large if data is faster by it on average, at the lower end of its interval, or if
/// fewer bytes reach the devices by it, at the upper end.
pub const MUCH: f64 = 1.2;

/// How certain an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The effect is there.
    Yes,
    /// The effect is not there, or too small to matter.
    No,
    /// It cannot be told.
    Unknown,
}

impl Answer {
    /// Whether a ratio is much above 1, by both ends of its interval.
    pub fn is_much(ratio: Option<Ratio>) -> Self {
        match ratio {
            Some(ratio) if MUCH < ratio.low => Self::Yes,
            Some(ratio) if ratio.high <= MUCH => Self::No,
            _ => Self::Unknown,
        }
    }
}

/// The comparison of one kind of data with another, all else being equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saving {
    /// How many times as fast it was written.
    pub speed: Option<Ratio>,
    /// The bytes that reached the devices below, divided by those of the other kind; none if they
    /// are not counted. If a device reports all that it needs for its data, this is all there is to
    /// know, and there is no speed.
    pub reached: Option<Ratio>,
}

impl Saving {
    /// Whether the target saves on it.
    pub fn answer(self) -> Answer {
        let by_bytes = Answer::is_much(self.reached.map(Ratio::inverse));
        match self.speed {
            // The layers below the last device that counts may still save.
            Some(_) if by_bytes != Answer::Yes => Answer::is_much(self.speed),
            _ => by_bytes,
        }
    }

    /// "took 25 % (24 to 26 %) of the bytes that unique data takes", "was written 2.00 times as
    /// fast as unique data (1.90 to 2.10)": the figure that shows more of it.
    fn in_words(self, was: &str) -> String {
        let by_bytes = Answer::is_much(self.reached.map(Ratio::inverse)) == Answer::Yes;
        match (self.reached.filter(|_| by_bytes || self.speed.is_none()), self.speed) {
            (Some(Ratio { value, low, high }), _) => {
                let ends = ends_of_share(value, [low, high]);
                format!("took {}{ends} of the bytes that unique data takes", percent(value))
            }
            (None, Some(speed)) => {
                let (value, ends) = (ratio(speed.value), ends_of_times(speed));
                format!("{was} written {value} times as fast as unique data{ends}")
            }
            (None, None) => format!("{was} not written often enough to compare"),
        }
    }
}

/// The result of a probe of a target with writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Written")]
#[schemars(with = "Written")]
pub struct Reduction {
    /// How often each kind of data was written, in random alternation.
    pub passes: u32,
    /// Unique blocks of which a compressor saves three quarters, against unique data.
    pub compressible: Saving,
    /// The same few blocks over and over, of which no compressor saves anything, against unique data.
    pub repeated: Saving,
    /// Zeros against unique data.
    pub zeros: Saving,
    /// Zeros against the repeated blocks.
    pub zeros_to_repeated: Saving,
}

/// The same as the result file has it: with the answers in addition.
#[derive(Serialize, JsonSchema)]
struct Written {
    /// How often each kind of data was written, in random alternation.
    passes: u32,
    /// Whether the target compresses.
    compresses: Answer,
    /// Whether it deduplicates.
    deduplicates: Answer,
    /// Whether it leaves out zeros, by more than it saves on other data.
    skips_zeros: Answer,
    /// Unique blocks of which a compressor saves three quarters, against unique data.
    compressible: Saving,
    /// The same few blocks over and over, against unique data.
    repeated: Saving,
    /// Zeros against unique data.
    zeros: Saving,
    /// Zeros against the repeated blocks.
    zeros_to_repeated: Saving,
}

impl From<Reduction> for Written {
    fn from(known: Reduction) -> Self {
        let Reduction { passes, compressible, repeated, zeros, zeros_to_repeated } = known;
        let (compresses, deduplicates) = (known.compresses(), known.deduplicates());
        let skips_zeros = known.skips_zeros();
        Self {
            passes,
            compresses,
            deduplicates,
            skips_zeros,
            compressible,
            repeated,
            zeros,
            zeros_to_repeated,
        }
    }
}

impl Reduction {
    /// Whether the target compresses.
    pub fn compresses(&self) -> Answer {
        self.compressible.answer()
    }

    /// Whether it deduplicates.
    pub fn deduplicates(&self) -> Answer {
        self.repeated.answer()
    }

    /// Whether the target leaves out zeros: whether it saves more on them than its treatment of
    /// other data explains.
    pub fn skips_zeros(&self) -> Answer {
        let beside = self.zeros_to_repeated.answer();
        match (self.zeros.answer(), self.deduplicates()) {
            (Answer::No, _) => Answer::No,
            // A compressor saves on zeros most.
            _ if self.compresses() == Answer::Yes => Answer::No,
            (Answer::Yes, _) if beside == Answer::Yes => Answer::Yes,
            (Answer::Yes, Answer::No) => Answer::Yes,
            (Answer::Yes, Answer::Yes) if beside == Answer::No => Answer::No,
            _ => Answer::Unknown,
        }
    }

    /// Whether it does any of that.
    pub fn reduces(&self) -> Answer {
        // A target that saves on zeros alone may not compress, but it saves.
        let all = [self.compressible, self.repeated, self.zeros].map(Saving::answer);
        if all.contains(&Answer::Yes) {
            return Answer::Yes;
        }
        if all.contains(&Answer::Unknown) { Answer::Unknown } else { Answer::No }
    }

    /// How much of the data of this payload the target saves, as far as is known: a share of one.
    /// Unknown if the probe could not tell for such data, and for a pool.
    pub fn saves(&self, payload: &Payload) -> Option<f64> {
        let whether = |answer: Answer| match answer {
            Answer::Yes => Some(1.0),
            Answer::No => Some(0.0),
            Answer::Unknown => None,
        };
        match payload {
            Payload::Zeros => whether(self.zeros.answer()),
            Payload::Pattern(_) => match (self.compresses(), self.deduplicates()) {
                (Answer::Yes, _) | (_, Answer::Yes) => Some(1.0),
                (Answer::No, Answer::No) => Some(0.0),
                _ => None,
            },
            Payload::Random { compressible, dedup } => {
                let of = |share: f64, answer| match share {
                    0.0 => Some(0.0),
                    share => whether(answer).map(|whether| share * whether),
                };
                let compressed = of(*compressible, self.compresses())?;
                let duplicate = of(*dedup, self.deduplicates())?;
                Some(1.0 - (1.0 - compressed) * (1.0 - duplicate))
            }
            Payload::Pool { .. } => None,
        }
    }

    /// The target's treatment of data, in a few words: "compresses", "deduplicates and skips
    /// zeros".
    pub fn deeds(&self) -> String {
        let mut deeds: Vec<&str> = Vec::new();
        for (answer, deed) in self.answers() {
            if answer == Answer::Yes {
                deeds.push(deed);
            }
        }
        match self.reduces() {
            Answer::Yes if deeds.is_empty() => "saves on zeros".to_owned(),
            Answer::Yes => deeds.join(" and "),
            Answer::No => "saves on none of them".to_owned(),
            Answer::Unknown => "not known to save on any of them".to_owned(),
        }
    }

    fn answers(&self) -> [(Answer, &'static str); 3] {
        [
            (self.compresses(), "compresses"),
            (self.deduplicates(), "deduplicates"),
            (self.skips_zeros(), "skips zeros"),
        ]
    }

    /// The evidence for a saving, with its figures: "zeros took 1 % (1 to 1 %) of the bytes that
    /// unique data takes". It is about the data on which the target saves most clearly.
    pub fn evidence(&self) -> Option<String> {
        let saved = |(_, _, saving): &&(&str, &str, Saving)| saving.answer() == Answer::Yes;
        let kinds = self.kinds();
        kinds
            .iter()
            .find(saved)
            .map(|(data, was, saving)| format!("{data} {}", saving.in_words(was)))
    }

    /// A kind of data that was compared with unique data: its name, its verb, and the result.
    fn kinds(&self) -> [(&'static str, &'static str, Saving); 3] {
        [
            ("data of which a compressor saves three quarters", "was", self.compressible),
            ("the same few blocks over and over", "were", self.repeated),
            ("zeros", "were", self.zeros),
        ]
    }

    /// The results, in one sentence each.
    pub fn sentences(&self) -> Vec<String> {
        if self.reduces() == Answer::No {
            let most = match (self.at_most() * 100.0 - 1e-9).ceil() {
                most if most < 1.0 => "nothing".to_owned(),
                most => format!("at most {most:.0} %"),
            };
            return Vec::from([format!(
                "It was not seen to compress, to deduplicate or to skip zeros: compressible data, \
                 repeated data and zeros gain {most} over unique data."
            )]);
        }
        let each = self.answers().into_iter().zip(self.kinds());
        let mut sentences: Vec<String> = each
            .filter_map(|((answer, deed), (data, was, saving))| {
                let by = saving.in_words(was);
                match answer {
                    Answer::Yes => Some(format!("It {deed}: {data} {by}.")),
                    Answer::Unknown => Some(format!("Whether it {deed} is unknown: {data} {by}.")),
                    Answer::No => None,
                }
            })
            .collect();
        if self.zeros.answer() == Answer::Yes && self.skips_zeros() != Answer::Yes {
            sentences.push(format!("It saves on zeros: they {}.", self.zeros.in_words("were")));
        }
        sentences
    }

    /// The results without their figures, in one sentence; none where it saves on data, which the doubts
    /// about each trial name.
    pub fn in_brief(&self) -> Option<String> {
        match self.reduces() {
            Answer::Yes => None,
            Answer::No => {
                Some("It was not seen to compress, deduplicate or skip zeros.".to_owned())
            }
            Answer::Unknown => {
                let unknown = self.answers().into_iter().filter(|(one, _)| *one == Answer::Unknown);
                let deeds: Vec<&str> = unknown.map(|(_, deed)| deed).collect();
                let list = match deeds.as_slice() {
                    [rest @ .., last] if !rest.is_empty() => {
                        format!("{} or {last}", rest.join(", "))
                    }
                    alone => alone.concat(),
                };
                Some(format!("Whether it {list} is unknown."))
            }
        }
    }

    /// By how much any data that could be saved may be faster than unique data, as a share.
    fn at_most(&self) -> f64 {
        let all = [self.compressible, self.repeated, self.zeros];
        let highest = all.iter().filter_map(|one| match (one.speed, one.reached) {
            (Some(speed), _) => Some(speed.high - 1.0),
            (None, reached) => Some(reached?.inverse().high - 1.0),
        });
        highest.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saving(speed: (f64, f64)) -> Saving {
        let (low, high) = speed;
        Saving { speed: Some(Ratio { value: (low * high).sqrt(), low, high }), reached: None }
    }

    const ALIKE: (f64, f64) = (0.95, 1.1);
    const MORE: (f64, f64) = (1.8, 2.2);
    const VAGUE: (f64, f64) = (0.7, 1.9);

    fn reduction(
        compressible: (f64, f64),
        repeated: (f64, f64),
        zeros: [(f64, f64); 2],
    ) -> Reduction {
        Reduction {
            passes: 6,
            compressible: saving(compressible),
            repeated: saving(repeated),
            zeros: saving(zeros[0]),
            zeros_to_repeated: saving(zeros[1]),
        }
    }

    #[test]
    fn each_kind_of_reduction_is_told_by_the_data_that_it_saves_on() {
        for (known, deeds, reduces) in [
            (reduction(ALIKE, ALIKE, [ALIKE, ALIKE]), "saves on none of them", Answer::No),
            // A compressor saves on zeros as well. That is not another kind of reduction.
            (reduction(MORE, ALIKE, [MORE, MORE]), "compresses", Answer::Yes),
            // For a deduplicating device zeros are one more block that repeats.
            (reduction(ALIKE, MORE, [MORE, ALIKE]), "deduplicates", Answer::Yes),
            (reduction(ALIKE, ALIKE, [MORE, MORE]), "skips zeros", Answer::Yes),
            (reduction(ALIKE, MORE, [MORE, MORE]), "deduplicates and skips zeros", Answer::Yes),
            (reduction(MORE, MORE, [MORE, ALIKE]), "compresses and deduplicates", Answer::Yes),
            (reduction(VAGUE, VAGUE, [MORE, VAGUE]), "saves on zeros", Answer::Yes),
            (
                reduction(ALIKE, VAGUE, [ALIKE, VAGUE]),
                "not known to save on any of them",
                Answer::Unknown,
            ),
        ] {
            assert_eq!((known.deeds().as_str(), known.reduces()), (deeds, reduces), "{known:?}");
        }
    }

    #[test]
    fn bytes_that_never_reached_the_devices_need_no_speed() {
        let quarter = Ratio { value: 0.25, low: 0.22, high: 0.3 };
        let all = Ratio { value: 1.0, low: 0.99, high: 1.01 };
        let counted = Saving { reached: Some(quarter), ..saving(VAGUE) };
        assert_eq!(counted.answer(), Answer::Yes);
        let words = counted.in_words("was");
        assert_eq!(words, "took 25 % (22 to 30 %) of the bytes that unique data takes");
        // All bytes reached the disk, which may compress by itself.
        assert_eq!(Saving { reached: Some(all), ..saving(MORE) }.answer(), Answer::Yes);
        assert_eq!(Saving { reached: Some(all), ..saving(VAGUE) }.answer(), Answer::Unknown);
        // A device that reports all bytes that it holds, as zram does, needs no check of its speed.
        assert_eq!(Saving { speed: None, reached: Some(all) }.answer(), Answer::No);
        assert_eq!(Saving::default().answer(), Answer::Unknown);
    }

    #[test]
    fn what_a_load_saves_follows_from_its_payload() {
        let compresses = reduction(MORE, ALIKE, [MORE, MORE]);
        let half = Payload::Random { compressible: 0.5, dedup: 0.5 };
        assert_eq!(compresses.saves(&Payload::UNIQUE), Some(0.0));
        assert_eq!(compresses.saves(&Payload::Zeros), Some(1.0));
        assert_eq!(compresses.saves(&Payload::ramp()), Some(1.0));
        assert_eq!(compresses.saves(&half), Some(0.5));
        let deduplicates = reduction(ALIKE, MORE, [MORE, ALIKE]);
        assert_eq!(deduplicates.saves(&half), Some(0.5));
        let vague = reduction(VAGUE, ALIKE, [ALIKE, ALIKE]);
        assert_eq!(vague.saves(&half), None);
        assert_eq!(vague.saves(&Payload::UNIQUE), Some(0.0), "of which nothing can be saved");
        assert_eq!(vague.saves(&Payload::ramp()), None);
        let skips = reduction(ALIKE, ALIKE, [MORE, MORE]);
        assert_eq!((skips.saves(&Payload::Zeros), skips.saves(&half)), (Some(1.0), Some(0.0)));
    }

    #[test]
    fn every_answer_has_its_sentence() {
        let told = reduction(ALIKE, ALIKE, [ALIKE, ALIKE]).sentences();
        assert!(told.len() == 1 && told[0].contains("gain at most 10 % over unique"), "{told:?}");
        let told = reduction(MORE, VAGUE, [MORE, MORE]).sentences();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("It compresses: ") && told[0].contains("1.99 times as fast"));
        assert!(told[1].starts_with("Whether it deduplicates is unknown: "), "{told:?}");
        assert!(told[2].starts_with("It saves on zeros: they were written "), "{told:?}");
        let brief = |known: Reduction| known.in_brief().unwrap_or_default();
        assert_eq!(brief(reduction(MORE, VAGUE, [MORE, MORE])), "");
        let none = "It was not seen to compress, deduplicate or skip zeros.";
        assert_eq!(brief(reduction(ALIKE, ALIKE, [ALIKE, ALIKE])), none);
        let some = "Whether it compresses or skips zeros is unknown.";
        assert_eq!(brief(reduction(VAGUE, ALIKE, [VAGUE, VAGUE])), some);
    }
}
