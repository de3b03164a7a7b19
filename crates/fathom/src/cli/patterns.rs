//! The text form of a pattern: a word, and after a colon its parameters.

use fathom_core::Bytes;
use fathom_core::spec::{Distribution, Extent, HotRange, Order, Pattern, Sequence};

use super::values::{share, size};

/// The words, with their form and meaning.
pub const WORDS: [(&str, &str, &str); 10] = [
    ("random", "random", "uniform over the region"),
    ("sequential", "sequential", "block after block, around the region"),
    ("backward", "backward", "the same from the end"),
    ("strided", "strided:64k", "from the start of one to that of the next one"),
    ("interlocked", "interlocked", "sequential, all workers sharing one pointer"),
    ("mixed", "mixed:30%", "30 % random, the rest sequential after the one before"),
    ("zipf", "zipf:1.1", "the k-th most used block in proportion to k^-1.1"),
    ("pareto", "pareto:0.2", "80 % of the I/Os in 20 % of the blocks"),
    ("normal", "normal:10%,50%", "a bell of 10 % of the region around its middle"),
    ("hot", "hot:90%/10%,0%/40%", "90 % of the I/Os in the first 10 %, none in the next 40 %"),
];

/// Reads a pattern: one of [`WORDS`].
pub fn pattern(text: &str) -> Result<Pattern, String> {
    let (word, rest) = split(text, ':');
    let word = word.to_ascii_lowercase();
    match word.as_str() {
        "sequential" => nothing(rest).map(|()| Pattern::SEQUENTIAL),
        "backward" | "strided" => {
            let stride = rest.map(stride).transpose()?;
            if word == "strided" && stride.is_none() {
                return Err("the stride is missing: write strided:64k".to_owned());
            }
            let backward = word == "backward";
            Ok(Pattern::Sequential(Sequence { stride, backward, ..Sequence::default() }))
        }
        "interlocked" => Ok(Pattern::Interlocked { stride: rest.map(stride).transpose()? }),
        "mixed" => mixed(rest),
        _ => distribution(&word, rest).map(Pattern::Random),
    }
}

fn distribution(word: &str, rest: Option<&str>) -> Result<Distribution, String> {
    match word {
        "random" => nothing(rest).map(|()| Distribution::Uniform),
        "zipf" => {
            let (theta, order) = ranked(rest, "zipf:1.1", "theta from 0 to 10")?;
            Ok(Distribution::Zipf { theta, order })
        }
        "pareto" => {
            let (h, order) = ranked(rest, "pareto:0.2", "h above 0 and below 1")?;
            Ok(Distribution::Pareto { h, order })
        }
        "normal" => {
            let usage = "write normal:10% or normal:10%,50%: the standard deviation and the center";
            let (deviation, center) = split(rest.ok_or(usage)?, ',');
            let part = |text| share(text).map_err(|why| format!("'{text}': {why}; {usage}"));
            Ok(Distribution::Normal {
                deviation: part(deviation)?,
                center: center.map_or(Ok(0.5), part)?,
            })
        }
        "hot" => {
            let usage = "write hot:90%/10%,0%/40%: the share of I/Os, and how much of the target";
            let ranges = rest.ok_or(usage)?.split(',').map(|part| hot_range(part.trim()));
            Ok(Distribution::Hot(ranges.collect::<Result<_, _>>()?))
        }
        _ => Err(unknown(word)),
    }
}

/// Splits the text before a mark from the text after it.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((word, rest)) => (word.trim(), Some(rest.trim())),
        None => (text.trim(), None),
    }
}

fn nothing(rest: Option<&str>) -> Result<(), String> {
    match rest {
        None => Ok(()),
        Some(rest) => Err(format!("nothing can follow here, and ':{rest}' does: leave it out")),
    }
}

fn stride(text: &str) -> Result<Bytes, String> {
    match size(text) {
        Ok(Bytes(0)) => Err("a stride of 0 never moves on: write strided:64k".to_owned()),
        Ok(stride) => Ok(stride),
        Err(error) => Err(format!("'{text}': {error}")),
    }
}

fn mixed(rest: Option<&str>) -> Result<Pattern, String> {
    let usage = "write mixed:30% for 30 % random I/Os, or mixed:30%,zipf:1.1";
    let (random, over) = split(rest.ok_or(usage)?, ',');
    let random_share = share(random).map_err(|why| format!("'{random}': {why}; {usage}"))?;
    let distribution = match over {
        None => Distribution::Uniform,
        Some(over) => {
            let (word, rest) = split(over, ':');
            distribution(&word.to_ascii_lowercase(), rest)
                .map_err(|why| format!("after the share comes where those I/Os go: {why}"))?
        }
    };
    Ok(Pattern::mixed(random_share, distribution))
}

/// Reads "1.1" and "1.1,clustered".
fn ranked(rest: Option<&str>, example: &str, range: &str) -> Result<(f64, Order), String> {
    let usage = format!("write {example} or {example},clustered, {range}");
    let (number, order) = split(rest.ok_or_else(|| usage.clone())?, ',');
    let order = match order {
        None => Order::Spread,
        Some("clustered") => Order::Clustered,
        Some(other) => return Err(format!("'{other}' is unknown: {usage}")),
    };
    let number = number.parse().map_err(|_| format!("'{number}' is no number: {usage}"))?;
    Ok((number, order))
}

