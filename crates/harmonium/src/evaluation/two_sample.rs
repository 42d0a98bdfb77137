//! Generated samples against held-out data: means, correlations, neighbours, memorisation.
//!
//! *Means and correlations* are compared with what sampling noise alone would give: z-scores of
//! the means, and the differences of correlations beside those between two halves of the data.
//!
//! *Adversarial accuracy* of nearest neighbours, for two sets $S$, $T$ of $n$ rows each,
//!
//! $$AA = \tfrac12\Bigl(\tfrac1n\sum_{i \in T} [d_{TS}(i) > d_{TT}(i)]
//!      + \tfrac1n\sum_{i \in S} [d_{ST}(i) > d_{SS}(i)]\Bigr),$$
//!
//! ties counted half, $d_{AB}(i)$ being the distance from row $i$ of $A$ to the nearest (other) row
//! of $B$: how often a neighbour gives away which set a row is from. 1/2 if both are one
//! distribution, 1 if they lie apart, 0 if one copies the other. $AA$ with held-out rows minus $AA$
//! with training rows is the privacy loss (Yale et al., ESANN 2019).
//!
//! If labels are thrown at random over the rows, indicators of two rows are correlated only if they
//! are each other's neighbours, so $AA$ has a standard deviation of at most $1/(2\sqrt n)$.

use crate::error::Error;
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::random::Stream;
use rayon::prelude::*;
use serde::Serialize;

/// Rows of each set that are compared; more are drawn from.
pub const MOST_ROWS: usize = 2000;
/// The fewest rows that anything is said about.
pub const LEAST_ROWS: usize = 10;
/// Columns whose pairs are compared.
const MOST_COLUMNS: usize = 400;
/// Steps (words of bits, or numbers) that the search for copies of training rows may take.
const SEARCH: usize = 8_000_000_000;
/// Share of the held-out rows that count as close to the training rows.
const CLOSE: f64 = 0.05;
/// Standard errors from which on a difference is more than chance.
const ALARM: f64 = 4.0;
/// Standard errors by which close samples must prefer training rows, or they are merely dull.
const DULL: f64 = 3.0;

/// What the values of samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// 0 and 1.
    Bits,
    /// -1 and 1.
    Spins,
    /// Any numbers.
    Numbers,
}

impl Domain {
    /// What stands beside 1, if there are only two values.
    fn low(self) -> Option<f64> {
        match self {
            Self::Bits => Some(0.0),
            Self::Spins => Some(-1.0),
            Self::Numbers => None,
        }
    }
}

/// Rows of samples, packed where there are only two values.
#[derive(Clone, Debug)]
pub struct Samples {
    kind: Domain,
    n_columns: usize,
    bits: BitMatrix,
    numbers: Vec<f64>,
}

impl Samples {
    /// No rows yet.
    pub fn new(n_columns: usize, kind: Domain) -> Self {
        Self { kind, n_columns, bits: BitMatrix::zeros(0, n_columns), numbers: Vec::new() }
    }

