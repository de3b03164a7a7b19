//! Elias gamma codes: whole numbers from 1 in bits, small ones in few. A number of n bits is n - 1
//! zeros and then these bits, the highest first. So no text becomes more than a number for each bit,
//! which a general compression does not promise.

/// Writes numbers one after the other.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// How many bits of the last byte are free.
    free: u32,
}

impl Writer {
    /// Appends a number.
    ///
    /// # Panics
    ///
    /// When it is 0.
    pub fn push(&mut self, number: u64) {
        assert!(number > 0, "0 has no code");
        let bits = u64::BITS - number.leading_zeros();
        self.push_bits(0, bits - 1);
        self.push_bits(number, bits);
    }

    fn push_bits(&mut self, number: u64, bits: u32) {
        let mut left = bits;
        while 0 < left {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let take = left.min(self.free);
            let part = (number >> (left - take)) as u8 & (0xff_u8 >> (8 - take));
            let last = self.bytes.len() - 1;
            self.bytes[last] |= part << (self.free - take);
            self.free -= take;
            left -= take;
        }
    }

    /// All of them; zeros fill the last byte.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads numbers one after the other.
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
}

impl<'a> Reader<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether only the zeros are left that fill the last byte.
    pub fn is_at_end(&self) -> bool {
        match self.bytes.get(self.at / 8) {
            None => true,
            Some(byte) => {
                let is_last = self.at / 8 + 1 == self.bytes.len() && !self.at.is_multiple_of(8);
                is_last && byte << (self.at % 8) == 0
            }
        }
    }

    /// The next number; none if there is no whole one.
    pub fn take(&mut self) -> Option<u64> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
        }
        // More bits than a number has.
        if u64::BITS <= zeros {
            return None;
        }
        (0..zeros).try_fold(1, |number, _| Some(number << 1 | u64::from(self.bit()?)))
    }

    fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte << (self.at % 8) & 0x80;
        self.at += 1;
        Some(bit > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_and_what_is_none_is_refused() {
        let all = [1, 2, 3, 1, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, 1, u64::MAX];
        for count in 0..=all.len() {
            let mut bits = Writer::default();
            all[..count].iter().for_each(|number| bits.push(*number));
            let bytes = bits.into_bytes();
            let mut bits = Reader::new(&bytes);
            for number in &all[..count] {
                assert!(!bits.is_at_end());
                assert_eq!(bits.take(), Some(*number));
            }
            assert!(bits.is_at_end());
            assert_eq!(bits.take(), None);
        }
        // 1, 2, 3 are 1, 010 and 011.
        let mut bits = Writer::default();
        [1, 2, 3].into_iter().for_each(|number| bits.push(number));
        assert_eq!(bits.into_bytes(), [0b1010_0110]);
        // Seventy zeros, then ones: a number has no more than 64 bits.
        let long =
            [0, 0, 0, 0, 0, 0, 0, 0, 0x03, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Reader::new(&long).take(), None);
        // A whole byte of zeros fills nothing.
        assert!(!Reader::new(&[0]).is_at_end());
    }
}
