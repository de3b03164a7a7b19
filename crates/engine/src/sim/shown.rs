//! Sizes and times as they are typed, so that reading the displayed text gives the same value.

use fathom_core::{Bytes, Span};

/// The shortest exact text.
pub(super) fn show_bytes(bytes: Bytes) -> String {
    const UNITS: [(u64, &str); 8] = [
        (1 << 40, "t"),
        (1 << 30, "g"),
        (1 << 20, "m"),
        (1 << 10, "k"),
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
    ];
    let exact = UNITS.iter().filter(|(unit, _)| bytes.0 > 0 && bytes.0.is_multiple_of(*unit));
    let shown = exact.map(|(unit, name)| format!("{}{name}", bytes.0 / unit));
    shown.chain([bytes.0.to_string()]).min_by_key(String::len).expect("one is always there")
}

/// In the largest unit of which it is a whole number.
pub(super) fn show_time(span: Span) -> String {
    const UNITS: [(u64, &str); 5] = [
        (3_600_000_000_000, "h"),
        // Not "m", which is a size elsewhere in the same line.
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    match UNITS.iter().find(|(unit, _)| span.0 > 0 && span.0.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", span.0 / unit),
        None => format!("{}ns", span.0),
    }
}
