//! DiskSpd's numbers: sizes that end in K, M, G, T or b, and counts of which it reads only the
//! digits at the front. An error is the text after the option that the number belongs to.

/// A size in bytes, all of `text`; a block has `block` bytes.
///
/// # Errors
///
/// When it is not such a size, or has more than 64 bits.
pub fn size(text: &str, block: u64) -> Result<u64, String> {
    let (bytes, rest) = size_prefix(text, block)?;
    match rest {
        "" => Ok(bytes),
        _ => Err(no_size(text)),
    }
}

/// A size in bytes at the front of `text`, and the rest.
///
/// # Errors
///
/// As [`size`].
pub fn size_prefix(text: &str, block: u64) -> Result<(u64, &str), String> {
    let too_large = || format!("{text} has more bytes than 64 bits can count");
    let (number, rest) = digits(text).ok_or_else(|| no_size(text))?;
    let number = number.ok_or_else(too_large)?;
    let unit = match rest.bytes().next().map(|byte| byte.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        Some(b'B') => block,
        _ => return Ok((number, rest)),
    };
    Ok((number.checked_mul(unit).ok_or_else(too_large)?, &rest[1..]))
}

fn no_size(text: &str) -> String {
    match text {
        "" => "a size is missing".to_owned(),
        _ => format!("`{text}` is no size: digits, then K, M, G, T or b (blocks) or nothing"),
    }
}

/// The digits at the front of `text`, as a number if 64 bits are enough, and the rest.
pub fn digits(text: &str) -> Option<(Option<u64>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (end > 0).then(|| (digits.parse().ok(), rest))
}

/// A number as DiskSpd reads it: the digits at the front, or 0 if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<'a> {
    /// The number.
    pub value: u32,
    /// The text after the digits, which is ignored.
    pub ignored: &'a str,
}

/// Reads a number of at least `least`.
///
/// # Errors
///
/// When it is smaller, negative, or has more than 32 bits.
pub fn count(text: &str, least: u32) -> Result<Count<'_>, String> {
    let (value, ignored) = wide_count(text, u64::from(least))?;
    match u32::try_from(value) {
        Ok(value) => Ok(Count { value, ignored }),
        Err(_) => Err(format!("`{text}` is above {}", u32::MAX)),
    }
}

/// The same with 64 bits.
///
/// # Errors
///
/// When it is smaller, negative, or has more bits.
pub fn wide_count(text: &str, least: u64) -> Result<(u64, &str), String> {
    let unsigned = text.trim_start();
    if unsigned.starts_with('-') {
        return Err(format!("`{text}` is negative"));
    }
    let unsigned = unsigned.strip_prefix('+').unwrap_or(unsigned);
    let (value, ignored) = match digits(unsigned) {
        Some((Some(value), rest)) => (value, rest),
        Some((None, _)) => return Err(format!("`{text}` is above {}", u64::MAX)),
        None => (0, text),
    };
    match (value < least, text) {
        (false, _) => Ok((value, ignored)),
        (true, "") => Err("a number is missing".to_owned()),
        (true, _) if ignored == text => Err(format!("`{text}` is no number")),
        (true, _) => Err(format!("`{text}` is too small, it has to be at least {least}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_or_blocks() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4K", 4096),
            ("4k", 4096),
            ("50M", 50 << 20),
            ("70g", 70 << 30),
            ("6T", 6 << 40),
            ("3b", 24576),
            ("3B", 24576),
            ("18446744073709551615", u64::MAX),
            ("18014398509481983K", u64::MAX - 1023),
        ] {
            assert_eq!(size(text, 8192), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "+1", "1.5G", "30 K", "30KB", "0x10", "18446744073709551616"] {
            assert!(size(text, 8192).is_err(), "{text}");
        }
        assert!(size("18014398509481984K", 8192).unwrap_err().contains("64 bits"));
        assert_eq!(size_prefix("10G:5/20G", 1), Ok((10 << 30, ":5/20G")));
    }

    #[test]
    fn counts_end_where_the_digits_end() {
        let read = |text, least| count(text, least).map(|count| (count.value, count.ignored));
        assert_eq!(read("60", 0), Ok((60, "")));
        assert_eq!(read("60s", 0), Ok((60, "s")));
        assert_eq!(read("+5", 1), Ok((5, "")));
        assert_eq!(read("", 0), Ok((0, "")));
        assert_eq!(read("x", 0), Ok((0, "x")));
        assert_eq!(read("", 1), Err("a number is missing".to_owned()));
        assert_eq!(read("x", 1), Err("`x` is no number".to_owned()));
        assert_eq!(read("0", 1), Err("`0` is too small, it has to be at least 1".to_owned()));
        assert_eq!(read("-5", 0), Err("`-5` is negative".to_owned()));
        assert_eq!(read("4294967296", 0), Err("`4294967296` is above 4294967295".to_owned()));
        assert!(count("99999999999999999999", 0).is_err());
        assert_eq!(wide_count("4294967296i", 1), Ok((4_294_967_296, "i")));
    }
}
