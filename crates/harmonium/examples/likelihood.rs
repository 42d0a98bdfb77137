//! A likelihood with its interval, of a machine too large to enumerate.
//!
//! The data are noisy bars on 6 × 6 pixels: each column is bright or dark, and each pixel is drawn from
//! its grey value. The noise alone has 36 × 0.400 = 14.4 nats, which no model can do without, and
//! independent fair pixels would need 36 ln 2 = 24.95. The sum over the states of 36 visible and 30
//! hidden units has 2³⁰ terms on its cheaper side, so ln Z is sampled, by annealing from both sides.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use harmonium::data::ndarray::Array2;
use harmonium::evaluation::log_partition::Settings;
use harmonium::model::Scoring;
use harmonium::progress::Silent;
use harmonium::{Binarize, Dataset, Method, Plan, Rbm};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let grey = |(k, pixel): (usize, usize)| if k >> (pixel % 6) & 1 == 1 { 220 } else { 35 };
    let bars: Array2<u8> = Array2::from_shape_fn((640, 36), grey);
    let data = Dataset::from_array(bars.view())?.binarized(Binarize::Sample)?;
    let plan = Plan { learning_rate: 0.05, ..Plan::for_epochs(100) };
    let model = Rbm::binary(36, 30)?.train(&data, &plan)?;
    // `model.score(&data, Method::Auto)` does the same with more temperatures.
    let annealing = Settings { betas: Some(500), ..Settings::default() };
    let scoring = Scoring { annealing, ..Scoring::default() };
    let score = model.score_with(&data, &scoring, &mut Silent)?;
    let (lower, upper) = score.interval().ok_or("annealing gives an interval")?;
    let upper = upper.ok_or("annealing from both sides gives it an upper end")?;

    let p = 220.0_f64 / 255.0;
    let noise = 36.0 * (p * p.ln() + (1.0 - p) * (1.0 - p).ln());
    let independent = -36.0 * std::f64::consts::LN_2;
    println!("mean log-likelihood of {} pictures by {}, in nats:", score.n, score.method);
    println!("  noise alone         {noise:7.2}");
    println!("  this model          {:7.2}, between {lower:.2} and {upper:.2}", score.mean);
    println!("  independent pixels  {independent:7.2}");
    assert_eq!(score.method, Method::Ais, "2^30 terms are too many to sum unasked");
    assert!(lower <= score.mean && score.mean <= upper);
    assert!(independent < lower && lower < noise, "better than chance, not better than the noise");
    Ok(())
}
