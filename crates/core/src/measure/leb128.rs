//! LEB128: whole numbers in bytes of seven bits, the lowest first; the eighth bit says that more
//! follow.

/// Appends a number.
pub fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while 0x7f < value {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes the first number away; none if there is no whole one. Bits beyond the 64th are ignored.
pub fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, others) = rest.split_first()?;
        *rest = others;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_and_what_is_none_is_refused() {
        let all = [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        all.iter().for_each(|value| push(&mut bytes, *value));
        assert_eq!(bytes[..5], [0, 1, 127, 0x80, 1]);
        let mut rest = bytes.as_slice();
        for value in all {
            assert_eq!(take(&mut rest), Some(value));
        }
        assert_eq!(take(&mut rest), None);
        assert_eq!(take(&mut [0x80; 20].as_slice()), None);
        assert_eq!(take(&mut [0x80; 3].as_slice()), None);
    }
}
