//! PNG and JPEG pictures: one file, a folder of them, or a folder of folders that are the classes.
//!
//! Pictures become grey levels from 0 to 255, colours by their luma; a note says where colour was
//! lost. Files come in the order a person would list them, 2.png before 10.png.

use super::rows::{Facts, RowSink};
use super::{jpeg, png};
use crate::{Error, Format, Image};
use std::cmp::Ordering;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a file, and of a picture however large its header says it is.
const MAX_BYTES: u64 = 1 << 29;
/// Channels of a grey picture may differ by that: compression leaves traces.
const GREY_ENOUGH: u8 = 8;

/// A picture, row by row.
pub(super) struct Decoded {
    pub(super) image: Image,
    pub(super) grey: Grey,
}

/// Grey levels, and whether they were colours.
#[derive(Default)]
pub(super) struct Grey {
    pub(super) pixels: Vec<u8>,
    coloured: bool,
}

impl Grey {
    /// Adds a pixel of red, green and blue as its luma (ITU-R BT.601).
    pub(super) fn push(&mut self, colour: [u8; 3]) {
        let (low, high) = colour.iter().fold((u8::MAX, 0), |(l, h), &x| (l.min(x), h.max(x)));
        self.coloured |= high - low > GREY_ENOUGH;
        self.pixels.push(luma(colour));
    }
}

/// Refuses a picture of more than `limit` pixels before it is read.
pub(super) fn check_pixels(image: Image, limit: u64) -> Result<u64, Error> {
    let needed = (image.height as u64).saturating_mul(image.width as u64);
    if needed > limit {
        return Err(Error::TooLarge { what: "a picture", needed, unit: "pixels", limit });
    }
    Ok(needed)
}

/// How many pictures were read, and how many of them in colour.
#[derive(Default)]
struct Colours {
    pictures: usize,
    coloured: usize,
}

impl Colours {
    fn add(&mut self, grey: &Grey) {
        self.pictures += 1;
        self.coloured += usize::from(grey.coloured);
    }

    fn notes(&self) -> Vec<String> {
        let note = match (self.coloured, self.pictures) {
            (0, _) => return Vec::new(),
            (1, 1) => "the picture is in colour and was read as grey levels".to_owned(),
            (n, all) if n == all => {
                format!("all {n} pictures are in colour and were read as grey levels")
            }
            (n, all) => format!("{n} of {all} pictures are in colour and were read as grey levels"),
        };
        vec![note]
    }
}

/// Reads one picture as one row.
pub(crate) fn read(reader: impl Read, rows: &mut RowSink) -> Result<Facts, Error> {
    let mut bytes = Vec::new();
    super::source::fill(&mut { reader }, MAX_BYTES, &mut bytes)?;
    rows.set_full_scale(255);
    let Decoded { image, grey } = decode(&bytes)?;
    rows.push_bytes(&grey.pixels, None)?;
    let mut colours = Colours::default();
    colours.add(&grey);
    Ok(Facts { image: Some(image), notes: colours.notes(), ..Facts::default() })
}

/// By its first bytes, whatever the ending of the file is.
fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    if jpeg::recognise(bytes) { jpeg::decode(bytes) } else { png::decode(bytes) }
}

/// Reads the pictures of a folder; those in folders inside it are labelled by the folder's name.
pub(crate) fn read_folder(folder: &Path, rows: &mut RowSink) -> Result<(Format, Facts), Error> {
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
        let found = "a folder without PNG or JPEG files".into();
        return Err(Error::UnknownFormat { found });
    }
    if let (Some((_, Some(_))), Some(asked)) = (pictures.first(), &rows.options().label_column) {
        return Err(Error::LabelsBeside { asked: asked.clone() });
    }
    rows.set_full_scale(255);
    let (mut first, mut colours) = (None, Colours::default());
    for (path, class) in pictures {
        let name = path.display().to_string();
        let (format, Decoded { image, grey }) = read_file(&path).map_err(|e| e.in_file(&name))?;
        let (_, expected): (Format, Image) = *first.get_or_insert((format, image));
        if image != expected {
            return Err(Error::PictureSize {
                name: file_name(&path),
                expected: (expected.height, expected.width),
                found: (image.height, image.width),
            });
        }
        colours.add(&grey);
        rows.push_bytes(&grey.pixels, class.as_deref())?;
    }
    let (format, image) = first.unzip();
    let facts = Facts { image, notes: colours.notes(), ..Facts::default() };
    Ok((format.unwrap_or(Format::Png), facts))
}

/// Opens regular files only: a pipe of that name would be waited for without end.
fn read_file(path: &Path) -> Result<(Format, Decoded), Error> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::NotAFile);
    }
    let mut bytes = Vec::new();
    super::source::fill(&mut std::fs::File::open(path)?, MAX_BYTES, &mut bytes)?;
    let format = if jpeg::recognise(&bytes) { Format::Jpeg } else { Format::Png };
    Ok((format, decode(&bytes)?))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The pictures and the folders of a folder, in natural order.
fn list(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        } else if is_picture(&path) {
            files.push(path);
        }
    }
    files.sort_by(|a, b| natural(&file_name(a), &file_name(b)));
    folders.sort_by(|a, b| natural(&file_name(a), &file_name(b)));
    Ok((files, folders))
}

fn is_picture(path: &Path) -> bool {
    let endings = ["png", "jpg", "jpeg"];
    path.extension().is_some_and(|e| endings.iter().any(|ending| e.eq_ignore_ascii_case(ending)))
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

/// The brightness of a colour (ITU-R BT.601).
#[expect(clippy::cast_possible_truncation, reason = "a weighted mean of bytes is a byte")]
fn luma([r, g, b]: [u8; 3]) -> u8 {
    ((299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) + 500) / 1000) as u8
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
            assert_eq!(luma([g; 3]), g);
        }
    }

    #[test]
    fn colours_are_counted() {
        let mut colours = Colours::default();
        let mut grey = Grey::default();
        grey.push([7, 9, 15]);
        colours.add(&grey);
        assert!(colours.notes().is_empty(), "traces of compression are not colour");
        grey.push([200, 9, 15]);
        colours.add(&grey);
        assert!(colours.notes()[0].starts_with("1 of 2 pictures are in colour"));
    }
}
