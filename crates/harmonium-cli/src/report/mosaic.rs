//! Many small pictures as one: filters, samples and data, side by side.
//!
//! Tiles fill the picture row by row, with a line of one pixel (times the zoom) between and
//! around them. Colours come from a palette of 254 shades, one entry for the lines and one for
//! values that are not numbers, so a pixel takes one byte before compression.

use anyhow::{Context as _, Result, ensure};
use harmonium_data::Image;

/// How numbers become shades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Grey, 0 black and 1 white.
    Unit,
    /// Grey, the first number black and the second white.
    Range(f64, f64),
    /// Zero white, negative red, positive blue; full colour is the largest magnitude of each tile, so
    /// that weak filters can be seen beside strong ones.
    Diverging,
}

/// Shades of the palette; the two entries after them are the lines and values that are not numbers.
const SHADES: u8 = 254;
const LINE: u8 = SHADES;
const NO_NUMBER: u8 = SHADES + 1;
const NEGATIVE: [f64; 3] = [178.0, 24.0, 33.0];
const ZERO: [f64; 3] = [255.0, 255.0, 255.0];
const POSITIVE: [f64; 3] = [24.0, 78.0, 168.0];
/// Lines between tiles, in a colour that the tiles do not have.
const GREY: [u8; 3] = [205; 3];
const BLUE: [u8; 3] = [66, 88, 124];
/// What no number looks like: a yellow that no scale holds.
const YELLOW: [u8; 3] = [255, 200, 0];
/// A picture has fewer pixels than that, whatever is asked.
const MAX_PIXELS: u64 = 1 << 28;

/// Draws `tiles`, each a picture of shape `image`, with `columns` of them in a row; every value
/// becomes a square of `zoom` × `zoom` pixels. The last row of a tile may be incomplete.
///
/// # Errors
///
/// If there is nothing to draw, a tile does not fill the shape, or the picture would be too large.
pub(crate) fn png(
    tiles: &[Vec<f64>],
    image: Image,
    columns: usize,
    scale: Scale,
    zoom: usize,
) -> Result<Vec<u8>> {
    check_tiles(tiles, image)?;
    let zoom = zoom.max(1);
    let (width, height) = size(tiles.len(), image, columns);
    let fits = |n: usize| u32::try_from(n.saturating_mul(zoom)).ok();
    let size = fits(width).zip(fits(height));
    let size = size.filter(|(w, h)| u64::from(*w) * u64::from(*h) <= MAX_PIXELS);
    let size = size.with_context(|| {
        format!("a picture of {width}x{height} pixels, {zoom} times enlarged, is too large")
    })?;
    let pixels = draw(tiles, image, columns, scale, width, height);
    encode(&enlarge(&pixels, width, zoom), size, &palette(scale))
}

/// Width and height of a mosaic of `n` tiles before zooming.
pub(crate) fn size(n: usize, image: Image, columns: usize) -> (usize, usize) {
    let columns = columns.clamp(1, n.max(1));
    let side =
        |count: usize, tile: usize| count.saturating_mul(tile.saturating_add(1)).saturating_add(1);
    (side(columns, image.width), side(n.div_ceil(columns), image.height))
}

/// As many tiles in a row that the mosaic is about as wide as it is high.
pub(crate) fn square_columns(n: usize, image: Image) -> usize {
    let (h, w) = (image.height.saturating_add(1), image.width.saturating_add(1));
    (1..n).find(|&c| c.saturating_mul(w) >= n.div_ceil(c).saturating_mul(h)).unwrap_or(n.max(1))
}

/// A shape for samples that are not pictures: a strip of one row.
pub(crate) fn strip(n_values: usize) -> Image {
    Image { height: 1, width: n_values.max(1) }
}

/// A shape for samples that are not pictures: about as wide as high.
pub(crate) fn near_square(n_values: usize) -> Image {
    let width = n_values.isqrt() + usize::from(n_values.isqrt().pow(2) < n_values);
    let width = width.max(1);
    Image { height: n_values.div_ceil(width).max(1), width }
}

fn check_tiles(tiles: &[Vec<f64>], image: Image) -> Result<()> {
    ensure!(!tiles.is_empty(), "there is nothing to draw");
    let area = image.height.saturating_mul(image.width);
    for (i, tile) in tiles.iter().enumerate() {
        let fits = tile.len() <= area && area - tile.len() < image.width;
        ensure!(
            fits,
            "tile {i} holds {} values, which do not fill {}x{} pixels",
            tile.len(),
            image.height,
            image.width
        );
    }
    Ok(())
}

