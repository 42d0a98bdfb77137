//! Filters and samples as pictures inside the page.

use super::markup::{base64, escape, figure, number, plural};
use super::mosaic::{self, Scale};
use super::{Filters, Mistake};
use anyhow::{Context as _, Result};
use harmonium::findings::Evidence;
use harmonium_data::Image;
use std::fmt::Write as _;

/// More filters than that tell nothing more.
const MOST_FILTERS: usize = 256;
/// Samples shown of the data and of the model.
const MOST_SAMPLES: usize = 100;
/// Samples of one row each that a reader can still compare.
const MOST_STRIPS: usize = 40;
/// Wider than that, a sample that is not a picture is folded.
const WIDEST_STRIP: usize = 300;

/// One mosaic on the page.
struct Picture<'a> {
    tiles: &'a [Vec<f64>],
    image: Image,
    columns: usize,
    scale: Scale,
    /// The width that it may take on the page.
    room: usize,
    alt: &'a str,
}

impl Picture<'_> {
    /// An enlarged picture: the browser enlarges, so that the page stays small.
    fn html(&self) -> Result<String> {
        let bytes = mosaic::png(self.tiles, self.image, self.columns, self.scale, 1)?;
        let (width, height) = mosaic::size(self.tiles.len(), self.image, self.columns);
        let zoom = (self.room / width).clamp(1, 8);
        Ok(format!(
            "<img width=\"{}\" height=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\">\n",
            width * zoom,
            height * zoom,
            escape(self.alt),
            base64(&bytes)
        ))
    }
}

/// The mosaic of a layer's filters, the most active first.
pub(super) fn filters(filters: &Filters, image: Option<Image>) -> Result<Option<String>> {
    let Some(first) = filters.tiles.first() else { return Ok(None) };
    let (order, sorted) = order(filters);
    let tiles: Vec<Vec<f64>> =
        order.iter().take(MOST_FILTERS).map(|i| filters.tiles[*i].clone()).collect();
    let image = shape(first.len(), image);
    let columns = if image.height == 1 { 1 } else { wide_columns(tiles.len(), image) };
    let largest = |tile: &Vec<f64>| {
        tile.iter().filter(|x| x.is_finite()).fold(0.0, |m, x| f64::max(m, x.abs()))
    };
    let most: Vec<f64> = tiles.iter().map(largest).collect();
    let least = most.iter().copied().fold(f64::INFINITY, f64::min);
    let most = most.iter().copied().fold(0.0, f64::max);
    let shown = if tiles.len() < filters.tiles.len() {
        format!("The first {} of {}", tiles.len(), plural(filters.tiles.len(), "unit"))
    } else {
        plural(tiles.len(), "unit")
    };
    let caption = format!(
        "{shown}, {sorted}. Blue is positive, white zero, red negative; full colour is the largest \
         magnitude of each, from {} to {}.",
        number(least),
        number(most)
    );
    let alt = format!("Filters of layer {}: {caption}", filters.layer);
    let picture =
        Picture { tiles: &tiles, image, columns, scale: Scale::Diverging, room: 960, alt: &alt };
    let picture =
        picture.html().with_context(|| format!("filters of layer `{}`", filters.layer))?;
    Ok(Some(figure(&filters.layer, &caption, &picture)))
}

/// Units by falling activity, or by falling norm of their weights, and how to say it.
fn order(filters: &Filters) -> (Vec<usize>, &'static str) {
    let norm = |tile: &Vec<f64>| tile.iter().map(|x| x * x).sum::<f64>();
    let by_activity = filters.activity.len() == filters.tiles.len();
    let keys: Vec<f64> = if by_activity {
        filters.activity.clone()
    } else {
        filters.tiles.iter().map(norm).collect()
    };
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys[*b].total_cmp(&keys[*a]));
    (order, if by_activity { "the most active first" } else { "the strongest first" })
}

/// A mosaic about twice as wide as high.
fn wide_columns(n: usize, image: Image) -> usize {
    mosaic::square_columns(n, Image { height: image.height * 2, ..image })
}

/// The shape of a sample: its own, a strip, or a folded strip.
fn shape(n_values: usize, image: Option<Image>) -> Image {
    let own = image.filter(|i| i.height.checked_mul(i.width) == Some(n_values));
    own.unwrap_or_else(|| {
        if n_values <= WIDEST_STRIP {
            mosaic::strip(n_values)
        } else {
            mosaic::near_square(n_values)
        }
    })
}