    /// Samples given row by row, packed if they can be.
    ///
    /// # Errors
    ///
    /// If the values do not fill whole rows, or one is not finite.
    pub fn from_rows(n_columns: usize, values: &[f64]) -> Result<Self, Error> {
        if n_columns == 0 || !values.len().is_multiple_of(n_columns) {
            let what = format!("rows of {n_columns} columns");
            return Err(Error::Shape { what, expected: n_columns, found: values.len() });
        }
        let only = |kind: Domain| values.iter().all(|x| Some(*x) == kind.low() || *x == 1.0);
        let kinds = [Domain::Bits, Domain::Spins];
        let kind = kinds.into_iter().find(|k| only(*k)).unwrap_or(Domain::Numbers);
        let mut samples = Self::new(n_columns, kind);
        values.chunks_exact(n_columns).try_for_each(|row| samples.push(row))?;
        Ok(samples)
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// If it has other columns, or a value that samples of this kind do not have.
    pub fn push(&mut self, row: &[f64]) -> Result<(), Error> {
        if row.len() != self.n_columns {
            let (expected, found) = (self.n_columns, row.len());
            return Err(Error::Shape { what: "a row of samples".into(), expected, found });
        }
        let low = self.kind.low();
        let fits = |x: f64| low.map_or(x.is_finite(), |low| x == low || x == 1.0);
        if let Some(entry) = row.iter().position(|x| !fits(*x)) {
            let place = format!("row {}", self.n_rows());
            return Err(Error::ParameterValue { place, what: "sample", entry, value: row[entry] });
        }
        match low {
            Some(_) => self.bits.push_row(|i| row[i] == 1.0),
            None => self.numbers.extend_from_slice(row),
        }
        Ok(())
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match self.kind {
            Domain::Numbers => self.numbers.len() / self.n_columns.max(1),
            Domain::Bits | Domain::Spins => self.bits.n_rows(),
        }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.numbers[row * self.n_columns..(row + 1) * self.n_columns]
    }

    fn value(&self, row: usize, column: usize) -> f64 {
        match self.kind.low() {
            Some(low) => {
                if self.bits.get(row, column) {
                    1.0
                } else {
                    low
                }
            }
            None => self.row(row)[column],
        }
    }

    fn column(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        (0..self.n_rows()).map(move |row| self.value(row, column))
    }

    /// The rows in this order.
    fn select(&self, rows: &[usize]) -> Self {
        let mut chosen = Self::new(self.n_columns, self.kind);
        for &row in rows {
            match self.kind {
                Domain::Numbers => chosen.numbers.extend_from_slice(self.row(row)),
                Domain::Bits | Domain::Spins => chosen.bits.push_words(self.bits.row(row)),
            }
        }
        chosen
    }

    /// At most `n` rows, drawn without replacement.
    fn some(&self, n: usize, stream: Stream) -> Self {
        let mut order: Vec<usize> = (0..self.n_rows()).collect();
        if n < order.len() {
            stream.shuffle(&mut order);
            order.truncate(n);
        }
        self.select(&order)
    }

    /// The same as numbers, for a comparison with others that are.
    fn unpacked(&self) -> Self {
        let mut all = Self::new(self.n_columns, Domain::Numbers);
        for row in 0..self.n_rows() {
            all.numbers.extend((0..self.n_columns).map(|c| self.value(row, c)));
        }
        all
    }

    /// Steps that one distance takes.
    fn cost(&self) -> usize {
        match self.kind {
            Domain::Numbers => self.n_columns,
            Domain::Bits | Domain::Spins => self.bits.words_per_row(),
        }
    }

    /// Whether it has rows like those of `other`, and enough of them.
    fn check(&self, other: &Self) -> Result<(), Error> {
        if self.n_columns != other.n_columns {
            let (expected, found) = (other.n_columns, self.n_columns);
            return Err(Error::Shape { what: "the columns of samples".into(), expected, found });
        }
        if self.n_rows() < LEAST_ROWS {
            let value = format!("{} rows", self.n_rows());
            return Err(Error::Setting { name: "data", value, range: "at least 10 rows" });
        }
        Ok(())
    }
}

/// Whether a row may be its own neighbour.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Allowed,
    LeftOut,
}

/// No neighbour at all; sets have at least ten rows, so it is never the answer.
const NOBODY: (f64, usize) = (f64::INFINITY, 0);

/// The distance of each row of `from` to its nearest row of `to`, and which that is: Hamming's of
/// bits, else the square of Euclid's.
fn nearest(from: &Samples, to: &Samples, own: Own) -> Vec<(f64, usize)> {
    let others = |i: usize| (0..to.n_rows()).filter(move |&j| own == Own::Allowed || i != j);
    let rows = (0..from.n_rows()).into_par_iter();
    if from.kind != Domain::Numbers {
        let (a, b) = (&from.bits, &to.bits);
        let distance = |i: usize, j: usize| -> u32 {
            a.row(i).iter().zip(b.row(j)).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let least = |i| others(i).map(|j| (distance(i, j), j)).min();
        return rows.map(|i| least(i).map_or(NOBODY, |(d, j)| (f64::from(d), j))).collect();
    }
    let distance = |i: usize, j: usize| -> f64 {
        from.row(i).iter().zip(to.row(j)).map(|(a, b)| (a - b) * (a - b)).sum()
    };
    let closer = |a: (f64, usize), b: (f64, usize)| if b.0 < a.0 { b } else { a };
    rows.map(|i| others(i).map(|j| (distance(i, j), j)).fold(NOBODY, closer)).collect()
}

/// How the means of columns compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Means {
    /// Root mean square of the differences.
    pub rms_difference: f64,
    /// Root mean square of the differences, each in standard deviations of its column, of columns that
    /// vary: [`Means::rms_z`] without what the number of rows does to it.
    pub rms_standardised: f64,
    /// The same of differences by chance alone.
    pub rms_by_chance: f64,
    /// Root mean square of the z-scores of columns that vary: about 1 if nothing differs.
    pub rms_z: f64,
    /// The largest |z|.
    pub max_z: f64,
    /// The value that the largest of these z-scores exceeds by chance one time in a thousand.
    pub max_z_by_chance: f64,
    /// Where it is.
    pub column: usize,
}

