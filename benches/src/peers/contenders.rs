//! Who does what, how each differs, and how far apart honest results may lie.

use super::Row;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item {
    Train,
    TrainSmallBatches,
    Sample,
    Features,
    Score,
    Ais,
    Dbm,
}

impl Item {
    pub(super) const ALL: [Self; 7] = [
        Self::Train,
        Self::TrainSmallBatches,
        Self::Sample,
        Self::Features,
        Self::Score,
        Self::Ais,
        Self::Dbm,
    ];
    /// Temperatures of AIS.
    pub(super) const BETAS: usize = 10_000;

    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Train => "a",
            Self::TrainSmallBatches => "b",
            Self::Sample => "c",
            Self::Features => "d",
            Self::Score => "e",
            Self::Ais => "f",
            Self::Dbm => "g",
        }
    }

    /// The function of a peer's script that does it.
    pub(super) fn function(self) -> &'static str {
        match self {
            Self::Train | Self::TrainSmallBatches => "train",
            Self::Sample => "sample",
            Self::Features => "features",
            Self::Score => "score",
            Self::Ais => "ais",
            Self::Dbm => "dbm",
        }
    }

    pub(super) fn batch(self) -> usize {
        if self == Self::TrainSmallBatches { 10 } else { 100 }
    }

    pub(super) fn epochs(self, asked: usize) -> usize {
        match self {
            Self::TrainSmallBatches => 1,
            Self::Dbm => 3,
            _ => asked,
        }
    }

    pub(super) fn title(self, epochs: usize) -> String {
        match self {
            Self::Train | Self::TrainSmallBatches => format!(
                "PCD-1 on 60,000x784, 500 hidden, batch and chains {}, epochs {}",
                self.batch(),
                self.epochs(epochs)
            ),
            Self::Sample => "1,000 chains x 100 Gibbs sweeps, 784x500".into(),
            Self::Features => "p(h|v) of 60,000 rows, 784x500".into(),
            Self::Score => "pseudo-likelihood of 10,000 rows, 784x500".into(),
            Self::Ais => "AIS, 100 chains x 10,000 temperatures, 784x500".into(),
            Self::Dbm => format!(
                "a centered DBM, 784-500-1000, epochs {}: 10 iterations of mean field, 5 sweeps of 100 chains",
                self.epochs(epochs)
            ),
        }
    }

    /// What the reader must know to read the row.
    pub(super) fn remark(self) -> &'static str {
        match self {
            Self::Train | Self::TrainSmallBatches => {
                "harmonium: the whole process, file to finished model, and the monitor's metrics; \
                 peers: the loop alone, data in memory, which favours them"
            }
            Self::Sample => {
                "harmonium: the whole process, of which the second row is start, load and write"
            }
            Self::Features => {
                "harmonium: the whole process, reading the images and writing the features; \
                 peers: the product and the sigmoid alone, which favours them"
            }
            Self::Score => {
                "not the same quantity: harmonium flips each of the 784 pixels of a row and is exact; \
                 scikit-learn and learnergy flip one pixel at random and multiply by 784"
            }
            Self::Ais => "peers run fewer temperatures and are scaled linearly, unless --full",
            Self::Dbm => {
                "harmonium: the whole process, file to finished model; the second row stops mean field where a \
                 row moves by less than 0.001. bound: the variational bound of the test rows by what each learned, \
                 all by `harmonium score`"
            }
        }
    }

    /// By what factor an honest result may differ from harmonium's. One model serves (c) to (f), so
    /// there only rounding and sampling are left; of (a), (b) and (g) see [`Peer::band`].
    fn band(self) -> f64 {
        match self {
            Self::Train | Self::TrainSmallBatches | Self::Dbm => f64::INFINITY,
            Self::Sample => 1.03,
            Self::Features => 1.0001,
            Self::Score => 1.15, // one random pixel per row: a standard error of some 3 %
            Self::Ais => 1.02,
        }
    }
}

