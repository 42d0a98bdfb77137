//! Exact inference beside a peer, and the most probable states of random RBMs.
//!
//! `cargo xtask bench inference [--only exact|map] [--no-peers] [--rounds N] [--data FOLDER]`
//!
//! *exact*: ln Z and all marginals of the UAI problems by junction tree, against the published marginals; beside the
//! junction tree of dwave-samplers, on one thread each, taking turns. The model is in memory before the clock starts.
//! *map*: RBMs with normal weights and logistic biases, as in a published comparison (PGMax, JMLR 24, 2023), drawn from our own
//! seed: whether searches find the optimum at 40 units, and what they find at 60, 100 and 200.

mod map;
mod peer;

use crate::turns::{median, on_threads};
use crate::{Fallible, Outcome};
use harmonium::graph::{BucketTree, Elimination, Pairwise};
use harmonium::machine::{Clamp, Machine, State};
use harmonium::models::Body;
use harmonium::progress::Silent;
use harmonium::run::Model;
use peer::Peer;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The files, and their exact ln Z.
const FILES: [(&str, f64); 10] = [
    ("uai-grids/Grids_11.uai", 390.077_166),
    ("uai-grids/Grids_12.uai", 697.881_206),
    ("uai-grids/Grids_15.uai", 671.739_257),
    ("uai-grids/Grids_16.uai", 1_531.487_263),
    ("uai-grids/Segmentation_11.uai", -55.253_044),
    ("uai-grids/Segmentation_12.uai", -23.687_207),
    ("uai-grids/Segmentation_13.uai", -76.834_438),
    ("uai-rbm/DBN_11.uai", 134.771_832),
    ("uai-rbm/DBN_12.uai", 145.400_678),
    ("uai-rbm/DBN_13.uai", 153.245_748),
];

struct Options {
    exact: bool,
    map: bool,
    peers: bool,
    rounds: usize,
    data: PathBuf,
}

impl Options {
    fn parse(words: &[&str]) -> Fallible<Self> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        let mut options = Self { exact: true, map: true, peers: true, rounds: 3, data };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
            match *word {
                "--only" => match *value()? {
                    "exact" => options.map = false,
                    "map" => options.exact = false,
                    other => return Err(format!("`--only {other}`: exact or map").into()),
                },
                "--no-peers" => options.peers = false,
                "--rounds" => options.rounds = value()?.parse::<usize>()?.max(1),
                "--data" => options.data = PathBuf::from(value()?),
                other => return Err(format!("`{other}` is not a flag of bench inference").into()),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let options = Options::parse(words)?;
    if options.exact {
        exact(&options)?;
    }
    if options.map {
        map::run()?;
    }
    Ok(())
}

fn graph_of(path: &Path) -> Fallible<(Machine, Vec<usize>, Pairwise)> {
    let path = path.to_str().ok_or("the path is not text")?;
    let model = Model::open(path, &mut Silent)?;
    let variables = model.variables();
    let Body::Machine(machine) = model.body else { return Err("not a machine".into()) };
    let graph = Pairwise::new(&machine, &Clamp::none(), &State::zeros(&machine, 1)?, 0)?;
    let place = |&(l, unit): &(_, usize)| {
        graph.nodes().iter().position(|node| (node.layer, node.unit) == (l, unit)).unwrap_or(0)
    };
    let nodes = variables.iter().map(place).collect();
    Ok((machine, nodes, graph))
}

/// $p(x_i = 1)$ of each variable in a `.MAR` file.
fn published(path: &Path) -> Fallible<Vec<f64>> {
    let beside = PathBuf::from(format!("{}.MAR", path.display()));
    let path = if beside.is_file() { beside } else { path.with_extension("MAR") };
    let text = std::fs::read_to_string(path)?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let counted = text.split_whitespace().find_map(|w| w.parse::<usize>().ok());
    let n = counted.unwrap_or(0);
    Ok(numbers[numbers.len() - 3 * n..].chunks_exact(3).map(|c| c[2]).collect())
}

fn exact(options: &Options) -> Outcome {
    if !options.data.join(FILES[0].0).is_file() {
        return Err(format!(
            "the UAI files are absent: there is no `{}` in `{}`, and nothing was measured\n\
             hint: name their folder with --data FOLDER",
            FILES[0].0,
            options.data.display()
        )
        .into());
    }
    let peer = if options.peers { Some(Peer::prepare()?) } else { None };
    println!(
        "junction tree on one thread: ln Z, unit and pair marginals; medians of {} rounds",
        options.rounds
    );
    println!(
        "{:<16} {:>5} {:>5} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>8}",
        "",
        "units",
        "width",
        "tables",
        "ln Z, s",
        "all, s",
        "ln Z off",
        "units off",
        "peer, s",
        "ratio"
    );
    for (name, log_z) in FILES {
        let path = options.data.join(name);
        one(&path, log_z, peer.as_ref(), options.rounds)?;
    }
    Ok(())
}

/// One file, all rounds.
fn one(path: &Path, log_z: f64, peer: Option<&Peer>, rounds: usize) -> Outcome {
    let (_, nodes, graph) = graph_of(path)?;
    let expected = published(path)?;
    let (mut sums, mut all, mut theirs, mut ratios) = (vec![], vec![], vec![], vec![]);
    let (mut off, mut units_off) = (0.0_f64, 0.0_f64);
    let (mut width, mut bytes, mut said) = (0, 0.0, String::new());
    for _ in 0..rounds {
        // The order is part of the work, for the peer too.
        let started = Instant::now();
        let tree = BucketTree::narrower(&graph, 26.0)?;
        let found = on_threads(1, || Elimination::new(&graph, &tree).log_sum(&mut Silent))??;
        sums.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let tree_again = BucketTree::narrower(&graph, 26.0)?;
        let marginals =
            on_threads(1, || Elimination::new(&graph, &tree_again).marginals(&mut Silent))??;
        all.push(started.elapsed().as_secs_f64());
        off = (found - log_z).abs().max((marginals.log_sum - log_z).abs());
        let far = |(&node, p): (&usize, &f64)| (marginals.nodes[node][1] - p).abs();
        units_off = nodes.iter().zip(&expected).map(far).fold(0.0, f64::max);
        width = tree.width();
        let pieces = tree.marginals_within(Elimination::usual_budget());
        bytes = pieces.map_or(0.0, |p| p.bytes());
        match peer.map(|peer| peer.measure(path)) {
            None => {}
            Some(Ok(seconds)) => {
                ratios.push(seconds / all[all.len() - 1]);
                theirs.push(seconds);
            }
            Some(Err(error)) => {
                said = error.to_string().lines().next().unwrap_or_default().to_owned();
            }
        }
    }
    let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    let number = |list: &[f64], digits: usize| match list {
        [] => "-".to_owned(),
        list => format!("{:.digits$}", median(list.to_vec())),
    };
    println!(
        "{name:<16} {:>5} {width:>5} {:>6.0} MB {:>9} {:>9} {off:>10.1e} {units_off:>10.1e} {:>10} {:>8} {said}",
        graph.nodes().len(),
        bytes / 1e6,
        number(&sums, 3),
        number(&all, 3),
        number(&theirs, 3),
        number(&ratios, 2),
    );
    Ok(())
}
