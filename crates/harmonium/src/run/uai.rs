//! Pairwise models of binary variables in the UAI format, from and to machines.
//!
//! A file holds factors over variables, $p(x) = \frac1Z\prod_f \phi_f(x_f)$ (the "MARKOV" files of
//! the UAI inference competitions, with one or two variables to a factor). A factor is an energy,
//! $$-\ln\phi(x, y) = e_{00} + (e_{10} - e_{00})\,x + (e_{01} - e_{00})\,y
//! \qquad + (e_{11} - e_{10} - e_{01} + e_{00})\,xy,$$
//! so a file is a machine of bits; the constants gather in $E_0$, and $\ln Z$ is that of the file.

use super::{NO_FILE, file_error, in_file};
use crate::error::Error;
use crate::graph::{Edge, Pair, Pairwise, Topology};
use crate::machine::{Clamp, Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, State};
use crate::units::{Storage, Units};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::str::{FromStr, SplitAsciiWhitespace};

const HINT_FORM: &str = "give a UAI file of type MARKOV whose variables have two values and whose factors have one or two variables";
const HINT_ZERO: &str =
    "replace zeros by a small positive number such as 1e-30, or leave out what they forbid";
const HINT_WRITE: &str =
    "UAI files hold binary variables, a spin counting as one, and factors between 1e-307 and 1e308";

/// A machine that was read from a UAI file.
#[derive(Clone, Debug, PartialEq)]
pub struct UaiModel {
    /// The machine.
    pub machine: Machine,
    /// For each layer the variables of the file that are its units.
    pub variables: Vec<Vec<usize>>,
}

/// Reads the text of a UAI file.
///
/// If the variables fall into two sides that see only each other, and at least half of all pairs
/// are coupled, they become the visible and the hidden layer of an RBM, variable 0 being visible.
/// Otherwise they are one layer with a sparse lateral coupling. Units keep the order of the
/// variables.
///
/// # Errors
///
/// If the text is not a UAI file, or a factor is zero somewhere.
pub fn read_uai(text: &str) -> Result<UaiModel, Error> {
    Factors::read(text)?.into_model()
}

/// Reads a UAI file.
///
/// # Errors
///
/// If the system refuses, and as [`read_uai`].
pub fn load_uai(path: impl AsRef<Path>) -> Result<UaiModel, Error> {
    load_text(path.as_ref(), read_uai)
}

/// Reads a file of text by `read`, naming it in what goes wrong.
pub(super) fn load_text<T>(
    path: &Path,
    read: impl Fn(&str) -> Result<T, Error>,
) -> Result<T, Error> {
    let failed = |error: std::io::Error| file_error(path, "read", &error);
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(in_file(path)(wrong("it is not a regular file")));
    }
    let text = std::fs::read(path).map_err(failed)?;
    let text = std::str::from_utf8(&text).map_err(|_| in_file(path)(wrong("it is not text")))?;
    read(text).map_err(in_file(path))
}

/// The text of a UAI file with the same energy: its variables are the units, layer after layer;
/// a spin is written as a bit.
///
/// # Errors
///
/// If a layer holds something else than bits and spins, or a factor would be too large or too
/// small to be written as a number.
pub fn write_uai(machine: &Machine) -> Result<String, Error> {
    let mut bits = machine.without_offsets()?;
    for l in machine.layer_ids() {
        let units = machine.layer(l).units;
        if units.storage() != Storage::Bits {
            let reason = format!("layer `{}` has {} units", machine.layer(l).name, units.name());
            return Err(unwritable(reason));
        }
        if !units.is_zero_or_one() {
            bits = bits.spins_to_bits(l)?.without_offsets()?;
        }
    }
    write_graph(&Pairwise::new(&bits, &Clamp::none(), &State::zeros(&bits, 1)?, 0)?)
}

/// A factor for each node and for each edge with a weight.
fn write_graph(graph: &Pairwise) -> Result<String, Error> {
    let n = graph.nodes().len();
    let coupled = |e: &&Edge| !matches!(e.pair, Pair::Product(0.0));
    let edges: Vec<&Edge> = graph.edges().iter().filter(coupled).collect();
    let mut text = format!("MARKOV\n{n}\n{}\n{}\n", vec!["2"; n].join(" "), n + edges.len());
    for i in 0..n {
        let _ = writeln!(text, "1 {i}");
    }
    for Edge { between: (i, j), .. } in &edges {
        let _ = writeln!(text, "2 {i} {j}");
    }
    // Shared out, so that no factor has to hold all of it.
    let share = graph.constant() / n as f64;
    for (i, node) in graph.nodes().iter().enumerate() {
        let what = || format!("the factor of unit {i}");
        let (off, on) = (node.log_fields[0], node.log_fields[1]);
        let (off, on) = (factor(share + off, what)?, factor(share + on, what)?);
        let _ = write!(text, "\n2\n {off:e} {on:e}\n");
    }
    for edge in edges {
        let what = || format!("the factor of units {} and {}", edge.between.0, edge.between.1);
        let at = |s, t| factor(graph.log_pair(edge, (s, t)), what);
        let (low, high) = ([at(0, 0)?, at(0, 1)?], [at(1, 0)?, at(1, 1)?]);
        let _ = write!(text, "\n4\n {} {}\n {} {:e}\n", low[0], low[1], high[0], high[1]);
    }
    Ok(text)
}