/// How harmonium is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Variant {
    /// With the peers' algorithm: not centered, constant rate and momentum, no penalty.
    Plain,
    /// The same without momentum, which some peers do not have.
    NoMomentum,
    /// With its own defaults.
    Defaults,
    /// With next to nothing to do.
    StartOnly,
    /// With mean field that ends where rows rest.
    AtRest,
}

/// A program to compare with.
#[derive(Debug)]
pub(super) struct Peer {
    pub name: &'static str,
    /// What pip installs; the first is what its version is.
    pub packages: &'static [&'static str],
    items: &'static [Item],
    /// Measured in one round only.
    slow: bool,
    /// By what factor learned statistics may differ from harmonium's.
    band: f64,
    /// Whether it learns with momentum.
    momentum: bool,
    pub differs: &'static str,
}

use Item::{Ais, Dbm, Features, Sample, Score, Train, TrainSmallBatches};

pub(super) const PEERS: [Peer; 7] = [
    Peer {
        name: "numpy",
        packages: &["numpy"],
        items: &[Train, TrainSmallBatches, Sample, Features, Ais],
        slow: false,
        band: 1.15,
        momentum: true,
        differs: "a loop of ours, float32: buffers made once, both phases in one product; the same algorithm",
    },
    Peer {
        name: "torch",
        packages: &["torch", "numpy"],
        items: &[Train, TrainSmallBatches, Sample, Features, Ais, Dbm],
        slow: false,
        band: 1.15,
        momentum: true,
        differs: "a loop of ours, float32: in place, no autograd, momentum inside the gradient's product; \
                  the same algorithm",
    },
    Peer {
        name: "jax",
        packages: &["jax", "jaxlib", "numpy"],
        items: &[Train, TrainSmallBatches, Sample, Features],
        slow: false,
        band: 1.15,
        momentum: true,
        differs: "a loop of ours, float32: an epoch is one compiled scan, compiling not timed; the same algorithm",
    },
    Peer {
        name: "sklearn-f32",
        packages: &["scikit-learn", "scipy", "numpy", "vega-datasets"],
        items: &[Train, TrainSmallBatches, Sample, Features, Score],
        slow: false,
        band: 1.6,
        momentum: false,
        differs: "BernoulliRBM given float32. No momentum; visible biases start at 0; as many chains as rows in a \
                  batch, kept as sampled hidden states that start at 0; both phases use hidden probabilities; \
                  batches in file order",
    },
    Peer {
        name: "sklearn-f64",
        packages: &["scikit-learn", "scipy", "numpy", "vega-datasets"],
        items: &[Train, TrainSmallBatches, Sample, Features, Score],
        slow: true,
        band: 1.6,
        momentum: false,
        differs: "the same given float64, as most users call it",
    },
    Peer {
        name: "rbms",
        packages: &["rbms", "torch", "numpy"],
        items: &[Train, TrainSmallBatches, Sample, Features, Ais],
        slow: true,
        band: 1.15,
        momentum: true,
        differs: "its own PCD step with torch's SGD, uncentered, without the HDF5 file it writes to at each update; \
                  divides the gradient by its norm, so that it learns at another pace: what it learned is from an \
                  untimed run without that; two v-to-h products for the chains of each update; features also \
                  draw states; its AIS starts at its own visible biases",
    },
    Peer {
        name: "learnergy",
        packages: &["learnergy", "torch", "numpy"],
        items: &[Train, TrainSmallBatches, Sample, Features, Score],
        slow: true,
        band: 2.5,
        momentum: true,
        differs: "RBM.fit as documented: CD-1 from the data (it has no PCD), gradients by autograd of free energies, \
                  visible biases start at 0, shuffled by a DataLoader, and the pseudo-likelihood of every batch; \
                  features also draw states",
    },
];

/// Harmonium or a peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Contender {
    Ours(Variant),
    Peer(&'static Peer),
}

