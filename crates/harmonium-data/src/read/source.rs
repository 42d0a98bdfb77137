//! Bytes from a file, inflated if need be, never more than a reader is ready for.
//!
//! A header may claim anything, so nothing is allocated for a claim: buffers grow by what was
//! really read. A tiny file that inflates without end is stopped by [`Guarded`], and one whose
//! parts each ask for a little, but together for too much, by [`Budget`].

use crate::Error;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Inflated data beyond this size is refused.
const MAX_INFLATED: u64 = 8 << 30;
/// From this size on the ratio is watched: below it a bomb does no harm.
const WATCH_FROM: u64 = 256 << 20;
/// Real data rarely shrinks a hundredfold; deflate cannot exceed 1,032.
const MAX_RATIO: u64 = 500;
/// Bytes of memory that one byte of a file may ask for: as many entries as a sparse table may have
/// for each stored one, at the size of a stored one.
const MAX_GROWTH: u64 = 1 << 10;
/// Bytes for names, paths, dimensions and zeros that no stored entry pays for.
const MAX_SPENT: u64 = 128 << 20;
/// How much is looked at to recognise a format.
pub(crate) const HEAD: u64 = 64 << 10;
/// Room for what is read ahead.
const BUFFER: usize = 64 << 10;
/// Step in which buffers grow.
const STEP: u64 = 1 << 20;

/// The first bytes of a stream, and the whole of it.
pub(crate) struct ByteSource<'a> {
    /// Enough to recognise the format.
    pub(crate) head: Vec<u8>,
    /// Everything, the head included.
    pub(crate) reader: Box<dyn BufRead + 'a>,
    /// Whether it had to be inflated.
    pub(crate) inflated: bool,
}

impl<'a> ByteSource<'a> {
    /// Opens a stream, inflating gzip (also twice: some archives are).
    pub(crate) fn new(reader: impl Read + 'a) -> Result<Self, Error> {
        let mut source = Self::peek(Box::new(reader), false)?;
        for _ in 0..2 {
            if !source.head.starts_with(&[0x1f, 0x8b]) {
                break;
            }
            let counted = Counted { inner: source.reader, count: 0 };
            source = Self::peek(Box::new(Guarded::new(MultiGzDecoder::new(counted))), true)?;
        }
        Ok(source)
    }

    fn peek(mut reader: Box<dyn Read + 'a>, inflated: bool) -> Result<Self, Error> {
        let mut head = Vec::new();
        reader.by_ref().take(HEAD).read_to_end(&mut head)?;
        let rest = BufReader::with_capacity(BUFFER, reader);
        let reader = Box::new(Cursor::new(head.clone()).chain(rest));
        Ok(Self { head, reader, inflated })
    }
}

/// A reader that knows how much was taken from it.
pub(crate) struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.count += n as u64;
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.count += n as u64;
        self.inner.consume(n);
    }
}

/// A decompressor whose output is watched.
pub(crate) struct Guarded<D> {
    inner: D,
    before: Inflation,
    inflated: u64,
}

/// What the compressed parts of a file have become so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inflation {
    compressed: u64,
    inflated: u64,
}

/// How many compressed bytes a decompressor has taken.
pub(crate) trait Compressed {
    fn taken(&self) -> u64;
}

impl<R> Compressed for MultiGzDecoder<Counted<R>> {
    fn taken(&self) -> u64 {
        self.get_ref().count
    }
}

impl<R: BufRead> Compressed for flate2::bufread::ZlibDecoder<R> {
    fn taken(&self) -> u64 {
        self.total_in()
    }
}

/// An entry of an archive, which knows its packed size beforehand.
pub(crate) struct Entry<R> {
    pub(crate) inner: R,
    pub(crate) packed: u64,
}

impl<R: Read> Read for Entry<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read(out)
    }
}

impl<R> Compressed for Entry<R> {
    fn taken(&self) -> u64 {
        self.packed
    }
}