/// How the correlations of pairs of columns compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correlations {
    /// Pairs compared.
    pub pairs: usize,
    /// Root mean square of the differences.
    pub rms_difference: f64,
    /// The same between two halves of the held-out data, scaled to the numbers of rows compared.
    pub rms_noise: f64,
    /// The largest difference.
    pub max_difference: f64,
    /// The same between the halves, scaled.
    pub max_noise: f64,
    /// The columns of the largest difference.
    pub columns: (usize, usize),
}

/// How well neighbours tell two sets apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Adversarial {
    /// $AA$.
    pub accuracy: f64,
    /// At most its standard deviation if both sets are of one distribution.
    pub std_error: f64,
    /// Rows of each set.
    pub n: usize,
}

/// Whether generated rows lie closer to training rows than new rows do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memorisation {
    /// $AA$ between generated and training rows.
    pub train: Adversarial,
    /// $AA$ with held-out rows minus $AA$ with training rows, of as many rows each: about 0 if
    /// nothing was memorised.
    pub privacy_loss: f64,
    /// The distance within which 5 % of the held-out rows have a training row: Hamming's, or
    /// Euclid's.
    pub close: f64,
    /// Share of the generated rows that have a training row within it.
    pub generated_close: f64,
    /// Share of the held-out rows that do: more than 5 % where many are equally far.
    pub held_out_close: f64,
    /// Share of the generated rows that are a training row.
    pub copies: f64,
    /// Of the generated rows that close to any row, the share that is nearer to a training row than
    /// to a held-out one.
    pub nearest_is_train: f64,
    /// The same if it made no difference: the share of training rows among both.
    pub nearest_by_chance: f64,
    /// Training rows searched.
    pub n_train: usize,
    /// Whether there is reason to fear that training rows are repeated.
    pub alarm: bool,
}

impl Memorisation {
    /// The alarm as a sentence.
    pub fn sentence(&self) -> Option<String> {
        self.alarm.then(|| {
            format!(
                "{:.0} % of the generated samples lie as close to a training row as {:.0} % of the \
                 held-out rows do, and close ones are nearest to a training row in {:.0} % of the \
                 cases where chance gives {:.0} %: the model repeats what it was trained on",
                100.0 * self.generated_close,
                100.0 * self.held_out_close,
                100.0 * self.nearest_is_train,
                100.0 * self.nearest_by_chance
            )
        })
    }
}

/// Generated samples against held-out data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwoSample {
    /// Generated rows compared.
    pub n_generated: usize,
    /// Held-out rows compared.
    pub n_held_out: usize,
    /// The variance of generated rows over that of held-out ones, each summed over all columns: 1 for
    /// one distribution, 0 where all samples are alike. Absent where the data does not vary.
    pub spread: Option<f64>,
    /// Means of columns.
    pub means: Means,
    /// Correlations of pairs; absent where fewer than two columns vary.
    pub correlations: Option<Correlations>,
    /// $AA$ between generated and held-out rows.
    pub adversarial: Adversarial,
    /// What the training data says, if it was given.
    pub memorisation: Option<Memorisation>,
}