impl Contender {
    /// All that take part in an item.
    pub(super) fn of(item: Item, peers: &[&'static Peer]) -> impl Iterator<Item = Self> {
        let extra: &[Variant] = match item {
            Train | TrainSmallBatches => &[Variant::NoMomentum, Variant::Defaults],
            Sample => &[Variant::StartOnly],
            Dbm => &[Variant::AtRest],
            Features | Score | Ais => &[],
        };
        let ours = std::iter::once(Variant::Plain).chain(extra.iter().copied()).map(Self::Ours);
        ours.chain(peers.iter().copied().filter(move |p| p.items.contains(&item)).map(Self::Peer))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours(Variant::Plain) => "harmonium",
            Self::Ours(Variant::NoMomentum) => "harmonium, no momentum",
            Self::Ours(Variant::Defaults) => "harmonium, defaults",
            Self::Ours(Variant::StartOnly) => "harmonium, 1 sweep",
            Self::Ours(Variant::AtRest) => "harmonium, at rest",
            Self::Peer(peer) => peer.name,
        }
    }

    /// What it is divided by and held against: harmonium with the same settings.
    pub(super) fn beside(self, item: Item) -> Variant {
        let trains = matches!(item, Train | TrainSmallBatches);
        match self {
            Self::Peer(peer) if trains && !peer.momentum => Variant::NoMomentum,
            _ => Variant::Plain,
        }
    }

    pub(super) fn is(self, variant: Variant) -> bool {
        matches!(self, Self::Ours(ours) if ours == variant)
    }

    pub(super) fn is_slow(self) -> bool {
        matches!(self, Self::Peer(Peer { slow: true, .. }))
    }

    /// By what factor its results may differ from those of the first contender.
    fn band(self, item: Item) -> f64 {
        match self {
            // Other settings, other results: nothing to hold against each other.
            Self::Ours(_) => f64::INFINITY,
            Self::Peer(peer) => peer.band.min(item.band()).max(1.0),
        }
    }
}

/// Marks rows whose results lie too far from those of harmonium with the same settings.
pub(super) fn compare_checks(item: Item, rows: &mut [Row]) {
    let ours: Vec<(Variant, serde_json::Map<_, _>)> = rows
        .iter()
        .filter_map(|row| match row.contender {
            Contender::Ours(variant) => Some((variant, row.check.clone())),
            Contender::Peer(_) => None,
        })
        .collect();
    for row in rows.iter_mut().filter(|row| !row.seconds.is_empty()) {
        let band = row.contender.band(item);
        let beside = row.contender.beside(item);
        let Some((_, reference)) = ours.iter().find(|(variant, _)| *variant == beside) else {
            continue;
        };
        let strays = reference.iter().find_map(|(what, expected)| {
            let expected = expected.as_f64()?;
            let found = row.check.get(what).and_then(serde_json::Value::as_f64);
            let fits = found.is_some_and(|f| (1.0 / band..=band).contains(&(f / expected)));
            (!fits && band.is_finite()).then(|| {
                let found = found.map_or("nothing".into(), |f| format!("{f:.4}"));
                format!(
                    "OTHER WORK: {what} is {found}, expected {expected:.4} within a factor {band}"
                )
            })
        });
        if strays.is_some() {
            row.trouble = strays;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(contender: Contender, mean_pixel: f64) -> Row {
        let mut row = Row::new(contender);
        row.seconds.push(1.0);
        row.check.insert("mean_pixel".into(), mean_pixel.into());
        row
    }

    #[test]
    fn other_work_is_seen() {
        let mut rows = [
            row(Contender::Ours(Variant::Plain), 0.140),
            row(Contender::Peer(&PEERS[0]), 0.141),
            row(Contender::Peer(&PEERS[1]), 0.170),
        ];
        compare_checks(Sample, &mut rows);
        assert!(rows[1].trouble.is_none());
        assert!(rows[2].trouble.as_ref().is_some_and(|t| t.contains("0.1700")), "far off");
    }

    #[test]
    fn results_below_zero_have_a_band_too() {
        let mut rows =
            [row(Contender::Ours(Variant::Plain), -130.0), row(Contender::Peer(&PEERS[3]), -150.0)];
        compare_checks(Score, &mut rows);
        assert!(rows[1].trouble.is_some());
    }

    #[test]
    fn harmonium_comes_first() {
        for item in Item::ALL {
            let first = Contender::of(item, &[]).next().map(Contender::name);
            assert_eq!(first, Some("harmonium"));
        }
    }
}
