//! A fingerprint of what data says, whatever file it came in.
//!
//! Words are dealt to eight lanes in turn and folded there as
//! $h \leftarrow (\mathrm{rotl}_{23}(h) \oplus w) \cdot K$, so that eight of them are under way at a time; the lanes are folded
//! and mixed once at the end. It tells data sets apart by accident-proof margins; it is not a defence
//! against someone who wants two sets to collide.

use crate::Labels;

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

const LANES: usize = 8;

/// The words of whole values up to 255.
const BYTES: [u64; 256] = {
    let mut words = [0; 256];
    let mut b = 0;
    while b < 256 {
        words[b] = (b as f32).to_bits() as u64;
        b += 1;
    }
    words
};

/// A running fingerprint; equal sequences of values give equal fingerprints on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash {
    lanes: [u64; LANES],
    /// The lane of the next word.
    turn: usize,
    /// Words so far.
    count: u64,
}

impl Default for ContentHash {
    /// Not zero, so that leading zeros count.
    fn default() -> Self {
        Self { lanes: [0x6861_726D_6F6E_6975; LANES], turn: 0, count: 0 }
    }
}

fn fold(h: u64, word: u64) -> u64 {
    (h.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER)
}

impl ContentHash {
    pub(crate) fn word(&mut self, word: u64) {
        let lane = &mut self.lanes[self.turn];
        *lane = fold(*lane, word);
        self.turn = (self.turn + 1) % LANES;
        self.count += 1;
    }

    /// A value: both zeros are one value, and so are all kinds of NaN.
    pub(crate) fn value(&mut self, value: f32) {
        let canonical = if value.is_nan() { f32::NAN } else { value + 0.0 };
        self.word(u64::from(canonical.to_bits()));
    }

    /// The same as the values one by one.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let lead = bytes.len().min((LANES - self.turn) % LANES);
        let (lead, rest) = bytes.split_at(lead);
        lead.iter().for_each(|&b| self.value(f32::from(b)));
        let (turns, rest) = rest.as_chunks::<LANES>();
        // In registers, which the compiler does not find for an array.
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.lanes;
        for turn in turns {
            a = fold(a, BYTES[turn[0] as usize]);
            b = fold(b, BYTES[turn[1] as usize]);
            c = fold(c, BYTES[turn[2] as usize]);
            d = fold(d, BYTES[turn[3] as usize]);
            e = fold(e, BYTES[turn[4] as usize]);
            f = fold(f, BYTES[turn[5] as usize]);
            g = fold(g, BYTES[turn[6] as usize]);
            h = fold(h, BYTES[turn[7] as usize]);
        }
        self.lanes = [a, b, c, d, e, f, g, h];
        self.count += (LANES * turns.len()) as u64;
        rest.iter().for_each(|&b| self.value(f32::from(b)));
    }

    pub(crate) fn text(&mut self, text: &str) {
        text.bytes().for_each(|b| self.word(u64::from(b)));
        self.word(u64::MAX);
    }

    /// The fingerprint of a table whose values have been taken up, and of its labels.
    pub(crate) fn finish_shape(
        mut self,
        n_rows: usize,
        n_columns: usize,
        labels: Option<&Labels>,
    ) -> u64 {
        self.word(n_rows as u64);
        self.word(n_columns as u64);
        if let Some(labels) = labels {
            labels.values().iter().for_each(|&v| self.word(u64::from(v)));
            labels.names().unwrap_or_default().iter().for_each(|n| self.text(n));
        }
        self.finish()
    }

    pub(crate) fn finish(self) -> u64 {
        let mut h = self.lanes.into_iter().fold(self.count, fold);
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
    fn bytes_are_values() {
        let bytes: Vec<u8> = (0..30).map(|i: u8| i.wrapping_mul(37)).collect();
        for start in 0..10 {
            for end in start..30 {
                let mut hash = ContentHash::default();
                hash.bytes(&bytes[..start]);
                hash.bytes(&bytes[start..end]);
                let values: Vec<f32> = bytes[..end].iter().map(|&b| f32::from(b)).collect();
                assert_eq!(hash.finish(), of(&values), "{start}..{end}");
            }
        }
    }

    #[test]
    fn fingerprints_are_stable() {
        assert_eq!(of(&[0.0, 1.0, 0.25]), STABLE);
    }

    const STABLE: u64 = 2_319_972_637_429_881_606;
}