/// Compares generated rows with held-out ones, and both with training rows. At most [`MOST_ROWS`]
/// of each are used, chosen by `stream`; of the training rows as many as can be searched.
///
/// # Errors
///
/// If they have different columns, or one has fewer than [`LEAST_ROWS`] rows.
pub fn compare(
    generated: &Samples,
    held_out: &Samples,
    train: Option<&Samples>,
    stream: Stream,
) -> Result<TwoSample, Error> {
    let sets = [Some(generated), Some(held_out), train];
    sets.iter().flatten().try_for_each(|s| s.check(held_out))?;
    if sets.iter().flatten().any(|s| s.kind != held_out.kind) {
        let train = train.map(Samples::unpacked);
        return compare(&generated.unpacked(), &held_out.unpacked(), train.as_ref(), stream);
    }
    let generated = generated.some(MOST_ROWS, stream.fork(0));
    let held_out = held_out.some(MOST_ROWS, stream.fork(1));
    let adversarial = adversarial_accuracy(&generated, &held_out, stream.fork(2));
    Ok(TwoSample {
        n_generated: generated.n_rows(),
        n_held_out: held_out.n_rows(),
        spread: spread(&generated, &held_out),
        means: means(&generated, &held_out),
        correlations: correlations(&generated, &held_out, stream.fork(3)),
        adversarial,
        memorisation: train
            .map(|t| memorisation(&generated, &held_out, t, adversarial, stream.fork(4))),
    })
}

/// $AA$ of as many rows of both as the smaller has.
fn adversarial_accuracy(a: &Samples, b: &Samples, stream: Stream) -> Adversarial {
    let n = a.n_rows().min(b.n_rows()).min(MOST_ROWS);
    let (a, b) = (a.some(n, stream.fork(0)), b.some(n, stream.fork(1)));
    let recognised = |own: &Samples, other: &Samples| -> f64 {
        let inside = nearest(own, own, Own::LeftOut);
        let across = nearest(own, other, Own::Allowed);
        across.iter().zip(&inside).map(|(x, y)| more(x.0, y.0)).sum()
    };
    let accuracy = (recognised(&a, &b) + recognised(&b, &a)) / (2 * n) as f64;
    Adversarial { accuracy, std_error: 0.5 / (n as f64).sqrt(), n }
}

/// 1 where x exceeds y, ties counted half.
fn more(x: f64, y: f64) -> f64 {
    if x == y { 0.5 } else { f64::from(u8::from(x > y)) }
}

fn memorisation(
    generated: &Samples,
    held_out: &Samples,
    train: &Samples,
    test: Adversarial,
    stream: Stream,
) -> Memorisation {
    // Neighbours are closer among more rows, so both accuracies are taken of equally many.
    let n = test.n.min(train.n_rows());
    let with_train = adversarial_accuracy(&generated.some(n, stream), train, stream.fork(0));
    let test = if n < test.n {
        adversarial_accuracy(&generated.some(n, stream), held_out, stream.fork(2))
    } else {
        test
    };
    // Copies of rows that were left out would go unnoticed: here as many as possible are searched.
    let cost = (generated.n_rows() + held_out.n_rows()) * train.cost();
    let train = train.some((SEARCH / cost).max(MOST_ROWS), stream.fork(1));
    let distances = |x: Vec<(f64, usize)>| x.into_iter().map(|d| d.0).collect::<Vec<f64>>();
    let to_train = nearest(generated, &train, Own::Allowed);
    let to_held_out = nearest(generated, held_out, Own::Allowed);
    let mut of_held_out = distances(nearest(held_out, &train, Own::Allowed));
    of_held_out.sort_by(f64::total_cmp);
    let n = [generated.n_rows() as f64, held_out.n_rows() as f64];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let close = of_held_out[(CLOSE * n[1]) as usize];
    let sides =
        train_or_held_out(&to_train, &to_held_out, close, [train.n_rows(), held_out.n_rows()]);
    let of_generated = distances(to_train);
    let within = |d: &[f64]| d.iter().filter(|d| **d <= close).count() as f64 / d.len() as f64;
    let (generated_close, held_out_close) = (within(&of_generated), within(&of_held_out));
    let pooled = (n[0] * generated_close + n[1] * held_out_close) / (n[0] + n[1]);
    let close_error = (pooled * (1.0 - pooled) * (1.0 / n[0] + 1.0 / n[1])).sqrt();
    // Samples that are merely dull lie close to training and held-out rows alike.
    let alarm = generated_close > 2.0 * held_out_close
        && generated_close - held_out_close > ALARM * close_error
        && sides.train - sides.by_chance > DULL * sides.error;
    Memorisation {
        privacy_loss: test.accuracy - with_train.accuracy,
        train: with_train,
        close: if train.kind == Domain::Numbers { close.sqrt() } else { close },
        generated_close,
        held_out_close,
        copies: of_generated.iter().filter(|d| **d == 0.0).count() as f64 / n[0],
        nearest_is_train: sides.train,
        nearest_by_chance: sides.by_chance,
        n_train: train.n_rows(),
        alarm,
    }
}

