//! The parts of a stream's I/Os that are not all alike, such as the lines of an access specification
//! of Iometer: `--part '70% block-size=8k read-share=67%' --part '30% block-size=64k'`.

use fathom_core::Bytes;
use fathom_core::spec::Pattern;

use super::patterns;
use super::values::{self, Sizes};

/// A part as typed. Settings that it does not have are those of the whole stream.
#[derive(Clone, Debug, PartialEq)]
pub struct PartArg {
    /// Its share, or its weight among all parts.
    pub weight: f64,
    /// Whether its share is in percent.
    pub is_percent: bool,
    /// The sizes of its I/Os.
    pub block_size: Option<Sizes>,
    /// The sizes of its writes, if they differ.
    pub write_block_size: Option<Sizes>,
    /// Its share of reads.
    pub read_share: Option<f64>,
    /// The pattern of its offsets.
    pub pattern: Option<Pattern>,
    /// The alignment of its random offsets.
    pub align: Option<Bytes>,
}

/// The settings that a part may have besides its share.
const NAMES: [&str; 5] = ["block-size", "write-block-size", "read-share", "pattern", "align"];

/// Reads "70% block-size=8k read-share=67% pattern=random": a share or a weight, and options with
/// their values.
pub fn part(text: &str) -> Result<PartArg, String> {
    let mut words = text.split_whitespace();
    let share = words.next().ok_or("there is nothing: write '70% block-size=8k'")?;
    let (number, is_percent) = match share.strip_suffix('%') {
        Some(number) => (number, true),
        None => (share, false),
    };
    let weight = match number.parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight.is_finite() => weight,
        _ => {
            return Err(format!(
                "'{share}' is no share above 0: it comes first, as in '70% block-size=8k'"
            ));
        }
    };
    let mut part = PartArg {
        weight,
        is_percent,
        block_size: None,
        write_block_size: None,
        read_share: None,
        pattern: None,
        align: None,
    };
    let mut seen: Vec<&str> = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(format!("'{word}' has no value: write it as in block-size=8k"));
        };
        if seen.contains(&name) {
            return Err(format!("{name} is there twice"));
        }
        seen.push(name);
        part.take(name, value)?;
    }
    Ok(part)
}

impl PartArg {
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let size = |text| values::size(text).map_err(|error| error.to_string());
        match name {
            "block-size" => self.block_size = Some(values::sizes(value)?),
            "write-block-size" => self.write_block_size = Some(values::sizes(value)?),
            "read-share" => self.read_share = Some(values::share(value)?),
            "pattern" => self.pattern = Some(patterns::pattern(value)?),
            "align" => self.align = Some(size(value)?),
            _ => {
                return Err(format!("a part has {}, and no '{name}'", NAMES.join(", ")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_share_and_options_with_their_values() {
        let read = part("70% block-size=4k/60,64k/40 read-share=67% pattern=hot:90%/10% align=4k");
        let read = read.unwrap();
        assert_eq!((read.weight, read.is_percent, read.read_share), (70.0, true, Some(0.67)));
        assert_eq!((read.block_size.unwrap().0.len(), read.align), (2, Some(Bytes(4096))));
        assert!(read.pattern.is_some() && read.write_block_size.is_none());
        let bare = part(" 3 ").unwrap();
        assert_eq!((bare.weight, bare.is_percent, bare.pattern), (3.0, false, None));
    }

    #[test]
    fn what_is_no_part_is_refused_with_what_it_should_be() {
        for (text, why) in [
            ("", "there is nothing"),
            ("0%", "no share above 0"),
            ("block-size=8k 70%", "it comes first"),
            ("inf", "no share above 0"),
            ("7 8k", "'8k' has no value"),
            ("7 depth=3", "no 'depth'"),
            ("7 read-share=1", "1% or all"),
            ("7 align=4k align=8k", "align is there twice"),
        ] {
            let error = part(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
