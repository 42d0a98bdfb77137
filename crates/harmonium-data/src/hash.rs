//! A fingerprint of what data says, whatever file it came in.
//!
//! Words are folded as $h \leftarrow (\mathrm{rotl}_{23}(h) \oplus w) \cdot K$ and the sum is
//! mixed once at the end. It tells data sets apart by accident-proof margins; it is no defence
//! against someone who wants two sets to collide.

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// A running fingerprint; equal sequences of values give equal fingerprints on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash(u64);

impl Default for ContentHash {
    /// Not zero, so that leading zeros count.
    fn default() -> Self {
        Self(0x6861_726D_6F6E_6975)
    }
}

impl ContentHash {
    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    }

    /// A value: both zeros are one value, and so are all kinds of NaN.
    pub(crate) fn value(&mut self, value: f32) {
        let canonical = if value.is_nan() { f32::NAN } else { value + 0.0 };
        self.word(u64::from(canonical.to_bits()));
    }

    pub(crate) fn text(&mut self, text: &str) {
        text.bytes().for_each(|b| self.word(u64::from(b)));
        self.word(u64::MAX);
    }

    pub(crate) fn finish(self) -> u64 {
        let mut h = self.0;
        for _ in 0..2 {
            h = (h ^ (h >> 32)).wrapping_mul(MULTIPLIER);
        }
        h ^ (h >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32]) -> u64 {
        let mut hash = ContentHash::default();
        for &v in values {
            hash.value(v);
        }
        hash.finish()
    }

    #[test]
    fn order_values_and_length_matter() {
        let all = [of(&[]), of(&[0.0]), of(&[0.0, 0.0]), of(&[1.0, 2.0]), of(&[2.0, 1.0])];
        for i in 1..all.len() {
            assert!(!all[..i].contains(&all[i]), "{i}");
        }
        assert_eq!(of(&[0.0]), of(&[-0.0]));
        assert_eq!(of(&[f32::NAN]), of(&[-f32::NAN]));
    }

    #[test]
    fn fingerprints_are_stable() {
        assert_eq!(of(&[0.0, 1.0, 0.25]), STABLE);
    }

    const STABLE: u64 = 15_429_846_556_684_739_451;
}