/// The palette's entry of each pixel before zooming.
fn draw(
    tiles: &[Vec<f64>],
    image: Image,
    columns: usize,
    scale: Scale,
    width: usize,
    height: usize,
) -> Vec<u8> {
    let columns = columns.clamp(1, tiles.len());
    let mut pixels = vec![LINE; width * height];
    for (i, tile) in tiles.iter().enumerate() {
        let own = largest(tile);
        let (lo, hi) = match scale {
            Scale::Unit => (0.0, 1.0),
            Scale::Range(lo, hi) => (lo, hi),
            Scale::Diverging => (-own, own),
        };
        let top = 1 + (i / columns) * (image.height + 1);
        let left = 1 + (i % columns) * (image.width + 1);
        for (y, row) in tile.chunks(image.width).enumerate() {
            let at = (top + y) * width + left;
            let line = &mut pixels[at..at + row.len()];
            line.iter_mut().zip(row).for_each(|(p, x)| *p = shade(*x, lo, hi));
        }
    }
    pixels
}

fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().filter(|x| x.is_finite()).fold(0.0, |m, x| f64::max(m, x.abs()))
}

/// The shade of a value on a scale from `lo` to `hi`; the middle where the scale has no extent.
fn shade(x: f64, lo: f64, hi: f64) -> u8 {
    if x.is_nan() {
        return NO_NUMBER;
    }
    // Halves keep the difference of two huge numbers finite.
    let (x, lo, hi) = (0.5 * x, 0.5 * lo, 0.5 * hi);
    let t = if hi > lo { ((x.clamp(lo, hi) - lo) / (hi - lo)).clamp(0.0, 1.0) } else { 0.5 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 253 by the clamp"
    )]
    let shade = (t * f64::from(SHADES - 1)).round() as u8;
    shade
}

/// Colours of the shades, the lines and values that are not numbers.
fn palette(scale: Scale) -> Vec<u8> {
    let diverging = scale == Scale::Diverging;
    let colour = |t: f64| if diverging { blend(t) } else { [byte(255.0 * t); 3] };
    let shades = (0..SHADES).map(|s| colour(f64::from(s) / f64::from(SHADES - 1)));
    let line = if diverging { GREY } else { BLUE };
    shades.chain([line, YELLOW]).flatten().collect()
}

/// Red at 0, white in the middle, blue at 1. The two middle shades are both white, since an even
/// number of shades has none exactly at zero.
fn blend(t: f64) -> [u8; 3] {
    let end = if t < 0.5 { NEGATIVE } else { POSITIVE };
    let half_shade = 0.5 / f64::from(SHADES - 1);
    let strength = (((t - 0.5).abs() - half_shade) / (0.5 - half_shade)).clamp(0.0, 1.0);
    std::array::from_fn(|i| byte(ZERO[i] + strength * (end[i] - ZERO[i])))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range of a byte"
)]
fn byte(x: f64) -> u8 {
    x.round().clamp(0.0, 255.0) as u8
}

fn enlarge(pixels: &[u8], width: usize, zoom: usize) -> Vec<u8> {
    let mut large = Vec::with_capacity(pixels.len() * zoom * zoom);
    for row in pixels.chunks_exact(width) {
        let wide: Vec<u8> = row.iter().flat_map(|p| std::iter::repeat_n(*p, zoom)).collect();
        (0..zoom).for_each(|_| large.extend_from_slice(&wide));
    }
    large
}

