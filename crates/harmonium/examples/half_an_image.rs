//! A deep Boltzmann machine learns pictures and completes one of which half is given.
//!
//! From an array of grey values to a trained model, samples, features, a score and a file, with nothing
//! but verbs of the model.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use harmonium::data::ndarray::Array2;
use harmonium::{Binarize, Dataset, Dbm, Method, Model, Plan, Sweeps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let images = Array2::from_shape_fn((600, 36), |(row, pixel)| stripes(row % 3, pixel));
    let data = Dataset::from_array(images.view())?.binarized(Binarize::Sample)?;
    let model = Dbm::binary(36, &[16, 8])?.train(&data, &Plan::for_epochs(100))?;
    let (half, top) = (data.select_rows(&[0])?, Array2::from_shape_fn((1, 36), |(_, p)| p < 18));
    let rest = model.given(&half, Some(top.view()))?.sample(16, Sweeps(1000), 0)?;
    let (features, score) = (model.features(&data)?, model.score(&half, Method::Auto)?);
    println!("{} features of each image; ln p = {:.1} nats", features.ncols(), score.mean);
    let path = std::env::temp_dir().join(format!("dbm-{}.safetensors", std::process::id()));
    model.save(&path)?;
    assert_eq!(Model::load(&path)?, model, "the file holds all of the model");
    show(&rest);
    Ok(std::fs::remove_file(path)?)
}

/// A pixel of picture `k`, 6 × 6: every third column is bright, the first of them column `k`.
fn stripes(k: usize, pixel: usize) -> u8 {
    if (pixel % 6 + 6 - k).is_multiple_of(3) { 230 } else { 20 }
}

/// The mean of the samples: the upper half was given, the lower half is the model's.
fn show(samples: &Array2<f64>) {
    let mean = |pixel: usize| samples.column(pixel).sum() / samples.nrows() as f64;
    for row in 0..6 {
        let shade = |pixel| if mean(pixel) > 0.5 { '█' } else { '·' };
        println!("{}", (6 * row..6 * row + 6).map(shade).collect::<String>());
    }
    assert!((18..36).all(|p| (mean(p) > 0.5) == (stripes(0, p) > 128)), "the stripes go on");
}