impl<D: Compressed> Guarded<D> {
    pub(crate) fn new(inner: D) -> Self {
        Self::after(inner, Inflation::default())
    }

    /// For one of several compressed parts of a file: what earlier parts became counts too.
    pub(crate) fn after(inner: D, before: Inflation) -> Self {
        Self { inner, before, inflated: 0 }
    }

    /// This part and those before it.
    pub(crate) fn inflation(&self) -> Inflation {
        Inflation {
            compressed: self.before.compressed.saturating_add(self.inner.taken()),
            inflated: self.before.inflated.saturating_add(self.inflated),
        }
    }
}

impl<D: Read + Compressed> Read for Guarded<D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.inflated += n as u64;
        let Inflation { compressed, inflated } = self.inflation();
        let compressed = compressed.max(1);
        let too_dense = inflated > WATCH_FROM && inflated / compressed > MAX_RATIO;
        if too_dense || inflated > MAX_INFLATED {
            return Err(Error::Bomb { compressed, inflated }.into());
        }
        Ok(n)
    }
}

/// What the parts of one file may cost together, beyond the bytes they are read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    parts: u64,
    /// Memory that no stored value stands for.
    spent: u64,
    /// Memory of values.
    grown: u64,
    max_grown: u64,
}

impl Budget {
    /// Named or nested parts of one file: each costs memory that few compressed bytes can claim.
    pub(crate) const MAX_PARTS: u64 = 1 << 20;

    /// For a file of `file_bytes` bytes.
    pub(crate) fn for_file_of(file_bytes: u64) -> Self {
        let max_grown = WATCH_FROM.saturating_add(file_bytes.saturating_mul(MAX_GROWTH));
        Self { parts: 0, spent: 0, grown: 0, max_grown: max_grown.min(MAX_INFLATED) }
    }

    /// Counts `n` more parts, before they are made.
    pub(crate) fn count(&mut self, n: u64) -> Result<(), Error> {
        self.parts = self.parts.saturating_add(n);
        if self.parts <= Self::MAX_PARTS {
            return Ok(());
        }
        let (what, unit, limit) = ("this file", "arrays and names", Self::MAX_PARTS);
        Err(Error::TooLarge { what, needed: self.parts, unit, limit })
    }

    /// Counts `n` more bytes of memory besides values, before they are taken: the limit is the
    /// same for every file.
    pub(crate) fn spend(&mut self, n: u64) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(n);
        within("this file, besides its values,", self.spent, MAX_SPENT)
    }

    /// Counts `n` more bytes of values, before they are taken: a longer file may hold more.
    pub(crate) fn grow(&mut self, n: u64) -> Result<(), Error> {
        self.grown = self.grown.saturating_add(n);
        within("this file", self.grown, self.max_grown)
    }
}

fn within(what: &'static str, needed: u64, limit: u64) -> Result<(), Error> {
    if needed <= limit {
        return Ok(());
    }
    Err(Error::TooLarge { what, needed, unit: "bytes of memory", limit })
}

/// Reads up to `n` bytes into `out`, growing it by what arrives; returns how many came.
pub(crate) fn fill(reader: &mut dyn Read, n: u64, out: &mut Vec<u8>) -> Result<u64, Error> {
    out.clear();
    let mut got = 0;
    while got < n {
        let step = (n - got).min(STEP);
        let came = (&mut *reader).take(step).read_to_end(out)? as u64;
        got += came;
        if came < step {
            break;
        }
    }
    Ok(got)
}

/// Whether nothing is left.
pub(crate) fn at_end(reader: &mut dyn Read) -> Result<bool, Error> {
    let mut one = [0];
    loop {
        match reader.read(&mut one) {
            Ok(n) => return Ok(n == 0),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_grow_by_what_arrives() {
        let mut out = Vec::new();
        let got = fill(&mut &b"abc"[..], u64::MAX, &mut out).unwrap();
        assert_eq!((got, out.as_slice()), (3, &b"abc"[..]));
        assert!(out.capacity() < 1 << 10);
    }
}