/// $e^x$ where it is a number of full precision.
fn factor(x: f64, what: impl Fn() -> String) -> Result<f64, Error> {
    let factor = x.exp();
    if factor.is_normal() {
        return Ok(factor);
    }
    Err(unwritable(format!("{} would be e^{x:.1}", what())))
}

fn wrong(reason: impl Into<String>) -> Error {
    foreign(reason, HINT_FORM)
}

pub(super) fn foreign(reason: impl Into<String>, hint: &'static str) -> Error {
    Error::Foreign { path: NO_FILE.into(), reason: reason.into(), hint }
}

fn unwritable(reason: String) -> Error {
    Error::Foreign { path: "a UAI file".into(), reason, hint: HINT_WRITE }
}

/// The words of a file, taken one after the other: whatever it claims, no more is read than there
/// is.
pub(super) struct Words<'a> {
    rest: SplitAsciiWhitespace<'a>,
    taken: usize,
    /// What to do if a word is not what it should be.
    hint: &'static str,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str, hint: &'static str) -> Self {
        Self { rest: text.split_ascii_whitespace(), taken: 0, hint }
    }

    pub(super) fn next<T: FromStr>(&mut self, what: impl Fn() -> String) -> Result<T, Error> {
        let Some(word) = self.rest.next() else {
            let reason = format!("it ends after {} words, before {}", self.taken, what());
            return Err(foreign(reason, self.hint));
        };
        self.taken += 1;
        let shown: String = word.chars().take(40).collect();
        let reason = |_| format!("{} is `{shown}` (word {})", what(), self.taken);
        word.parse().map_err(|e| foreign(reason(e), self.hint))
    }

    /// Refuses more words.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match self.rest.next() {
            None => Ok(()),
            Some(_) => {
                Err(foreign(format!("there is more after its {} words", self.taken), self.hint))
            }
        }
    }
}

/// The energy of a file over its variables.
pub(super) struct Factors {
    constant: f64,
    bias: Vec<f64>,
    weights: BTreeMap<(usize, usize), f64>,
}

impl Factors {
    fn read(text: &str) -> Result<Self, Error> {
        let mut words = Words::new(text, HINT_FORM);
        let kind: String = words.next(|| "the type".into())?;
        if !kind.eq_ignore_ascii_case("markov") {
            let shown: String = kind.chars().take(40).collect();
            return Err(wrong(format!("it starts with `{shown}` instead of MARKOV")));
        }
        let n: usize = words.next(|| "the number of variables".into())?;
        let mut bias = Vec::new();
        for i in 0..n {
            let what = || format!("the number of values of variable {i}");
            match words.next::<usize>(what)? {
                2 => bias.push(0.0),
                values => return Err(wrong(format!("variable {i} has {values} values, not 2"))),
            }
        }
        if n == 0 {
            return Err(wrong("it has no variables"));
        }
        let scopes = read_scopes(&mut words, n)?;
        let mut factors = Self { bias, ..Self::none(0) };
        for (f, scope) in scopes.iter().enumerate() {
            factors.add(scope, &read_table(&mut words, f, scope)?);
        }
        words.end()?;
        Ok(factors)
    }

    /// No factors over `n` variables.
    pub(super) fn none(n: usize) -> Self {
        Self { constant: 0.0, bias: vec![0.0; n], weights: BTreeMap::new() }
    }

    /// Adds a factor given as energies, the last variable running fastest.
    pub(super) fn add(&mut self, scope: &Scope, energy: &[f64]) {
        self.constant += energy[0];
        match *scope {
            Scope::None => {}
            Scope::One(i) => self.bias[i] -= energy[1] - energy[0],
            Scope::Two(i, j) => {
                self.bias[j] -= energy[1] - energy[0];
                self.bias[i] -= energy[2] - energy[0];
                *self.weights.entry((i.min(j), i.max(j))).or_default() -=
                    energy[3] - energy[2] - energy[1] + energy[0];
            }
        }
    }

