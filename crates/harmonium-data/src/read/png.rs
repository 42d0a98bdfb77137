//! PNG pictures. What is transparent is seen on white.

use super::pictures::{Decoded, Grey, check_pixels};
use crate::{Error, Image};
use png::{BitDepth, ColorType, Decoder, Limits, Transformations};
use std::io::Cursor;

const FORMAT: &str = "PNG";

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"\x89PNG")
}

fn damaged(error: png::DecodingError) -> Error {
    match error {
        png::DecodingError::IoError(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => e.into(),
        other => Error::Damaged { format: FORMAT, reason: other.to_string() },
    }
}

/// The grey levels of a picture.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    let limits = Limits { bytes: 256 << 20 };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let info = decoder.read_header_info().map_err(damaged)?;
    let image = Image { height: info.height as usize, width: info.width as usize };
    let expected = check_pixels(image, 1 << 26)?;
    let interlaced = info.interlaced;
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (color, depth) = reader.output_color_type();
    debug_assert_eq!(depth, BitDepth::Eight, "expanded and stripped");
    let mut grey = Grey::default();
    if interlaced {
        // Rows come in passes, so the whole picture is needed; the header was checked above.
        let mut samples = vec![0; reader.output_buffer_size().unwrap_or(0)];
        reader.next_frame(&mut samples).map_err(damaged)?;
        extend(&mut grey, &samples, color);
    } else {
        while let Some(row) = reader.next_row().map_err(damaged)? {
            extend(&mut grey, row.data(), color);
        }
    }
    let found = grey.pixels.len() as u64;
    if found != expected {
        return Err(Error::Truncated { format: FORMAT, what: "pixels", expected, found });
    }
    Ok(Decoded { image, grey })
}

fn extend(grey: &mut Grey, samples: &[u8], color: ColorType) {
    match color {
        ColorType::Grayscale | ColorType::Indexed => grey.pixels.extend_from_slice(samples),
        ColorType::GrayscaleAlpha => {
            grey.pixels.extend(samples.chunks_exact(2).map(|p| on_white(p[0], p[1])));
        }
        ColorType::Rgb => samples.chunks_exact(3).for_each(|p| grey.push([p[0], p[1], p[2]])),
        ColorType::Rgba => samples.chunks_exact(4).for_each(|p| {
            grey.push([p[0], p[1], p[2]]);
            if let Some(level) = grey.pixels.last_mut() {
                *level = on_white(*level, p[3]);
            }
        }),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a weighted mean of bytes is a byte")]
fn on_white(level: u8, alpha: u8) -> u8 {
    let (level, alpha) = (u32::from(level), u32::from(alpha));
    ((level * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_transparent_is_white() {
        for level in 0..=255 {
            assert_eq!(on_white(level, 255), level);
            assert_eq!(on_white(level, 0), 255);
        }
    }
}