/// A small picture of each mistake, with what it is and what it was taken for.
pub(super) fn mistakes(mistakes: &[Mistake], image: Option<Image>) -> Result<String> {
    let mut html = String::new();
    for Mistake { values, label, found: (class, p) } in mistakes {
        let caption = format!(
            "{} → {} {}",
            escape(label),
            escape(class),
            number((100.0 * p).round() / 100.0)
        );
        let (image, tiles) = (shape(values.len(), image), std::slice::from_ref(values));
        let picture =
            Picture { tiles, image, columns: 1, scale: Scale::Unit, room: 60, alt: &caption };
        let picture = picture.html()?;
        let _ = writeln!(html, "<figure>{picture}<figcaption>{caption}</figcaption></figure>");
    }
    Ok(html)
}

/// Data on the left and samples of the model on the right, in equal shades.
pub(super) fn samples(evidence: &Evidence, image: Option<Image>) -> Result<Option<String>> {
    let panels = [("Data", &evidence.data_samples), ("Model", &evidence.model_samples)];
    let Some(width) = panels.iter().find_map(|p| p.1.first()).map(Vec::len) else {
        return Ok(None);
    };
    let image = shape(width, image);
    let most = if image.height == 1 && width > 1 { MOST_STRIPS } else { MOST_SAMPLES };
    let smallest = panels.iter().map(|p| p.1.len()).filter(|n| *n > 0).min().unwrap_or(0);
    let n = smallest.min(most);
    let columns = if image.height == 1 { 1 } else { mosaic::square_columns(n, image) };
    let (scale, shades) = scale(panels.iter().flat_map(|p| p.1.iter().take(n)).flatten());
    let mut html = String::from("<div class=\"grid\">\n");
    for (name, tiles) in panels.into_iter().filter(|p| !p.1.is_empty()) {
        let caption = format!("{}. {shades}", plural(n, "sample"));
        let alt = format!("{name}: {caption}");
        let picture = Picture { tiles: &tiles[..n], image, columns, scale, room: 470, alt: &alt };
        let picture = picture.html().with_context(|| format!("samples of the {name}"))?;
        html += &figure(name, &caption, &picture);
    }
    Ok(Some(html + "</div>\n"))
}

/// From 0 to 1 for probabilities, else over the range of all values; and how to say it.
fn scale<'a>(values: impl Iterator<Item = &'a f64>) -> (Scale, String) {
    let (lo, hi) =
        values.filter(|x| x.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| {
            (f64::min(lo, *x), f64::max(hi, *x))
        });
    if lo > hi || (lo >= 0.0 && hi <= 1.0) {
        return (Scale::Unit, "Black is 0, white 1.".into());
    }
    (Scale::Range(lo, hi), format!("Black is {}, white {}.", number(lo), number(hi)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_sorted_by_activity_or_strength() {
        let tiles = vec![vec![1.0, 0.0], vec![3.0, 0.0], vec![2.0, 0.0]];
        let mut filters = Filters { layer: "h".into(), tiles, activity: Vec::new() };
        assert_eq!(order(&filters).0, [1, 2, 0]);
        filters.activity = vec![0.9, 0.1, 0.5];
        assert_eq!(order(&filters).0, [0, 2, 1]);
    }

    #[test]
    fn many_filters_are_cut_and_it_is_said() {
        let tiles = vec![vec![0.5; 4]; 300];
        let layer = Filters { layer: "<h>".into(), tiles, activity: Vec::new() };
        let html = filters(&layer, Some(Image { height: 2, width: 2 })).unwrap().unwrap();
        assert!(html.contains("The first 256 of 300 units") && html.contains("&lt;h&gt;"));
        assert_eq!(filters(&Filters::default(), None).unwrap(), None);
    }

    #[test]
    fn both_panels_have_one_scale_and_one_size() {
        let evidence = Evidence {
            data_samples: vec![vec![0.0, 4.0]; 9],
            model_samples: vec![vec![-1.0, 2.0]; 4],
            ..Evidence::default()
        };
        let html = samples(&evidence, None).unwrap().unwrap();
        assert_eq!(html.matches("4 samples. Black is −1, white 4.").count(), 4);
        let widths: Vec<&str> =
            html.split("<img ").skip(1).map(|t| t.split(" alt").next().unwrap()).collect();
        assert_eq!(widths.len(), 2);
        assert_eq!(widths[0], widths[1]);
    }

    #[test]
    fn samples_of_unequal_length_are_refused() {
        let evidence =
            Evidence { data_samples: vec![vec![0.0; 4], vec![0.0; 5]], ..Evidence::default() };
        let error = samples(&evidence, None).unwrap_err();
        assert!(format!("{error:#}").contains("5 values"), "{error:#}");
    }

    #[test]
    fn shapes_follow_the_data() {
        let digits = Image { height: 8, width: 8 };
        assert_eq!(shape(64, Some(digits)), digits);
        assert_eq!(shape(16, Some(digits)), Image { height: 1, width: 16 });
        assert_eq!(shape(1000, None), Image { height: 32, width: 32 });
    }
}
