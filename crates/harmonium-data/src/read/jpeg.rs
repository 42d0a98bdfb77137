//! JPEG pictures, by the portable decoder: the same pixels on every machine.

use super::pictures::{Decoded, Grey, check_pixels};
use crate::{Error, Image};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

const FORMAT: &str = "JPEG";
/// Progressive pictures are held as coefficients, six bytes for a pixel, before the first is known.
const MAX_PIXELS: u64 = 1 << 24;

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xd8\xff")
}

/// The grey levels of a picture.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    let damaged = |reason: String| Error::Damaged { format: FORMAT, reason };
    // Strict: a file that was cut off is an error, not a picture with a grey end.
    let options = DecoderOptions::default().set_strict_mode(true);
    let options = options.jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| damaged(e.to_string()))?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let image = Image { height, width };
    let expected = check_pixels(image, MAX_PIXELS)?;
    let samples = decoder.decode().map_err(|e| damaged(e.to_string()))?;
    let mut grey = Grey::default();
    samples.chunks_exact(3).for_each(|p| grey.push([p[0], p[1], p[2]]));
    let found = grey.pixels.len() as u64;
    if found != expected || found == 0 {
        return Err(Error::Truncated { format: FORMAT, what: "pixels", expected, found });
    }
    Ok(Decoded { image, grey })
}
