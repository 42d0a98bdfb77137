use super::*;
use crate::arbitrary::{DENSITIES, bits, large, sizes};
use crate::bits::BitMatrix;
use crate::index::one_by_one;

/// The bits that the entries of a strip stand for, sample by sample.
fn decoded(pairs: &Pairs, strip: usize, n: usize) -> Vec<Vec<usize>> {
    let mut found = vec![None; n];
    let mut last = 0;
    for (four, entries) in pairs.strip(strip, n) {
        let entries = &entries[..entries.len() - BEYOND];
        assert!(entries.len() >= last, "samples come in the order of their lengths");
        last = entries.len();
        for (lane, &r) in four.iter().enumerate() {
            let of_sample = entries.iter().map(|e| usize::from(e[lane]));
            if r == NONE {
                assert!(of_sample.into_iter().all(|e| e == 0), "nobody has no entries");
                continue;
            }
            // Zeros stand at the end alone.
            let length = of_sample.clone().take_while(|&e| e != 0).count();
            assert!(of_sample.clone().skip(length).all(|e| e == 0));
            let of_pair = |e: usize| {
                let (k, v) = ((e - 1) / 3, (e - 1) % 3 + 1);
                (0..2).filter(move |bit| v >> bit & 1 == 1).map(move |bit| 2 * k + bit)
            };
            let bits = of_sample.take(length).flat_map(of_pair).collect();
            assert!(found[r as usize].replace(bits).is_none(), "sample {r} comes once");
        }
    }
    found.into_iter().map(|bits| bits.expect("every sample comes")).collect()
}

/// The bits that any row has.
pub(crate) fn mask_of(bits: &BitMatrix) -> Vec<u64> {
    let mut mask = vec![0; bits.words_per_row()];
    for r in 0..bits.n_rows() {
        mask.iter_mut().zip(bits.row(r)).for_each(|(mask, word)| *mask |= word);
    }
    mask
}

fn check(pairs: &Pairs, bits: &BitMatrix) {
    let (n, n_bits) = (bits.n_rows(), bits.n_columns());
    for (strip, first) in (0..n_bits).step_by(STRIP).enumerate() {
        let has = |i: usize| i < n_bits && (0..n).any(|r| bits.get(r, i));
        for (i, bit) in (0..STRIP).step_by(2).zip((first..).step_by(2)) {
            let used = pairs.strips[strip].used[i / RUN] >> (i % RUN) & 3;
            assert_eq!(used, u32::from(has(bit) || has(bit + 1)), "strip {strip}, row {i}");
        }
        for (r, found) in decoded(pairs, strip, n).into_iter().enumerate() {
            let end = n_bits.min(first + STRIP);
            let expected = (first..end).filter(|&i| bits.get(r, i)).map(|i| i - first);
            assert!(found.into_iter().eq(expected), "{n_bits} bits, strip {strip}, sample {r}");
        }
    }
}

/// Filled again and again, so that nothing may be left of what was there before.
#[test]
fn entries_stand_for_the_bits() {
    let mut pairs = Pairs::default();
    for (n_bits, n) in sizes().into_iter().flat_map(|n| [(n, 3), (161, n)]).chain(large()) {
        for density in DENSITIES {
            let bits = bits(n, n_bits, density, 5);
            pairs.fill(&(0..n).map(|r| bits.row(r)), n_bits, &mask_of(&bits), one_by_one);
            check(&pairs, &bits);
        }
    }
}

#[test]
fn listing_equals_its_twin() {
    for (n_bits, n) in sizes().into_iter().map(|n| (n, 7)).chain(large()) {
        for density in DENSITIES {
            let bits = bits(n, n_bits, density, 6);
            for first in (0..n_bits).step_by(STRIP) {
                let both = [true, false].map(|wide| {
                    let (mut listed, mut lengths) = (vec![[77; ROOM]; n], vec![77; n]);
                    let rows = (0..n).map(|r| bits.row(r));
                    if wide {
                        list_strip(rows, first, &mut listed, &mut lengths);
                    } else {
                        list_strip_portable(rows, first, &mut listed, &mut lengths);
                    }
                    (listed, lengths)
                });
                assert!(both[0] == both[1], "{n_bits} bits, {n} samples, from {first} on");
            }
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn interleaving_equals_its_twin() {
    let lists = [0, 64, 128, 192].map(|first| {
        let mut next = first..;
        std::array::from_fn(|_| next.next().expect("fewer than 256"))
    });
    assert_eq!(x86::sse2::interleave(lists), interleave_portable(lists));
}

#[test]
fn a_word_has_a_bit_for_each_pair() {
    for (word, expected) in [(0, 0), (1, 1), (2, 1), (3, 1), (0b1001_0000, 0b0101_0000)] {
        assert_eq!(of(word), expected);
    }
    assert_eq!(of(u64::MAX).count_ones(), 32);
    assert_eq!(of(1 << 63), 1 << 62);
}
