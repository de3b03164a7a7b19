//! What is written, and how a result file tells of it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::units::Bytes;

/// What is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Random bytes, block by block of 4 KiB.
    Random {
        /// The share of each block that a compressor saves, from 0 to 1.
        compressible: f64,
        /// The share of blocks that equal one written before, from 0 to 1.
        dedup: f64,
    },
    /// Zeros.
    Zeros,
    /// These bytes over and over, at least one, from the start of each I/O. In a file each is two
    /// hexadecimal digits.
    Pattern(
        #[serde(with = "hex")]
        #[schemars(with = "String")]
        Box<[u8]>,
    ),
    /// Each I/O takes the bytes from a random place in a pool, at a multiple of 512.
    Pool {
        /// How long the pool is: at least a block, at most 1 TiB.
        #[serde(rename = "size_bytes")]
        size: Bytes,
        /// The file whose beginning it holds, over and over if that is shorter; none for random
        /// bytes.
        #[serde(serialize_with = "as_shown")]
        file: Option<PathBuf>,
    },
}

impl Payload {
    /// The default: no two blocks are equal, and none can be compressed.
    pub const UNIQUE: Self = Self::Random { compressible: 0.0, dedup: 0.0 };

    /// The largest pool, which all workers of a stream have together.
    pub const LARGEST_POOL: Bytes = Bytes(1 << 40);

    /// The bytes from 0 to 255 in their order, which DiskSpd writes by default.
    pub fn ramp() -> Self {
        Self::Pattern((0..=u8::MAX).collect())
    }
}

/// A name that is no text is written as it is shown: it must not cost the result.
fn as_shown<S: Serializer>(path: &Option<PathBuf>, file: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(file)
}

/// Bytes as two hexadecimal digits each.
pub mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// The digits.
    pub fn digits(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes of these digits; none where they are not two for each.
    pub fn bytes(digits: &str) -> Option<Box<[u8]>> {
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        let byte = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
            _ => None,
        };
        digits.as_bytes().chunks(2).map(byte).collect()
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], file: S) -> Result<S::Ok, S::Error> {
        file.serialize_str(&digits(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(file: D) -> Result<Box<[u8]>, D::Error> {
        let read = bytes(&String::deserialize(file)?);
        read.ok_or_else(|| D::Error::custom("a byte is two hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hex::digits(&[0, 0xff, 0x1a]), "00ff1a");
        assert_eq!(hex::bytes("00FF1a").as_deref(), Some(&[0, 0xff, 0x1a][..]));
        for text in ["0", "0g", "+1", "\u{e9}0", "001"] {
            assert_eq!(hex::bytes(text), None, "{text}");
        }
    }
}