    pub(super) fn into_model(self) -> Result<UaiModel, Error> {
        let n = self.bias.len();
        let (sides, variables) = match self.sides() {
            Some(sides) => {
                let of = |side| (0..n).filter(|&i| sides[i] == side).collect::<Vec<_>>();
                (sides.clone(), vec![of(false), of(true)])
            }
            None => (vec![false; n], vec![(0..n).collect()]),
        };
        let mut layers = Vec::new();
        for (role, units) in [Role::Visible, Role::Hidden].into_iter().zip(&variables) {
            let name = if role == Role::Visible { "visible" } else { "hidden" };
            let mut layer = Layer::new(name, role, Units::Binary, units.len())?;
            layer.bias.iter_mut().zip(units).for_each(|(b, &i)| *b = self.bias[i]);
            layers.push(layer);
        }
        let mut place = vec![0; n];
        variables.iter().flat_map(|v| v.iter().enumerate()).for_each(|(u, &i)| place[i] = u);
        let mut couplings = Vec::new();
        if let [visible, hidden] = &layers[..] {
            let mut weights = vec![0.0; visible.len() * hidden.len()];
            for (&(i, j), w) in &self.weights {
                let (v, h) = if sides[i] { (j, i) } else { (i, j) };
                weights[place[v] * hidden.len() + place[h]] = *w;
            }
            let weights = Matrix::from_rows(visible.len(), hidden.len(), weights)?;
            couplings.push(Coupling::between(LayerId(0), LayerId(1), weights));
        } else if !self.weights.is_empty() {
            let edges = self.weights.iter().map(|(&(i, j), w)| (i, j, *w));
            couplings.push(Coupling::sparse(LayerId(0), Edges::new(n, edges)?));
        }
        let machine = Machine::new(layers, couplings)?.with_constant(self.constant)?;
        Ok(UaiModel { machine, variables })
    }

    /// Which variables are hidden, if an RBM is a sensible form: two sides that see only each
    /// other, and no fewer than half of all pairs coupled.
    fn sides(&self) -> Option<Vec<bool>> {
        let n = self.bias.len();
        let sides = Topology::new(n, self.weights.keys().copied()).sides()?;
        let n_hidden = sides.iter().filter(|s| **s).count();
        let dense = n_hidden > 0 && 2 * self.weights.len() >= n_hidden * (n - n_hidden);
        dense.then_some(sides)
    }
}

/// The variables of a factor.
pub(super) enum Scope {
    None,
    One(usize),
    Two(usize, usize),
}

fn read_scopes(words: &mut Words<'_>, n: usize) -> Result<Vec<Scope>, Error> {
    let n_factors: usize = words.next(|| "the number of factors".into())?;
    let mut scopes = Vec::new();
    for f in 0..n_factors {
        let size: usize = words.next(|| format!("the number of variables of factor {f}"))?;
        let mut variable = || {
            let i: usize = words.next(|| format!("a variable of factor {f}"))?;
            if i < n {
                return Ok(i);
            }
            Err(wrong(format!("factor {f} names variable {i}, but there are {n}")))
        };
        scopes.push(match size {
            0 => Scope::None,
            1 => Scope::One(variable()?),
            2 => match (variable()?, variable()?) {
                (i, j) if i == j => {
                    return Err(wrong(format!("factor {f} names variable {i} twice")));
                }
                (i, j) => Scope::Two(i, j),
            },
            _ => return Err(wrong(format!("factor {f} has {size} variables, more than 2"))),
        });
    }
    Ok(scopes)
}

/// The energies of a factor's table.
fn read_table(words: &mut Words<'_>, f: usize, scope: &Scope) -> Result<Vec<f64>, Error> {
    let expected = match scope {
        Scope::None => 1,
        Scope::One(_) => 2,
        Scope::Two(..) => 4,
    };
    let found: usize = words.next(|| format!("the size of table {f}"))?;
    if found != expected {
        return Err(wrong(format!("table {f} must have {expected} entries, found {found}")));
    }
    let mut energies = Vec::with_capacity(expected);
    for k in 0..expected {
        let value: f64 = words.next(|| format!("entry {k} of table {f}"))?;
        energies.push(energy(value, f, k, words.hint)?);
    }
    Ok(energies)
}

/// $-\ln$ of entry `k` of table `f`.
pub(super) fn energy(value: f64, f: usize, k: usize, hint: &'static str) -> Result<f64, Error> {
    if value == 0.0 {
        let reason =
            format!("entry {k} of table {f} is 0: that state would need an infinite energy, ln 0");
        return Err(foreign(reason, HINT_ZERO));
    }
    if !(value > 0.0 && value.is_finite()) {
        let reason = format!("entry {k} of table {f} is {value}, no positive number");
        return Err(foreign(reason, hint));
    }
    Ok(-value.ln())
}
