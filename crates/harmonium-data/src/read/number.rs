//! Numbers as the binary formats store them.

/// The type of a stored number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Kind {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The number in `bytes`, which are as many as [`Kind::size`] says.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "tables hold 32-bit numbers; what is out of their range becomes infinite"
    )]
    pub(crate) fn decode(self, bytes: &[u8], endian: Endian) -> f32 {
        let word = word(bytes, endian);
        let [a, b, c, d, ..] = word;
        match self {
            Self::U8 => f32::from(a),
            Self::I8 => f32::from(a.cast_signed()),
            Self::U16 => f32::from(u16::from_le_bytes([a, b])),
            Self::I16 => f32::from(i16::from_le_bytes([a, b])),
            Self::U32 => u32::from_le_bytes([a, b, c, d]) as f32,
            Self::I32 => i32::from_le_bytes([a, b, c, d]) as f32,
            Self::U64 => u64::from_le_bytes(word) as f32,
            Self::I64 => i64::from_le_bytes(word) as f32,
            Self::F16 => half(u16::from_le_bytes([a, b])),
            Self::F32 => f32::from_le_bytes([a, b, c, d]),
            Self::F64 => f64::from_le_bytes(word) as f32,
        }
    }

    /// The number as text. Whole numbers keep all their digits, also beyond 2²⁴, where tables skip
    /// some; others are as in a table.
    pub(crate) fn text(self, bytes: &[u8], endian: Endian) -> String {
        let word = word(bytes, endian);
        let [a, b, c, d, ..] = word;
        match self {
            Self::U32 => u32::from_le_bytes([a, b, c, d]).to_string(),
            Self::I32 => i32::from_le_bytes([a, b, c, d]).to_string(),
            Self::U64 => u64::from_le_bytes(word).to_string(),
            Self::I64 => i64::from_le_bytes(word).to_string(),
            Self::F64 if f64::from_le_bytes(word).fract() == 0.0 => {
                f64::from_le_bytes(word).to_string()
            }
            _ => self.decode(bytes, endian).to_string(),
        }
    }

    /// All the numbers of `bytes`.
    pub(crate) fn decode_into(self, bytes: &[u8], endian: Endian, out: &mut Vec<f32>) {
        out.clear();
        out.extend(bytes.chunks_exact(self.size()).map(|chunk| self.decode(chunk, endian)));
    }
}

/// Stored numbers one after the other, such as a row of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) kind: Kind,
    pub(crate) endian: Endian,
    pub(crate) bytes: &'a [u8],
}

impl Run<'_> {
    /// One of them as text, see [`Kind::text`].
    pub(crate) fn text(&self, place: usize) -> String {
        let size = self.kind.size();
        self.kind.text(&self.bytes[place * size..(place + 1) * size], self.endian)
    }
}

/// Up to eight bytes, the lowest first.
fn word(bytes: &[u8], endian: Endian) -> [u8; 8] {
    let mut word = [0_u8; 8];
    match endian {
        Endian::Little => word[..bytes.len()].copy_from_slice(bytes),
        Endian::Big => word.iter_mut().zip(bytes.iter().rev()).for_each(|(w, b)| *w = *b),
    }
    word
}

/// IEEE 754 half precision: 1 sign, 5 exponent and 10 fraction bits.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2.0_f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_those_of_ieee() {
        let known = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2.0_f32.powi(-24)),
            (0x0400, 2.0_f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ];
        for (bits, value) in known {
            assert_eq!(half(bits).to_bits(), f32::to_bits(value), "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn both_byte_orders_give_the_same_number() {
        for kind in [Kind::U16, Kind::I32, Kind::F32, Kind::F64, Kind::I64, Kind::F16] {
            let little: Vec<u8> = (1..=8).take(kind.size()).collect();
            let big: Vec<u8> = little.iter().rev().copied().collect();
            let (a, b) = (kind.decode(&little, Endian::Little), kind.decode(&big, Endian::Big));
            assert_eq!(a.to_bits(), b.to_bits());
        }
        assert_eq!(Kind::I8.decode(&[0xff], Endian::Big).to_bits(), (-1.0_f32).to_bits());
    }
}
