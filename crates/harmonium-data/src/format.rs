//! The formats, and how a file is recognised by what it holds.

use crate::Error;
use crate::read::{arff, idx, jpeg, mat, npy, npz, png, svmlight};
use std::fmt;

/// Where a table came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The format of MNIST.
    Idx,
    /// One NumPy array.
    Npy,
    /// An archive of NumPy arrays.
    Npz,
    /// A plain table: CSV, TSV, numbers between blanks.
    Text,
    /// Weka's format, dense or sparse.
    Arff,
    /// MATLAB 5.
    Mat,
    /// A PNG picture or a folder of them.
    Png,
    /// A JPEG picture or a folder of them.
    Jpeg,
    /// svmlight and libsvm.
    SvmLight,
    /// No file: a built-in set.
    BuiltIn,
}

impl Format {
    /// What the first bytes of a file say, whatever its ending.
    ///
    /// # Errors
    ///
    /// If they are none of the formats, with a name for what they are where that is known.
    pub(crate) fn of(head: &[u8]) -> Result<Self, Error> {
        let known = [
            (Self::Npy, npy::recognise(head)),
            (Self::Npz, npz::recognise(head)),
            (Self::Png, png::recognise(head)),
            (Self::Jpeg, jpeg::recognise(head)),
            (Self::Mat, mat::recognise(head)),
            (Self::Idx, idx::recognise(head)),
        ];
        if let Some((format, _)) = known.iter().find(|(_, yes)| *yes) {
            return Ok(*format);
        }
        if let Some(found) = foreign(head) {
            return Err(Error::UnknownFormat { found: found.into() });
        }
        Ok(match head {
            head if arff::recognise(head) => Self::Arff,
            head if svmlight::recognise(head) => Self::SvmLight,
            _ => Self::Text,
        })
    }
}

/// What else it may be; `None` if it is text.
fn foreign(head: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 7] = [
        (b"\x89HDF", "an HDF5 file"),
        (b"PAR1", "a Parquet file"),
        (b"BZh", "a bzip2 archive"),
        (b"\xfd7zXZ", "an xz archive"),
        (b"\x28\xb5\x2f\xfd", "a zstd archive"),
        (b"\x80\x04", "a Python pickle"),
        (b"%PDF", "a PDF document"),
    ];
    let magic = magics.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name);
    let utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    magic
        .or(utf16.then_some("text in UTF-16; save it as UTF-8"))
        .or(head.contains(&0).then_some("binary data"))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idx => "IDX",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Text => "text",
            Self::Arff => "ARFF",
            Self::Mat => ".mat",
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::SvmLight => "svmlight",
            Self::BuiltIn => "built-in",
        })
    }
}