/// Which set the nearest row of close samples is from.
struct Shares {
    train: f64,
    by_chance: f64,
    /// Standard deviation if it is chance which rows were trained on.
    error: f64,
}

/// Of the samples that have any row within `close`, how many are nearest to a training row; `n` are
/// the rows of both sets. Neither set is preferred, so samples that lie near everything do not
/// count as copies.
fn train_or_held_out(
    train: &[(f64, usize)],
    held_out: &[(f64, usize)],
    close: f64,
    n: [usize; 2],
) -> Shares {
    let by_chance = n[0] as f64 / (n[0] + n[1]) as f64;
    let (mut share, mut total, mut chosen) = (0.0, 0.0, vec![0.0; n[0] + n[1]]);
    for (t, h) in train.iter().zip(held_out).filter(|(t, h)| t.0.min(h.0) <= close) {
        share += if t.0 == h.0 { by_chance } else { f64::from(u8::from(t.0 < h.0)) };
        chosen[if t.0 <= h.0 { t.1 } else { n[0] + h.1 }] += 1.0;
        total += 1.0;
    }
    if total == 0.0 {
        return Shares { train: by_chance, by_chance, error: 0.0 };
    }
    // A row that many samples are nearest to weighs as much.
    let weight = chosen.iter().map(|c: &f64| c * c).sum::<f64>() / (total * total);
    let error = (by_chance * (1.0 - by_chance) * weight).sqrt();
    Shares { train: share / total, by_chance, error }
}