fn encode(pixels: &[u8], (width, height): (u32, u32), palette: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.set_compression(png::Compression::High);
    // Neighbouring entries of a palette are not neighbouring numbers, so rows are best left unfiltered.
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header().context("the picture cannot be written")?;
    writer.write_image_data(pixels).context("the picture cannot be written")?;
    writer.finish().context("the picture cannot be written")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width, height and colours of a picture.
    fn decode(bytes: &[u8]) -> (usize, usize, Vec<[u8; 3]>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut buffer).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgb);
        let colours = buffer.chunks_exact(3).map(|c| [c[0], c[1], c[2]]).collect();
        (info.width as usize, info.height as usize, colours)
    }

    const TWO_BY_TWO: Image = Image { height: 2, width: 2 };

    #[test]
    fn tiles_are_placed_row_by_row_with_lines_between() {
        let tiles = vec![vec![0.0, 1.0, 1.0, 0.0], vec![1.0; 4], vec![0.0; 4]];
        let (w, h, c) = decode(&png(&tiles, TWO_BY_TWO, 2, Scale::Unit, 1).unwrap());
        assert_eq!((w, h), (7, 7));
        let at = |x: usize, y: usize| c[y * w + x][0];
        assert_eq!([at(1, 1), at(2, 1), at(1, 2), at(2, 2)], [0, 255, 255, 0]);
        assert_eq!([at(4, 1), at(5, 2), at(1, 4), at(2, 5)], [255, 255, 0, 0]);
        for (x, y) in [(0, 0), (3, 1), (1, 3), (6, 6), (4, 4)] {
            assert_eq!(c[y * w + x], BLUE, "line at {x}, {y}");
        }
    }

    #[test]
    fn zoom_multiplies_every_pixel() {
        let tiles = vec![vec![0.0, 1.0, 1.0, 0.0]];
        let (w, h, c) = decode(&png(&tiles, TWO_BY_TWO, 1, Scale::Unit, 3).unwrap());
        assert_eq!((w, h), (12, 12));
        assert!((3..6).all(|y| (6..9).all(|x| c[y * w + x] == [255; 3])));
        assert!((0..3).all(|y| (0..w).all(|x| c[y * w + x] == BLUE)));
    }

    #[test]
    fn a_range_maps_its_ends_to_black_and_white() {
        let tiles = vec![vec![-3.0, 1.0, -1.0, 9.0]];
        let (w, _, c) = decode(&png(&tiles, TWO_BY_TWO, 1, Scale::Range(-3.0, 1.0), 1).unwrap());
        let found = [c[w + 1][0], c[w + 2][0], c[2 * w + 1][0], c[2 * w + 2][0]];
        assert_eq!([found[0], found[1], found[3]], [0, 255, 255]);
        assert!(found[2].abs_diff(128) <= 2);
    }

    #[test]
    fn zero_is_white_and_signs_have_colours() {
        let tiles = vec![vec![-2.0, 0.0, 2.0, f64::NAN], vec![0.5, 1.0, 0.0, 0.0]];
        let colours = |scale| {
            let (w, _, c) = decode(&png(&tiles, TWO_BY_TWO, 2, scale, 1).unwrap());
            [c[w + 1], c[w + 2], c[2 * w + 1], c[2 * w + 2], c[w + 4], c[w + 5]]
        };
        let [negative, zero, positive, none, half, own] = colours(Scale::Diverging);
        assert_eq!((negative, zero, positive), ([178, 24, 33], [255; 3], [24, 78, 168]));
        assert_eq!(none, YELLOW);
        assert!(half[0] > positive[0] && half[0] < 255, "{half:?} lies between");
        assert_eq!(own, positive, "each tile has its own scale");
    }

    #[test]
    fn equal_and_huge_numbers_have_shades() {
        assert_eq!(shade(1.0, 1.0, 1.0), 127);
        assert_eq!(shade(f64::MAX, f64::MIN, f64::MAX), SHADES - 1);
        assert_eq!(shade(f64::INFINITY, 0.0, 1.0), SHADES - 1);
        assert_eq!(shade(f64::NEG_INFINITY, 0.0, 1.0), 0);
    }

    #[test]
    fn shapes_for_samples_that_are_no_pictures_hold_them() {
        for n in 1..200 {
            let (square, line) = (near_square(n), strip(n));
            assert!(square.height * square.width >= n && square.height.abs_diff(square.width) <= 1);
            let tiles = vec![vec![0.5; n]; 3];
            for image in [square, line] {
                let columns = square_columns(3, image);
                let (w, h, _) = decode(&png(&tiles, image, columns, Scale::Unit, 1).unwrap());
                assert_eq!((w, h), size(3, image, columns));
            }
        }
        assert_eq!(square_columns(100, Image { height: 8, width: 8 }), 10);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert!(png(&[], TWO_BY_TWO, 1, Scale::Unit, 1).is_err());
        let error = png(&[vec![0.0; 5]], TWO_BY_TWO, 1, Scale::Unit, 1).unwrap_err();
        assert!(error.to_string().contains("5 values"), "{error}");
        assert!(png(&[vec![0.0; 2]], TWO_BY_TWO, 1, Scale::Unit, 1).is_err());
        assert!(png(&[vec![0.0; 4]], TWO_BY_TWO, 1, Scale::Unit, usize::MAX).is_err());
    }
}
