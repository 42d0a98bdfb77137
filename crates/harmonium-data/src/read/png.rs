//! PNG pictures: one file, a folder of them, or a folder of folders that are the classes.
//!
//! Pictures become grey levels from 0 to 255: colours by their luma, and what is transparent is
//! seen on white. Files come in the order a person would list them, 2.png before 10.png.

use super::rows::{Facts, RowSink};
use crate::{Error, Image};
use png::{BitDepth, ColorType, Decoder, Limits, Transformations};
use std::cmp::Ordering;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

const FORMAT: &str = "PNG";
/// A row of a table is not larger than that, whatever a header claims.
const MAX_PIXELS: u64 = 1 << 26;

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"\x89PNG")
}

/// Reads one picture as one row.
pub(crate) fn read(reader: impl Read, rows: &mut RowSink) -> Result<Facts, Error> {
    let mut bytes = Vec::new();
    super::source::fill(&mut { reader }, MAX_PIXELS * 8, &mut bytes)?;
    rows.set_full_scale(255);
    let (image, pixels) = decode(std::io::Cursor::new(bytes))?;
    rows.push_bytes(&pixels, None)?;
    Ok(Facts { image: Some(image), ..Facts::default() })
}

/// Reads the pictures of a folder; those in folders inside it are labelled by the folder's name.
pub(crate) fn read_folder(folder: &Path, rows: &mut RowSink) -> Result<Facts, Error> {
    let (files, folders) = list(folder)?;
    let mut pictures: Vec<(PathBuf, Option<String>)> =
        files.into_iter().map(|f| (f, None)).collect();
    if pictures.is_empty() {
        for inner in folders {
            let class = file_name(&inner);
            pictures.extend(list(&inner)?.0.into_iter().map(|f| (f, Some(class.clone()))));
        }
    }
    if pictures.is_empty() {
        let found = "a folder without PNG files".into();
        return Err(Error::UnknownFormat { found });
    }
    if let (Some((_, Some(_))), Some(asked)) = (pictures.first(), &rows.options().label_column) {
        return Err(Error::LabelsBeside { asked: asked.clone() });
    }
    rows.set_full_scale(255);
    let mut first = None;
    for (path, class) in pictures {
        let name = path.display().to_string();
        let (image, pixels) = read_file(&path).map_err(|e| e.in_file(&name))?;
        let expected: Image = *first.get_or_insert(image);
        if image != expected {
            return Err(Error::PictureSize {
                name: file_name(&path),
                expected: (expected.height, expected.width),
                found: (image.height, image.width),
            });
        }
        rows.push_bytes(&pixels, class.as_deref())?;
    }
    Ok(Facts { image: first, ..Facts::default() })
}

/// Opens regular files only: a pipe of that name would be waited for without end.
fn read_file(path: &Path) -> Result<(Image, Vec<u8>), Error> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::NotAFile);
    }
    decode(BufReader::new(std::fs::File::open(path)?))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The PNG files and the folders of a folder, in natural order.
fn list(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        } else if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
            files.push(path);
        }
    }
    files.sort_by(|a, b| natural(&file_name(a), &file_name(b)));
    folders.sort_by(|a, b| natural(&file_name(a), &file_name(b)));
    Ok((files, folders))
}

/// Runs of digits compare as numbers, everything else as text.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    while let (Some(p), Some(q)) = (x.first(), y.first()) {
        let (number, order);
        if p.is_ascii_digit() && q.is_ascii_digit() {
            let (m, n) = (digits(x), digits(y));
            order = (m.len(), m).cmp(&(n.len(), n));
            number = true;
        } else {
            order = p.cmp(q);
            number = false;
        }
        if order != Ordering::Equal {
            return order;
        }
        x = after(x, number);
        y = after(y, number);
    }
    x.len().cmp(&y.len()).then_with(|| a.cmp(b))
}

/// The digits that `text` starts with, leading zeros left out.
fn digits(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let start = text[..end].iter().position(|&b| b != b'0').unwrap_or(end);
    &text[start..end]
}

/// What follows the number or the character that `text` starts with.
fn after(text: &[u8], number: bool) -> &[u8] {
    let end = if number {
        text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len())
    } else {
        1
    };
    &text[end..]
}

fn damaged(error: png::DecodingError) -> Error {
    match error {
        png::DecodingError::IoError(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => e.into(),
        other => Error::Damaged { format: FORMAT, reason: other.to_string() },
    }
}

fn decode(reader: impl std::io::BufRead + Seek) -> Result<(Image, Vec<u8>), Error> {
    let limits = Limits { bytes: 256 << 20 };
    let mut decoder = Decoder::new_with_limits(reader, limits);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let info = decoder.read_header_info().map_err(damaged)?;
    let needed = u64::from(info.width) * u64::from(info.height);
    let image = Image { height: info.height as usize, width: info.width as usize };
    if needed > MAX_PIXELS {
        let (what, unit, limit) = ("a picture", "pixels", MAX_PIXELS);
        return Err(Error::TooLarge { what, needed, unit, limit });
    }
    let interlaced = info.interlaced;
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (color, depth) = reader.output_color_type();
    debug_assert_eq!(depth, BitDepth::Eight, "expanded and stripped");
    let mut grey = Vec::new();
    if interlaced {
        // RowSink come in passes, so the whole picture is needed; the header was checked above.
        let mut samples = vec![0; reader.output_buffer_size().unwrap_or(0)];
        reader.next_frame(&mut samples).map_err(damaged)?;
        to_grey(&samples, color, &mut grey);
    } else {
        while let Some(row) = reader.next_row().map_err(damaged)? {
            to_grey(row.data(), color, &mut grey);
        }
    }
    if grey.len() as u64 != needed {
        let found = grey.len() as u64;
        return Err(Error::Truncated { format: FORMAT, what: "pixels", expected: needed, found });
    }
    Ok((image, grey))
}

fn to_grey(samples: &[u8], color: ColorType, grey: &mut Vec<u8>) {
    match color {
        ColorType::Grayscale | ColorType::Indexed => grey.extend_from_slice(samples),
        ColorType::GrayscaleAlpha => {
            grey.extend(samples.chunks_exact(2).map(|p| on_white(p[0], p[1])));
        }
        ColorType::Rgb => grey.extend(samples.chunks_exact(3).map(|p| luma(p[0], p[1], p[2]))),
        ColorType::Rgba => {
            let pixel = |p: &[u8]| on_white(luma(p[0], p[1], p[2]), p[3]);
            grey.extend(samples.chunks_exact(4).map(pixel));
        }
    }
}

/// The brightness of a colour (ITU-R BT.601).
#[expect(clippy::cast_possible_truncation, reason = "a weighted mean of bytes is a byte")]
fn luma(r: u8, g: u8, b: u8) -> u8 {
    ((299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) + 500) / 1000) as u8
}

#[expect(clippy::cast_possible_truncation, reason = "a weighted mean of bytes is a byte")]
fn on_white(grey: u8, alpha: u8) -> u8 {
    let (grey, alpha) = (u32::from(grey), u32::from(alpha));
    ((grey * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_as_people_count() {
        let mut names = ["a10.png", "a2.png", "b1.png", "a02.png", "a1.png"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a1.png", "a02.png", "a2.png", "a10.png", "b1.png"]);
    }

    #[test]
    fn grey_stays_grey() {
        for g in 0..=255 {
            assert_eq!(luma(g, g, g), g);
            assert_eq!(on_white(g, 255), g);
            assert_eq!(on_white(g, 0), 255);
        }
    }
}