/// Mean and variance of a column.
fn column_moments(x: &Samples, column: usize) -> (f64, f64) {
    let n = x.n_rows() as f64;
    let mean = x.column(column).sum::<f64>() / n;
    (mean, x.column(column).map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

/// The total variance of `a` over that of `b`.
fn spread(a: &Samples, b: &Samples) -> Option<f64> {
    let total = |x: &Samples| (0..x.n_columns).map(|c| column_moments(x, c).1).sum::<f64>();
    let of_data = total(b);
    (of_data > 0.0).then(|| total(a) / of_data)
}

fn means(a: &Samples, b: &Samples) -> Means {
    let n = [a.n_rows() as f64, b.n_rows() as f64];
    let column = |c: usize| {
        let ((mean_a, var_a), (mean_b, var_b)) = (column_moments(a, c), column_moments(b, c));
        let difference = mean_a - mean_b;
        // The variance around the common mean, as for two proportions: a column that is constant
        // in one set still has one.
        let share = n[0] / (n[0] + n[1]);
        let pooled =
            share * var_a + (1.0 - share) * var_b + share * (1.0 - share) * difference * difference;
        let error = (pooled * (1.0 / n[0] + 1.0 / n[1])).sqrt();
        (difference, (error > 0.0).then(|| difference / error))
    };
    let all: Vec<(f64, Option<f64>)> = (0..a.n_columns).into_par_iter().map(column).collect();
    let scores: Vec<(usize, f64)> =
        all.iter().enumerate().filter_map(|(c, x)| Some((c, x.1?.abs()))).collect();
    let worst = scores.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let squares = |x: f64| x * x;
    let rms = |sum: f64, n: usize| (sum / n.max(1) as f64).sqrt();
    let rms_z = rms(scores.iter().map(|z| squares(z.1)).sum(), scores.len());
    let rms_by_chance = (1.0 / n[0] + 1.0 / n[1]).sqrt();
    Means {
        rms_standardised: rms_z * rms_by_chance,
        rms_by_chance,
        rms_difference: rms(all.iter().map(|x| squares(x.0)).sum(), all.len()),
        rms_z,
        max_z: worst.1,
        // P(|z| > t) <= exp(-t^2 / 2), over all columns.
        max_z_by_chance: (2.0 * (1000.0 * scores.len().max(1) as f64).ln()).sqrt(),
        column: worst.0,
    }
}

/// Columns of `x` at mean 0 and length 1; zeros where they are constant.
fn standardised(x: &Samples, rows: std::ops::Range<usize>, columns: &[usize]) -> Vec<Vec<f64>> {
    let column = |&c: &usize| {
        let mut values: Vec<f64> = rows.clone().map(|r| x.value(r, c)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter_mut().for_each(|v| *v -= mean);
        let length = values.iter().map(|v| v * v).sum::<f64>().sqrt();
        let scale = if length > 1e-9 * (1.0 + mean.abs()) { 1.0 / length } else { 0.0 };
        values.iter_mut().for_each(|v| *v *= scale);
        values
    };
    columns.par_iter().map(column).collect()
}

fn correlations(a: &Samples, b: &Samples, stream: Stream) -> Option<Correlations> {
    // Halves of rows in random order: files are often sorted.
    let mut order: Vec<usize> = (0..b.n_rows()).collect();
    stream.fork(0).shuffle(&mut order);
    let b = &b.select(&order);
    let (n, half) = (b.n_rows(), b.n_rows() / 2);
    let mut columns: Vec<usize> = (0..b.n_columns).collect();
    let varies = |x: &Vec<f64>| x.iter().any(|v| *v != 0.0);
    let first: Vec<bool> = standardised(b, 0..half, &columns).iter().map(varies).collect();
    let second: Vec<bool> = standardised(b, half..n, &columns).iter().map(varies).collect();
    columns.retain(|&c| first[c] && second[c]);
    stream.fork(1).shuffle(&mut columns);
    columns.truncate(MOST_COLUMNS);
    columns.sort_unstable();
    if columns.len() < 2 {
        return None;
    }
    let generated =
        differences(&standardised(a, 0..a.n_rows(), &columns), &standardised(b, 0..n, &columns));
    let halves =
        differences(&standardised(b, 0..half, &columns), &standardised(b, half..n, &columns));
    // Variances of correlations fall with the number of rows.
    let per_row = |n: usize| 1.0 / n as f64;
    let scale = ((per_row(a.n_rows()) + per_row(n)) / (per_row(half) + per_row(n - half))).sqrt();
    let pairs = columns.len() * (columns.len() - 1) / 2;
    let rms = |d: &Differences| (d.squares / pairs as f64).sqrt();
    Some(Correlations {
        pairs,
        rms_difference: rms(&generated),
        rms_noise: scale * rms(&halves),
        max_difference: generated.max,
        max_noise: scale * halves.max,
        columns: (columns[generated.pair.0], columns[generated.pair.1]),
    })
}

/// What the correlations of two sets differ by.
struct Differences {
    squares: f64,
    max: f64,
    pair: (usize, usize),
}

fn differences(a: &[Vec<f64>], b: &[Vec<f64>]) -> Differences {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let of_column = |i: usize| {
        let mut found = Differences { squares: 0.0, max: 0.0, pair: (0, 1) };
        for j in 0..i {
            let difference = (dot(&a[i], &a[j]) - dot(&b[i], &b[j])).abs();
            found.squares += difference * difference;
            if difference > found.max {
                (found.max, found.pair) = (difference, (j, i));
            }
        }
        found
    };
    // Collected before it is summed: the sum must not depend on the threads.
    let columns: Vec<Differences> = (0..a.len()).into_par_iter().map(of_column).collect();
    let none = Differences { squares: 0.0, max: 0.0, pair: (0, 1) };
    columns.into_iter().fold(none, |all, one| Differences {
        squares: all.squares + one.squares,
        pair: if one.max > all.max { one.pair } else { all.pair },
        max: all.max.max(one.max),
    })
}
