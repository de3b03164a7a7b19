//! The shares of random I/Os for the parts of a target: `-rdpct90/10:0/10`.

use super::model::{Range, SpanUnit};
use super::numbers;

/// The remedy for every mistake in one.
pub const REMEDY: &str = "as in -rdpct90/10:0/10:5/20 or -rdabs90/10G:5/20G: percent of the I/Os, \
     /, and percent or size of the target they go to";

/// Reads the text after `-rd`.
///
/// # Errors
///
/// When it cannot be read.
pub fn read(text: &str, block: u64) -> Result<(SpanUnit, Vec<Range>), String> {
    let (unit, pairs) = match (text.strip_prefix("pct"), text.strip_prefix("abs")) {
        (Some(pairs), _) => (SpanUnit::Percent, pairs),
        (_, Some(pairs)) => (SpanUnit::Bytes, pairs),
        _ => return Err("it begins with pct or abs".to_owned()),
    };
    let mut ranges = Vec::new();
    for pair in pairs.split(':') {
        let (io, span) =
            pair.split_once('/').ok_or_else(|| format!("`{pair}` has no / in the middle"))?;
        let io = percent(io, 0)?;
        let span = match unit {
            SpanUnit::Percent => u64::from(percent(span, 1)?),
            SpanUnit::Bytes => numbers::size(span, block)?,
        };
        if span == 0 {
            return Err(format!("`{pair}` has a range of no length"));
        }
        ranges.push(Range { io, span });
    }
    Ok((unit, ranges))
}

fn percent(text: &str, least: u32) -> Result<u32, String> {
    match text.parse() {
        Ok(percent) if (least..=100).contains(&percent) && !text.starts_with('+') => Ok(percent),
        _ => Err(format!("`{text}` is no whole percentage from {least} to 100")),
    }
}

/// Adds the range that gets the rest, so that the shares make 100.
///
/// # Errors
///
/// When the ranges are longer than the target, leave a rest without a place, or have no room for a
/// block.
pub fn complete(unit: SpanUnit, ranges: &[Range], block: u32) -> Result<Vec<Range>, String> {
    let (mut io, mut span) = (0u32, 0u64);
    let mut to_the_end = false;
    for range in ranges {
        if to_the_end {
            return Err("only the last range can go to the end of the target".to_owned());
        }
        to_the_end = unit == SpanUnit::Bytes && range.span == 0;
        if unit == SpanUnit::Bytes && !to_the_end && range.span < u64::from(block) {
            return Err(format!(
                "a range of {} bytes has no room for a block of {block} bytes",
                range.span
            ));
        }
        io = io.saturating_add(range.io);
        span = span
            .checked_add(range.span)
            .ok_or("the ranges have more bytes than 64 bits can count")?;
        if io > 100 {
            return Err(format!("the shares of the I/Os make {io} %, which is more than all"));
        }
        if unit == SpanUnit::Percent && span > 100 {
            return Err(format!("the ranges make {span} % of the target, which is more than all"));
        }
    }
    let all_given = to_the_end || (unit == SpanUnit::Percent && span == 100);
    let mut ranges = ranges.to_vec();
    match (io, all_given) {
        (100, true) => {}
        (100, false) if unit == SpanUnit::Bytes => {}
        (100, false) => {
            return Err(format!(
                "the ranges make {span} % of the target, and no I/O is left for the rest of it: \
                 together they have to make 100 %, a hole is written 0/{}",
                100 - span
            ));
        }
        (io, true) => {
            return Err(format!(
                "the target is covered with {} % of the I/Os left to distribute",
                100 - io
            ));
        }
        (io, false) => {
            let rest = if unit == SpanUnit::Percent { 100 - span } else { 0 };
            ranges.push(Range { io: 100 - io, span: rest });
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let answer = read(text, 65536).and_then(|(unit, ranges)| complete(unit, &ranges, 65536));
        match answer {
            Ok(ranges) => ranges
                .iter()
                .map(|range| format!("{}/{}", range.io, range.span))
                .collect::<Vec<_>>()
                .join(":"),
            Err(problem) => problem,
        }
    }

    #[test]
    fn what_is_left_goes_to_the_rest_of_the_target() {
        for (text, ranges) in [
            ("pct90/10:0/10:5/20", "90/10:0/10:5/20:5/60"),
            ("pct10/10:10/10:0/10", "10/10:10/10:0/10:80/70"),
            ("pct100/100", "100/100"),
            ("pct80/20:20/80", "80/20:20/80"),
            ("pct0/50", "0/50:100/50"),
            ("abs10/1G:10/1G:0/100G", "10/1073741824:10/1073741824:0/107374182400:80/0"),
            ("abs100/10G", "100/10737418240"),
            ("abs50/1b", "50/65536:50/0"),
        ] {
            assert_eq!(told(text), ranges, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_distributed_is_refused() {
        for (text, problem) in [
            ("", "begins with pct or abs"),
            ("foo10/1G", "begins with pct or abs"),
            ("pct", "`` has no /"),
            ("pct10", "`10` has no /"),
            ("pct10[", "`10[` has no /"),
            ("pct10/", "`` is no whole percentage from 1"),
            ("pct10/0", "`0` is no whole percentage from 1 to 100"),
            ("pct101/10", "`101` is no whole percentage from 0 to 100"),
            ("pct+1/10", "`+1` is no whole percentage"),
            ("pct10/10:", "`` has no /"),
            ("pct10/10x", "`10x` is no whole percentage"),
            ("abs10/", "a size is missing"),
            ("abs10/0", "a range of no length"),
            ("abs10/1X", "`1X` is no size"),
            ("abs10/4K", "no room for a block of 65536 bytes"),
            ("pct60/10:50/10", "make 110 %"),
            ("pct10/60:10/60", "make 120 % of the target"),
            ("pct50/100", "covered with 50 % of the I/Os left"),
            ("pct100/50", "the ranges make 50 % of the target"),
            ("abs1/18446744073709551615:1/64K", "more bytes than 64 bits"),
        ] {
            let told = told(text);
            assert!(told.contains(problem), "{text}: {told}");
        }
    }
}
