//! The distribution of a time: pairs of numbers in memory. In the file a program reads pairs most
//! easily. A trial has hundreds of distributions over time, which as pairs would take nine tenths of a
//! result file: those are coded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fathom_core::measure::{self, Histogram, SparseHistogram, bucket_of, bucket_start, leb128};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gamma;

/// The distribution of a time. A bucket reaches from its lower bound to at most 1/128 above it;
/// below 256 ns each value has its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(into = "WrittenDistribution", try_from = "WrittenDistribution")]
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
    /// How it is written.
    pub form: DistributionForm,
}

impl PartialEq for Distribution {
    /// How it is written is no part of it.
    fn eq(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.min_ns, one.max_ns, one.sum_ns);
        parts(self) == parts(other) && self.buckets == other.buckets
    }
}

impl Eq for Distribution {}

/// How the buckets of a distribution are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistributionForm {
    /// As pairs of numbers.
    #[default]
    Pairs,
    /// In bits, a fifth as long.
    Coded,
}

impl Distribution {
    /// The same, to be written in bits.
    #[must_use]
    pub fn coded(self) -> Self {
        Self { form: DistributionForm::Coded, ..self }
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, n)| n).sum()
    }

    /// As the core has it.
    pub fn to_histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.merge_sparse(&self.to_sparse());
        histogram
    }

    /// As the core has it where few buckets hold something.
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
            form: DistributionForm::Pairs,
        }
    }
}

impl From<&measure::Histogram> for Distribution {
    fn from(histogram: &measure::Histogram) -> Self {
        Self::from(&histogram.to_sparse())
    }
}

/// The distribution of a time. Buckets have numbers: below 256 a bucket's number is its only value in
/// nanoseconds, and from there on each power of two has 128 buckets of the same width.
#[derive(Serialize, Deserialize, JsonSchema)]
struct WrittenDistribution {
    /// The smallest value; none if there is no value.
    min_ns: Option<u64>,
    /// The largest value; none if there is no value.
    max_ns: Option<u64>,
    /// The sum of all values, exact.
    sum_ns: u128,
    /// In the series, and in experiments of more than 12 points: the buckets that hold something, in
    /// rising order: for each the distance of its number from that
    /// of the bucket before it (of the first one, its number plus 1), and how many values it holds, both
    /// as Elias gamma codes; all bits in base64, with zeros at the end. A number of n bits has n - 1
    /// zeros and then these bits, the highest first. Absent if there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coded: Option<String>,
    /// The same in results of earlier versions: for each bucket its number minus that of the bucket
    /// before it, and how many values it holds, both as LEB128; all of them in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packed: Option<String>,
    /// Elsewhere: the lower bound in nanoseconds of each bucket that holds something, and how many
    /// values it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<Vec<(u64, u64)>>,
}

impl From<Distribution> for WrittenDistribution {
    fn from(times: Distribution) -> Self {
        let Distribution { min_ns, max_ns, sum_ns, buckets, form } = times;
        let coded = match form {
            DistributionForm::Pairs => None,
            DistributionForm::Coded => code(&buckets),
        };
        match coded {
            Some(coded) => Self {
                min_ns,
                max_ns,
                sum_ns,
                coded: (!coded.is_empty()).then_some(coded),
                packed: None,
                buckets: None,
            },
            None => {
                Self { min_ns, max_ns, sum_ns, coded: None, packed: None, buckets: Some(buckets) }
            }
        }
    }
}

impl TryFrom<WrittenDistribution> for Distribution {
    type Error = &'static str;

    fn try_from(read: WrittenDistribution) -> Result<Self, &'static str> {
        let WrittenDistribution { min_ns, max_ns, sum_ns, coded, packed, buckets } = read;
        let (buckets, form) = match (coded, packed) {
            (None, None) => (Some(buckets.unwrap_or_default()), DistributionForm::Pairs),
            (Some(coded), _) => (decode(&coded), DistributionForm::Coded),
            (None, Some(packed)) => (unpack(&packed), DistributionForm::Coded),
        };
        let buckets = buckets.ok_or("the buckets of a distribution are damaged")?;
        Ok(Self { min_ns, max_ns, sum_ns, buckets, form })
    }
}

/// The buckets as text; none if one of them is no bucket of a histogram.
fn code(buckets: &[(u64, u64)]) -> Option<String> {
    let mut bits = gamma::Writer::default();
    let mut next = 0;
    for &(start, count) in buckets {
        let number = bucket_of(start);
        if bucket_start(number) != Some(start) || number < next || count == 0 {
            return None;
        }
        bits.push(number - next + 1);
        bits.push(count);
        next = number + 1;
    }
    Some(STANDARD.encode(bits.into_bytes()))
}

