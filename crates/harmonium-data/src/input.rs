//! Where data is read from: a name that can be opened again, or a pipe.

use crate::frame::{Frame, read_with_notes};
use crate::open::held;
use crate::read::source::{ByteSource, HEAD};
use crate::{Error, Format};
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::Path;

/// Where data is read from. A pipe can be read once only, so what may have to be read twice, text, is held.
pub(crate) enum Input {
    /// A file or a folder, read by its name as often as it is needed.
    Path,
    /// All that a pipe gave.
    Held(Vec<u8>),
    /// A pipe, from its beginning.
    Pipe(Pipe),
}

/// The first bytes of a pipe, and the pipe behind them.
pub(crate) struct Pipe {
    head: Cursor<Vec<u8>>,
    rest: File,
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self.head.read(out)? {
            0 => self.rest.read(out),
            n => Ok(n),
        }
    }
}

impl Seek for Pipe {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.rest.seek(to)
    }
}

impl Input {
    /// Looks at what stands under a name.
    pub(crate) fn of(spec: &str) -> Result<Self, Error> {
        let regular = |m: std::fs::Metadata| m.is_file() || m.is_dir();
        if is_built_in(spec) || std::fs::metadata(spec).map_or(true, regular) {
            return Ok(Self::Path);
        }
        let mut head = Vec::new();
        let mut pipe = File::open(spec)?;
        pipe.by_ref().take(HEAD).read_to_end(&mut head)?;
        let text =
            head.starts_with(&[0x1f, 0x8b]) || Format::of(&head).is_ok_and(|f| f == Format::Text);
        let mut pipe = Pipe { head: Cursor::new(head), rest: pipe };
        Ok(if text { Self::Held(held(&mut pipe)?) } else { Self::Pipe(pipe) })
    }

    /// Reads a table of words and numbers, with what was guessed; nothing where the format has no names.
    pub(crate) fn frame(&mut self, spec: &str) -> Result<Option<(Frame, Vec<String>)>, Error> {
        let mut read = || {
            let mut source = match self {
                Self::Path if is_built_in(spec) || Path::new(spec).is_dir() => return Ok(None),
                Self::Path => ByteSource::new(File::open(spec)?)?,
                Self::Held(bytes) => ByteSource::new(Cursor::new(&*bytes))?,
                Self::Pipe(_) => return Ok(None),
            };
            if source.head.is_empty() {
                return Err(Error::Empty { n_rows: 0, n_columns: 0 });
            }
            if Format::of(&source.head)? != Format::Text {
                return Ok(None);
            }
            read_with_notes(&source.head, &mut source.reader).map(Some)
        };
        read().map_err(|e: Error| e.in_file(spec))
    }
}

fn is_built_in(spec: &str) -> bool {
    let set = spec.split_once(':').map_or(spec, |(set, _)| set);
    ["digits", "shifter", "bars-and-stripes"].contains(&set)
}