/// Reads "90%/10%" and "90%/10g".
fn hot_range(text: &str) -> Result<HotRange, String> {
    let usage = "write 90%/10% or 90%/10g: the share of I/Os, and how much of the target";
    let Some((ios, extent)) = text.split_once('/') else {
        return Err(format!("'{text}' is no range: {usage}"));
    };
    let wrong = |why: String| format!("'{text}': {why}; {usage}");
    let io_share = share(ios).map_err(wrong)?;
    let extent = match extent.trim().ends_with('%') {
        true => Extent::Share(share(extent).map_err(wrong)?),
        false => Extent::Size(size(extent).map_err(|error| wrong(error.to_string()))?),
    };
    Ok(HotRange { io_share, extent })
}

/// The message about a word that is not a pattern.
fn unknown(word: &str) -> String {
    let near = |known: &str| strsim::damerau_levenshtein(word, known);
    let nearest = WORDS.iter().min_by_key(|(known, ..)| near(known));
    let hint = match nearest {
        Some((known, example, _)) if near(known) <= known.len().div_ceil(2) => {
            format!("; did you mean {known}? Write {example}")
        }
        _ => String::new(),
    };
    let known: Vec<&str> = WORDS.iter().map(|(known, ..)| *known).collect();
    format!("there is no pattern '{word}'{hint}. The patterns are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_pattern_and_its_example_is_one() {
        for (word, example, _) in WORDS {
            let read = pattern(example).unwrap_or_else(|why| panic!("{example}: {why}"));
            assert!(example.starts_with(word));
            let known = pattern(word).err();
            assert!(known.is_none_or(|why| why.contains(word)), "{word} alone: {read:?}");
        }
    }

    #[test]
    fn a_pattern_is_read_with_what_it_needs() {
        let (spread, clustered) = (Order::Spread, Order::Clustered);
        let stride = Some(Bytes(65_536));
        let sequence = Sequence { stride, ..Sequence::default() };
        for (text, expected) in [
            ("random", Pattern::RANDOM),
            ("Random", Pattern::RANDOM),
            ("sequential", Pattern::SEQUENTIAL),
            ("strided:64k", Pattern::Sequential(sequence)),
            ("backward:64k", Pattern::Sequential(Sequence { backward: true, ..sequence })),
            ("interlocked", Pattern::Interlocked { stride: None }),
            ("interlocked:64k", Pattern::Interlocked { stride }),
            ("mixed:0%", Pattern::SEQUENTIAL),
            ("mixed:100%", Pattern::RANDOM),
            (
                "mixed:30%",
                Pattern::Mixed { random_share: 0.3, distribution: Distribution::Uniform },
            ),
            (
                "mixed:0.3,zipf:0.9,clustered",
                Pattern::Mixed {
                    random_share: 0.3,
                    distribution: Distribution::Zipf { theta: 0.9, order: clustered },
                },
            ),
            ("zipf:1.1", Pattern::Random(Distribution::Zipf { theta: 1.1, order: spread })),
            (
                "pareto:0.2, clustered",
                Pattern::Random(Distribution::Pareto { h: 0.2, order: clustered }),
            ),
            ("normal:10%", Pattern::Random(Distribution::Normal { deviation: 0.1, center: 0.5 })),
            (
                "normal:5%,90%",
                Pattern::Random(Distribution::Normal { deviation: 0.05, center: 0.9 }),
            ),
            (
                "hot:90%/10%,0%/1g",
                Pattern::Random(Distribution::Hot(Vec::from([
                    HotRange { io_share: 0.9, extent: Extent::Share(0.1) },
                    HotRange { io_share: 0.0, extent: Extent::Size(Bytes(1 << 30)) },
                ]))),
            ),
        ] {
            assert_eq!(pattern(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told_the_nearest_one_and_an_example() {
        for (text, parts) in [
            ("zigzag", &["no pattern 'zigzag'", "The patterns are random, sequential"][..]),
            ("zipff:1.1", &["did you mean zipf?", "zipf:1.1"]),
            ("sequental", &["did you mean sequential?"]),
            ("strided", &["stride is missing", "strided:64k"]),
            ("strided:x", &["'x'"]),
            ("strided:0", &["never moves on"]),
            ("random:4k", &["':4k'", "leave it out"]),
            ("mixed", &["mixed:30%"]),
            ("mixed:30", &["'30'", "unit is missing", "mixed:30%"]),
            ("mixed:30%,sequential", &["where those I/Os go", "'sequential'"]),
            ("zipf", &["zipf:1.1", "from 0 to 10"]),
            ("zipf:x", &["'x' is no number", "zipf:1.1"]),
            ("zipf:1.1,close", &["'close'", "zipf:1.1,clustered"]),
            ("normal:10", &["'10'", "normal:10%,50%"]),
            ("hot:90%", &["'90%' is no range", "90%/10%"]),
            ("hot:90%/10%,5%/x", &["'5%/x'"]),
            ("", &["The patterns are"]),
        ] {
            let why = pattern(text).expect_err(text);
            parts.iter().for_each(|part| assert!(why.contains(part), "{text}: {why}"));
        }
    }
}