/// The buckets of a text; none if it is none of [`code`]'s.
fn decode(coded: &str) -> Option<Vec<(u64, u64)>> {
    let bytes = STANDARD.decode(coded).ok()?;
    let mut bits = gamma::Reader::new(&bytes);
    let mut buckets = Vec::new();
    let mut next = 0_u64;
    while !bits.is_at_end() {
        // Numbers rise, and the largest one has a bound: no text becomes more buckets than there are.
        next = next.checked_add(bits.take()?)?;
        buckets.push((bucket_start(next - 1)?, bits.take()?));
    }
    Some(buckets)
}

/// The buckets of a text of an earlier version; none if it is none.
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

    fn of(values: &[u64]) -> Distribution {
        let mut all = Histogram::default();
        values.iter().for_each(|value| all.record(*value));
        Distribution::from(&all)
    }

    fn json(times: &Distribution) -> String {
        serde_json::to_string(times).unwrap()
    }

    fn read(json: &str) -> Distribution {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn coding_loses_nothing() {
        let mut chance = SplitMix64(11);
        for round in 0..500_u64 {
            // Times of every size, from nanoseconds to centuries.
            let values: Vec<u64> =
                (0..round % 60).map(|k| chance.draw() >> (chance.draw() % 64) >> (k % 3)).collect();
            let times = of(&values).coded();
            let json = json(&times);
            assert!(!json.contains("\"buckets\"") && !json.contains("\"packed\""), "{json}");
            assert_eq!(json.contains("\"coded\""), !values.is_empty());
            assert_eq!(read(&json), times);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut chance = SplitMix64(12);
        for round in 0..5_000_usize {
            let bytes: Vec<u8> = (0..round % 40).map(|_| chance.draw() as u8).collect();
            let text = STANDARD.encode(&bytes);
            if let Some(buckets) = unpack(&text) {
                assert!(2 * buckets.len() <= bytes.len());
            }
            if let Some(buckets) = decode(&text) {
                assert!(buckets.is_sorted_by(|one, next| one.0 < next.0));
                assert!(buckets.iter().all(|bucket| bucket.1 > 0));
                assert!(buckets.len() <= 4 * bytes.len());
            }
        }
    }

    #[test]
    fn a_long_text_becomes_no_more_buckets_than_there_are() {
        // Two bits are a bucket: the next one, with one value.
        let all = bucket_of(u64::MAX) as usize + 1;
        let ones = |buckets: usize| STANDARD.encode(vec![0xff; buckets / 4]);
        assert_eq!(decode(&ones(all)).unwrap().len(), all);
        assert_eq!(decode(&ones(all + 4)), None);
        assert_eq!(decode(&ones(1 << 20)), None);
    }

    #[test]
    fn a_coded_distribution_is_short_and_can_be_read_by_hand() {
        let times = of(&[3, 3, 260, 100_000]);
        // Bucket 3 twice, then 255 further on once, then 1,089 further on once.
        let bits = "00100 010 000000011111111 1 000000000010001000001 1".replace(' ', "");
        let bits = format!("{bits:0<48}");
        let byte = |at: usize| u8::from_str_radix(&bits[8 * at..8 * at + 8], 2).unwrap();
        let coded = STANDARD.encode((0..6).map(byte).collect::<Vec<u8>>());
        let written = json(&times.coded());
        assert!(written.contains(&format!("\"coded\":\"{coded}\"")), "{written}");
        for damaged in ["!", "AA==", "AAAAAAAAAAAAAAAAAAAA", "AQ==", "IA=="] {
            assert_eq!(decode(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn earlier_forms_are_read_and_bounds_of_no_bucket_stay_as_they_are() {
        let times = of(&[3, 3, 260, 100_000]);
        let head = r#"{"min_ns":3,"max_ns":100000,"sum_ns":100266"#;
        let pairs = format!(r#"{head},"buckets":[[3,2],[260,1],[99840,1]]}}"#);
        assert_eq!(json(&times), pairs);
        assert_eq!(json(&of(&[])), r#"{"min_ns":null,"max_ns":null,"sum_ns":0,"buckets":[]}"#);
        assert_eq!(read(&format!(r#"{head},"buckets":[[3,2],[260,1],[99840,1]]}}"#)), times);
        let packed = STANDARD.encode([3, 2, 0xff, 0x01, 1, 0xc1, 0x08, 1]);
        assert_eq!(read(&format!(r#"{head},"packed":"{packed}"}}"#)), times);
        for damaged in ["!", "/w==", "gICAgICAgICAgAE=", "//8DAQ=="] {
            assert_eq!(unpack(damaged), None, "{damaged}");
        }
        for odd in [Vec::from([(257, 4)]), Vec::from([(9, 1), (4, 1)]), Vec::from([(4, 0)])] {
            let odd = Distribution { buckets: odd, ..Distribution::default() }.coded();
            assert_eq!(read(&json(&odd)), odd);
        }
    }
}
