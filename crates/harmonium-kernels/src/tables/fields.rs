//! Sums of small fields down the columns: the gradient's product, both columns of a word at once.

use super::build::{build_chunk, build_fields};
use super::{Ahead, COLUMN_CHUNK, FIELD_TABLES, GROUP, Tables, add, entry};
#[cfg(target_arch = "x86_64")]
use crate::dispatch::WIDE;
use crate::dispatch::{PORTABLE, WIDEST, fast};
use crate::line::{Fields, Sums, TILE};

/// Whether a sum starts, goes on, or goes on with the other sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Starts with what is added.
    Start,
    /// Adds to what is there.
    Plus,
    /// Subtracts from what is there.
    Minus,
}

/// The sums of [`sum_fields`] of one side of a gradient without those of the other, taken apart.
///
/// # Panics
///
/// If there are fewer words than the rows of a side need.
pub fn subtract_fields(
    words: [&[u64]; 2],
    q: [&[Fields]; 2],
    sums: &mut [Sums],
    tables: &mut Tables<u16, TILE>,
) {
    if q.iter().all(|q| (1..=GROUP * FIELD_TABLES).contains(&q.len())) {
        subtract_few(words, q, sums, tables);
    } else {
        sum_fields(words[0], q[0], Sign::Start, false, sums, tables);
        sum_fields(words[1], q[1], Sign::Minus, true, sums, tables);
    }
}

fast! {
    /// [`subtract_fields`] for so few rows that the sums of each side fit into 8 bits: both in one pass.
    fn subtract_few[](
        words: [&[u64]; 2],
        q: [&[Fields]; 2],
        sums: &mut [Sums],
        tables: &mut Tables<u16, TILE>,
    ) = subtract_few_in::<PORTABLE>,
        wide subtract_few_in::<WIDE>,
        widest subtract_few_in::<WIDEST>;
}

#[inline(always)]
pub(super) fn subtract_few_in<const SET: u8>(
    words: [&[u64]; 2],
    q: [&[Fields]; 2],
    sums: &mut [Sums],
    tables: &mut Tables<u16, TILE>,
) {
    let n_tables = q[0].len().max(q[1].len()).div_ceil(GROUP);
    let of_side = n_tables * GROUP;
    let row = |i: usize| {
        let row = if i < of_side { q[0].get(i) } else { q[1].get(i - of_side) };
        &row.unwrap_or(&Fields::ZERO).0
    };
    if SET == WIDEST {
        build_fields(tables, 0, 2 * of_side, |_, i| row(i));
    } else {
        build_chunk::<_, TILE, 16>(tables, 0, 2 * of_side, row, |w| w);
    }
    let words = words.map(|words| &words[..sums.len()]);
    match n_tables {
        1 => few_tables::<1, 2, SET>(words, tables, sums),
        2 => few_tables::<2, 4, SET>(words, tables, sums),
        3 => few_tables::<3, 6, SET>(words, tables, sums),
        _ => few_tables::<4, 8, SET>(words, tables, sums),
    }
}

/// The first `T` of `U` tables are those of the first side.
#[inline(always)]
fn few_tables<const T: usize, const U: usize, const SET: u8>(
    words: [&[u64]; 2],
    tables: &Tables<u16, TILE>,
    sums: &mut [Sums],
) {
    if SET == PORTABLE {
        few_sums::<T, U, false>(words, tables, sums);
    } else {
        few_sums::<T, U, true>(words, tables, sums);
    }
}

#[inline(always)]
fn few_sums<const T: usize, const U: usize, const WIDE: bool>(
    words: [&[u64]; 2],
    tables: &Tables<u16, TILE>,
    sums: &mut [Sums],
) {
    let [mut first, mut second] = words.map(|words| Ahead::<WIDE, 1>::new(words.as_chunks().0));
    for sums in sums {
        let ([first], [second]) = (first.take(), second.take());
        let word = first | second << (GROUP * T);
        let (mut plus, mut minus) = ([0_u16; TILE], [0_u16; TILE]);
        each_table!(U, G, {
            add(
                if G < T { &mut plus } else { &mut minus },
                entry::<G, WIDE, _, TILE>(tables, word),
            );
        });
        let ([out_low, out_high], _) = sums.0.as_chunks_mut::<TILE>() else { continue };
        for l in 0..TILE {
            let low = plus[l].wrapping_sub(minus[l]).cast_signed();
            let high = (plus[l] >> 8).wrapping_sub(minus[l] >> 8).cast_signed();
            (out_low[l], out_high[l]) = (apart(low, high), high);
        }
    }
}

fast! {
    /// `sums[i] ± Σ_r x[r][i] q[r]` for the small fields of 64 columns. `words[chunk * sums.len() +
    /// i]` holds the bits of column `i` for [`COLUMN_CHUNK`] rows.
    ///
    /// The low bytes are summed together with the high ones, and taken apart when the `last` rows
    /// are added. Exact as long as fields are at most [`LEVELS`](super::LEVELS) and the sums stay inside 16 bits.
    ///
    /// # Panics
    ///
    /// If there are fewer words than the rows need.
    pub fn sum_fields[](
        words: &[u64],
        q: &[Fields],
        sign: Sign,
        last: bool,
        sums: &mut [Sums],
        tables: &mut Tables<u16, TILE>,
    ) = sum_fields_in::<PORTABLE>,
        wide sum_fields_in::<WIDE>,
        widest sum_fields_in::<WIDEST>;
}

