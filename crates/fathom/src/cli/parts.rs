//! The parts of a stream's I/Os that are not all alike, such as the lines of an access specification
//! of Iometer: `--part '70% block-size=8k read-share=67%' --part '30% block-size=64k'`.

use fathom_core::Bytes;
use fathom_core::measure::Direction;
use fathom_core::spec::{Kind, Part, Pattern, Stream};

use super::described::StreamArgs;
use super::patterns;
use super::resolve::{block_sizes, pattern};
use super::values::{self, Sizes};
use crate::error::Error;

/// A part as typed. What it does not say is as for the whole stream.
#[derive(Clone, Debug, PartialEq)]
pub struct PartArg {
    weight: f64,
    is_percent: bool,
    block_size: Option<Sizes>,
    write_block_size: Option<Sizes>,
    read_share: Option<f64>,
    pattern: Option<Pattern>,
    align: Option<Bytes>,
}

/// What a part may say besides its share.
const NAMES: [&str; 5] = ["block-size", "write-block-size", "read-share", "pattern", "align"];

/// Reads "70% block-size=8k read-share=67% pattern=random": a share or a weight, and options of their
/// own with their values.
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

    /// What its I/Os are like, in a stream that says the rest.
    fn kind(&self, stream: &StreamArgs) -> Result<Kind, Error> {
        let mut own = stream.clone();
        let load = &mut own.load;
        load.read_share = self.read_share.unwrap_or(load.read_share);
        if let Some(sizes) = &self.block_size {
            load.block_size = sizes.clone();
            load.write_block_size = None;
        }
        // The stream may have a size for writes although this part has none, or nothing else.
        if load.read_share == 1.0 {
            load.write_block_size = None;
        } else if load.read_share == 0.0
            && let Some(writes) = load.write_block_size.take()
        {
            load.block_size = writes;
        }
        load.write_block_size = self.write_block_size.clone().or(load.write_block_size.take());
        if let Some(pattern) = &self.pattern {
            load.pattern = pattern.clone();
        }
        Ok(Kind {
            pattern: pattern(load)?,
            align: self.align,
            block_sizes: block_sizes(&own)?,
            read_share: own.load.read_share,
        })
    }
}

/// The parts of a stream, and the stream with what is true of all of them together; nothing where all
/// its I/Os are alike.
///
/// # Errors
///
/// When the shares do not make a whole, or an option does not go with parts.
pub fn settle(args: &StreamArgs) -> Result<Option<(StreamArgs, Vec<Part>)>, Error> {
    let load = &args.load;
    if load.part.is_empty() {
        return Ok(None);
    }
    for (option, typed, remedy) in [
        ("--align", load.align.is_some(), "write align=4k in the parts that it is for"),
        ("--no-repeat", load.no_repeat, "drop it"),
        ("--start-distance", load.start_distance.is_some(), "drop it"),
    ] {
        if typed {
            return Err(Error::option(option, "each part has a pattern of its own", remedy));
        }
    }
    whole(&load.part)?;
    let part = |typed: &PartArg| -> Result<Part, Error> {
        Ok(Part { weight: typed.weight, kind: typed.kind(args)? })
    };
    let parts: Vec<Part> = load.part.iter().map(part).collect::<Result<_, _>>()?;
    let all = Stream::reading(String::new(), Vec::new()).with_parts(parts.clone());
    let sizes = |direction| {
        Sizes(all.block_sizes.of(direction).iter().map(|one| (one.size, one.share)).collect())
    };
    let mut together = args.clone();
    let load = &mut together.load;
    load.pattern = parts[0].kind.pattern.clone();
    load.read_share = all.read_share;
    (load.block_size, load.write_block_size) = match all.only_direction() {
        Some(direction) => (sizes(direction), None),
        None => (sizes(Direction::Read), Some(sizes(Direction::Write))),
    };
    Ok(Some((together, parts)))
}

/// Refuses shares that do not make 100 %, and shares beside weights.
fn whole(parts: &[PartArg]) -> Result<(), Error> {
    let percents = parts.iter().filter(|part| part.is_percent).count();
    if percents > 0 && percents < parts.len() {
        return Err(Error::option(
            "--part",
            "some shares have a % and some have none",
            "write it with all or with none",
        ));
    }
    let sum: f64 = parts.iter().map(|part| part.weight).sum();
    if percents > 0 && (sum - 100.0).abs() > 1e-6 {
        return Err(Error::option(
            "--part",
            format!("the shares make {sum} %, not 100 %"),
            "change them, or drop the % to give weights",
        ));
    }
    Ok(())
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
