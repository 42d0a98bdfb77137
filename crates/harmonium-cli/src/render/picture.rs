//! Pictures in the terminal: two pixels to a character.
//!
//! With colour a half block shows its upper pixel in the foreground and its lower one in the
//! background. Without colour a pixel is on or off, and the four block characters remain; both
//! can be read in a log file.

use harmonium_data::Image;
use std::fmt::Write;

/// What the numbers of a picture mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// From 0 (dark) to 1 (light).
    Grey,
    /// Around 0: blue below, red above, scaled by the largest of the picture.
    Signed,
}

/// Whether the terminal can show colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// 256 colours.
    Colour,
    /// Block characters only.
    Plain,
}

impl Ink {
    /// What stdout can show; `NO_COLOR` and pipes are respected.
    pub(crate) fn of_stdout() -> Self {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => Self::Plain,
            _ => Self::Colour,
        }
    }
}

/// Pictures side by side, `columns` to a row, with a blank column and line between.
pub(crate) fn mosaic(
    pictures: &[Vec<f64>],
    image: Image,
    columns: usize,
    tone: Tone,
    ink: Ink,
) -> String {
    let mut text = String::new();
    for (i, row) in pictures.chunks(columns.max(1)).enumerate() {
        if i > 0 {
            text.push('\n');
        }
        for y in (0..image.height).step_by(2) {
            text.push_str("  ");
            for (k, picture) in row.iter().enumerate() {
                if k > 0 {
                    text.push(' ');
                }
                let scale = picture.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
                for x in 0..image.width {
                    let at = |y: usize| (y < image.height).then(|| picture[y * image.width + x]);
                    cell(&mut text, at(y), at(y + 1), tone, ink, scale);
                }
            }
            text.push('\n');
        }
    }
    text
}

/// One character: an upper and a lower pixel.
fn cell(
    text: &mut String,
    upper: Option<f64>,
    lower: Option<f64>,
    tone: Tone,
    ink: Ink,
    scale: f64,
) {
    match ink {
        Ink::Plain => {
            let on = |x: Option<f64>| {
                x.is_some_and(|x| match tone {
                    Tone::Grey => x >= 0.5,
                    Tone::Signed => x > 0.25 * scale,
                })
            };
            text.push(match (on(upper), on(lower)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => '·',
            });
        }
        Ink::Colour => {
            let code = |x: Option<f64>| colour(x.unwrap_or(0.0), tone, scale);
            let (fg, bg) = (code(upper), code(lower));
            // Writing to a string cannot fail.
            let _ = write!(text, "\x1b[38;5;{fg};48;5;{bg}m▀\x1b[0m");
        }
    }
}

/// The nearest of the 256 colours.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=23")]
fn colour(x: f64, tone: Tone, scale: f64) -> u8 {
    match tone {
        // 232..=255 is a ramp of greys.
        Tone::Grey => 232 + (x.clamp(0.0, 1.0) * 23.0).round() as u8,
        Tone::Signed => {
            let x = if scale > 0.0 { (x / scale).clamp(-1.0, 1.0) } else { 0.0 };
            let strength = (5.0 - (x.abs() * 5.0).round()) as u8;
            // The 6x6x6 cube: white in the middle, red (r stays) above, blue (b stays) below.
            if x >= 0.0 { 16 + 36 * 5 + 7 * strength } else { 16 + 42 * strength + 5 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image = Image { height: 3, width: 2 };

    #[test]
    fn plain_pictures_show_two_pixels_to_a_character() {
        let picture = vec![1.0, 0.0, 1.0, 0.7, 0.0, 0.9];
        let text = mosaic(&[picture.clone(), picture], IMAGE, 2, Tone::Grey, Ink::Plain);
        assert_eq!(text, "  █▄ █▄\n  ·▀ ·▀\n");
    }

    #[test]
    fn rows_of_pictures_are_set_apart() {
        let text = mosaic(&vec![vec![1.0; 6]; 3], IMAGE, 2, Tone::Grey, Ink::Plain);
        assert_eq!(text, "  ██ ██\n  ▀▀ ▀▀\n\n  ██\n  ▀▀\n");
    }

    #[test]
    fn signs_are_told_apart_without_colour() {
        let text =
            mosaic(&[vec![2.0, -2.0, 0.1, 2.0, 0.0, 0.0]], IMAGE, 1, Tone::Signed, Ink::Plain);
        assert_eq!(text, "  ▀▄\n  ··\n");
    }

    #[test]
    fn colours_run_from_blue_over_white_to_red() {
        assert_eq!(colour(0.0, Tone::Signed, 1.0), 231); // white
        assert_eq!(colour(1.0, Tone::Signed, 1.0), 196); // red
        assert_eq!(colour(-1.0, Tone::Signed, 1.0), 21); // blue
        assert_eq!(colour(5.0, Tone::Grey, 1.0), 255);
        assert_eq!(colour(f64::NAN, Tone::Grey, 1.0), 232);
    }
}
