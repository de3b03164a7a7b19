//! The distribution of a time, as pairs of numbers, and packed. A trial has hundreds of distributions
//! in its series: as pairs they would take nine tenths of a result file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fathom_core::measure::{self, SparseHistogram, bucket_of, bucket_start, leb128};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The distribution of a time. A bucket reaches from its lower bound to at most 1/128 above it;
/// below 256 ns each value has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// The smallest value; none if there is no value.
    pub min_ns: Option<u64>,
    /// The largest value; none if there is no value.
    pub max_ns: Option<u64>,
    /// The sum of all values, exact.
    pub sum_ns: u128,
    /// The lower bound of each bucket that holds something, in nanoseconds, and how many values
    /// it holds; in rising order.
    pub buckets: Vec<(u64, u64)>,
}

impl Distribution {
    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, n)| n).sum()
    }

    /// As the core has it.
    pub fn to_sparse(&self) -> SparseHistogram {
        let range = (self.min_ns.unwrap_or(0), self.max_ns.unwrap_or(0));
        SparseHistogram::new(self.buckets.iter().copied(), range, self.sum_ns)
    }
}

impl From<&SparseHistogram> for Distribution {
    fn from(sparse: &SparseHistogram) -> Self {
        let any = !sparse.is_empty();
        Self {
            min_ns: any.then_some(sparse.min),
            max_ns: any.then_some(sparse.max),
            sum_ns: sparse.sum,
            buckets: sparse.buckets().collect(),
        }
    }
}

impl From<&measure::Histogram> for Distribution {
    fn from(histogram: &measure::Histogram) -> Self {
        Self::from(&histogram.to_sparse())
    }
}

/// The distribution of a time in the series. Buckets have numbers: below 256 a bucket's number is its
/// only value in nanoseconds, and from there on each power of two has 128 buckets of the same width.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PackedDistribution {
    /// The smallest value; none if there is no value.
    min_ns: Option<u64>,
    /// The largest value; none if there is no value.
    max_ns: Option<u64>,
    /// The sum of all values, exact.
    sum_ns: u128,
    /// The buckets that hold something, in rising order: for each its number minus that of the bucket
    /// before it, and how many values it holds, both as LEB128; all of them in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packed: Option<String>,
    /// The same as the pairs of other distributions, in results of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    buckets: Vec<(u64, u64)>,
}

/// Writes a distribution packed.
pub fn packed<S: Serializer>(times: &Distribution, serializer: S) -> Result<S::Ok, S::Error> {
    let packed = pack(&times.buckets);
    PackedDistribution {
        min_ns: times.min_ns,
        max_ns: times.max_ns,
        sum_ns: times.sum_ns,
        buckets: if packed.is_none() { times.buckets.clone() } else { Vec::new() },
        packed,
    }
    .serialize(serializer)
}

/// Reads a distribution in either form.
pub fn unpacked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Distribution, D::Error> {
    let read = PackedDistribution::deserialize(deserializer)?;
    let buckets = match read.packed {
        None => read.buckets,
        Some(packed) => unpack(&packed)
            .ok_or_else(|| D::Error::custom("the packed buckets of a distribution are damaged"))?,
    };
    let PackedDistribution { min_ns, max_ns, sum_ns, .. } = read;
    Ok(Distribution { min_ns, max_ns, sum_ns, buckets })
}

/// The buckets as text; none if one of them is no bucket of a histogram.
fn pack(buckets: &[(u64, u64)]) -> Option<String> {
    let mut bytes = Vec::with_capacity(3 * buckets.len());
    let mut last = 0;
    for &(start, count) in buckets {
        let number = bucket_of(start);
        if bucket_start(number) != Some(start) {
            return None;
        }
        leb128::push(&mut bytes, number.checked_sub(last)?);
        leb128::push(&mut bytes, count);
        last = number;
    }
    Some(STANDARD.encode(bytes))
}

/// The buckets of a text; none if it is none of [`pack`]'s.
fn unpack(packed: &str) -> Option<Vec<(u64, u64)>> {
    let bytes = STANDARD.decode(packed).ok()?;
    let mut rest = bytes.as_slice();
    let mut buckets = Vec::new();
    let mut number = 0_u64;
    while !rest.is_empty() {
        number = number.checked_add(leb128::take(&mut rest)?)?;
        buckets.push((bucket_start(number)?, leb128::take(&mut rest)?));
    }
    Some(buckets)
}

#[cfg(test)]
mod tests {
    use fathom_core::SplitMix64;
    use fathom_core::measure::Histogram;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder(#[serde(serialize_with = "packed", deserialize_with = "unpacked")] Distribution);

    fn of(values: &[u64]) -> Distribution {
        let mut all = Histogram::default();
        values.iter().for_each(|value| all.record(*value));
        Distribution::from(&all)
    }

    #[test]
    fn packing_loses_nothing() {
        let mut chance = SplitMix64(11);
        for round in 0..500_u64 {
            // Times of every size, from nanoseconds to centuries.
            let values: Vec<u64> =
                (0..round % 60).map(|k| chance.draw() >> (chance.draw() % 64) >> (k % 3)).collect();
            let times = of(&values);
            let json = serde_json::to_string(&Holder(times.clone())).unwrap();
            assert!(!json.contains("\"buckets\""), "{json}");
            assert_eq!(serde_json::from_str::<Holder>(&json).unwrap().0, times);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut chance = SplitMix64(12);
        for round in 0..5_000_usize {
            let bytes: Vec<u8> = (0..round % 40).map(|_| chance.draw() as u8).collect();
            if let Some(buckets) = unpack(&STANDARD.encode(&bytes)) {
                assert!(2 * buckets.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn a_packed_distribution_is_short_and_can_be_read_by_hand() {
        let times = of(&[3, 3, 260, 100_000]);
        let json = serde_json::to_string(&Holder(times.clone())).unwrap();
        // Bucket 3 twice, then 255 further on once, then 1,089 further on once.
        let bytes = [3, 2, 0xff, 0x01, 1, 0xc1, 0x08, 1];
        assert!(json.contains(&STANDARD.encode(bytes)), "{json}");
        let pairs =
            r#"{"min_ns":3,"max_ns":100000,"sum_ns":100266,"buckets":[[3,2],[260,1],[99840,1]]}"#;
        assert_eq!(serde_json::from_str::<Holder>(pairs).unwrap().0, times);
        // Bounds that no histogram has stay as they are.
        let odd = Distribution { buckets: Vec::from([(257, 4)]), ..Distribution::default() };
        let json = serde_json::to_string(&Holder(odd.clone())).unwrap();
        assert_eq!(serde_json::from_str::<Holder>(&json).unwrap().0, odd);
        for damaged in ["!", "/w==", "gICAgICAgICAgAE=", "//8DAQ=="] {
            assert_eq!(unpack(damaged), None, "{damaged}");
        }
    }
}