#[inline(always)]
pub(super) fn sum_fields_in<const SET: u8>(
    words: &[u64],
    q: &[Fields],
    sign: Sign,
    last: bool,
    sums: &mut [Sums],
    tables: &mut Tables<u16, TILE>,
) {
    let n = sums.len();
    match (q.is_empty(), sign) {
        (true, Sign::Start) => sums.fill(Sums::ZERO),
        (true, _) if last => sums.iter_mut().for_each(take_apart),
        _ => {}
    }
    for (k, first) in (0..q.len()).step_by(COLUMN_CHUNK).enumerate() {
        let end = q.len().min(first + COLUMN_CHUNK);
        let used = if SET == WIDEST {
            build_fields(tables, first, end, |_, i| &q[i].0)
        } else {
            build_chunk::<_, TILE, 16>(tables, first, end, |i| &q[i].0, |w| w)
        };
        let words = &words[k * n..(k + 1) * n];
        let sign = if k > 0 && sign == Sign::Start { Sign::Plus } else { sign };
        fields_chunk(words, tables, used, sign, last && end == q.len(), sums);
    }
}

fast! {
    /// Adds what the columns pick from the first `n_tables` tables.
    fn fields_chunk[](
        words: &[u64],
        tables: &Tables<u16, TILE>,
        n_tables: usize,
        sign: Sign,
        last: bool,
        sums: &mut [Sums],
    ) = fields_chunk_in::<false>, wide fields_chunk_in::<true>;
}

#[inline(always)]
fn fields_chunk_in<const WIDE: bool>(
    words: &[u64],
    tables: &Tables<u16, TILE>,
    n_tables: usize,
    sign: Sign,
    last: bool,
    sums: &mut [Sums],
) {
    macro_rules! pass {
        ($U:literal) => {
            match (sign, last) {
                (Sign::Start, false) => {
                    fields_tables::<$U, START, false, WIDE>(words, tables, sums)
                }
                (Sign::Plus, false) => fields_tables::<$U, PLUS, false, WIDE>(words, tables, sums),
                (Sign::Minus, false) => {
                    fields_tables::<$U, MINUS, false, WIDE>(words, tables, sums)
                }
                (Sign::Start, true) => fields_tables::<$U, START, true, WIDE>(words, tables, sums),
                (Sign::Plus, true) => fields_tables::<$U, PLUS, true, WIDE>(words, tables, sums),
                (Sign::Minus, true) => fields_tables::<$U, MINUS, true, WIDE>(words, tables, sums),
            }
        };
    }
    with_tables!(n_tables, pass, 1 2 3 4 5 6 7 8 9 10 11, 12);
}

/// [`Sign::Start`] for functions that are compiled once for each sign.
const START: u8 = Sign::Start as u8;
/// [`Sign::Plus`], likewise.
const PLUS: u8 = Sign::Plus as u8;
/// [`Sign::Minus`], likewise.
const MINUS: u8 = Sign::Minus as u8;

/// `SIGN` is [`START`], [`PLUS`] or [`MINUS`].
#[inline(always)]
fn fields_tables<const U: usize, const SIGN: u8, const LAST: bool, const WIDE: bool>(
    words: &[u64],
    tables: &Tables<u16, TILE>,
    sums: &mut [Sums],
) {
    let mut ahead = Ahead::<WIDE, 1>::new(words.as_chunks::<1>().0);
    for sums in sums {
        let [word] = ahead.take();
        let (mut low, mut high) = ([0_u16; TILE], [0_u16; TILE]);
        const { assert!(FIELD_TABLES == 4, "the sums are widened after this number of tables") };
        let mut small = [0_u16; TILE];
        each_table!(U, G, {
            if matches!(G, 4 | 8) {
                flush(&small, &mut low, &mut high);
                small = [0; TILE];
            }
            add(&mut small, entry::<G, WIDE, _, TILE>(tables, word));
        });
        flush(&small, &mut low, &mut high);
        let ([out_low, out_high], _) = sums.0.as_chunks_mut::<TILE>() else { continue };
        let joined = |out: i16, sum: u16| match SIGN {
            START => sum.cast_signed(),
            PLUS => out.wrapping_add(sum.cast_signed()),
            _ => out.wrapping_sub(sum.cast_signed()),
        };
        for l in 0..TILE {
            let (low, high) = (joined(out_low[l], low[l]), joined(out_high[l], high[l]));
            out_low[l] = if LAST { apart(low, high) } else { low };
            out_high[l] = high;
        }
    }
}

/// Adds small fields to their wide sums; the low ones together with the high ones.
#[inline(always)]
fn flush(small: &[u16; TILE], low: &mut [u16; TILE], high: &mut [u16; TILE]) {
    for l in 0..TILE {
        low[l] = low[l].wrapping_add(small[l]);
        high[l] = high[l].wrapping_add(small[l] >> 8);
    }
}

/// Low sums without the high ones.
#[inline(always)]
fn apart(low: i16, high: i16) -> i16 {
    low.wrapping_sub(high << 8)
}

/// The same for a row.
fn take_apart(sums: &mut Sums) {
    let (low, high) = sums.0.split_at_mut(TILE);
    low.iter_mut().zip(high).for_each(|(low, high)| *low = apart(*low, *high));
}
