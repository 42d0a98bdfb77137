//! A checksum of what a checkpoint says: its description, and its tensors with their names and shapes;
//! and of the file of the best model.
//!
//! Words of 64 bits are folded one after the other as
//! $h \leftarrow (\mathrm{rotl}_{23}(h) \oplus w) \cdot K$ with an odd $K$. Each step is a bijection of $h$ for a given word
//! and of the word for a given $h$, so a change within one word always changes the result; other damage goes
//! unnoticed once in $2^{64}$ files. It guards against disks, not against people.

/// $2^{64}$ over the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// A running checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksum(u64);

impl Checksum {
    /// Not zero, so that leading zeros count.
    pub(super) fn new() -> Self {
        Self(0x6368_6563_6B73_756D)
    }

    pub(super) fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    }

    /// The bytes of a text.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Eight bytes at a time, after their number.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.word(u64::from_le_bytes(word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }

    /// The checksum so far as 16 hexadecimal digits.
    pub(super) fn digits(self) -> String {
        let mut h = self.0;
        for shift in [32, 29] {
            h = (h ^ (h >> shift)).wrapping_mul(MULTIPLIER);
        }
        format!("{:016x}", h ^ (h >> 32))
    }
}

/// The checksum of a whole file.
pub(super) fn checksum_of(bytes: &[u8]) -> String {
    let mut sum = Checksum::new();
    sum.bytes(bytes);
    sum.digits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u64], text: &str) -> String {
        let mut sum = Checksum::new();
        words.iter().for_each(|&word| sum.word(word));
        sum.text(text);
        sum.digits()
    }

    #[test]
    fn every_bit_order_and_length_count() {
        let (words, text) = ([0, 1, u64::MAX, 7], "a text of 19 bytes.");
        let good = of(&words, text);
        assert_eq!(good.len(), 16);
        for bit in 0..256 {
            let mut words = words;
            words[bit / 64] ^= 1 << (bit % 64);
            assert_ne!(of(&words, text), good, "bit {bit}");
        }
        for bad in ["", "a text of 19 bytes", "a text of 19 bytes.\0", "a text of 19 bytes!"] {
            assert_ne!(of(&words, bad), good, "{bad:?}");
        }
        assert_ne!(of(&[1, 0, u64::MAX, 7], text), good);
        assert_ne!(of(&[0, 0], ""), of(&[0], ""));
    }

    /// Files of one version are read by the next.
    #[test]
    fn checksums_are_stable() {
        assert_eq!(of(&[1, 2, 3], "harmonium"), STABLE);
    }

    const STABLE: &str = "6d5810a2499a1955";
}
