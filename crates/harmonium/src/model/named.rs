//! From a name to a model: a built-in machine, a UAI file, a model file or a run directory.

use crate::error::Error;
use crate::machine::Machine;
use crate::models::{Bm, LONGEST_SIDE, MOST_SPINS, curie_weiss, ising_torus};
use crate::progress::Listener;
use crate::run::{Model, UaiModel, load_uai};
use std::path::Path;

/// Whether something is the name of a built-in machine, with whatever numbers.
pub fn is_named(spec: &str) -> bool {
    matches!(spec.split_once(':'), Some(("ising" | "curie-weiss", _)))
}

/// Whether a path names a UAI file.
pub fn is_uai(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e.eq_ignore_ascii_case("uai"))
}

impl Model {
    /// Opens a model by its name: a built-in machine (`ising:16,0.4`, `curie-weiss:20,1`), a UAI
    /// file, a model file or a run directory. The listener hears what should be known about it.
    ///
    /// # Errors
    ///
    /// If there is none, it is damaged, or the numbers of a built-in machine make no sense.
    pub fn open(spec: &str, listener: &mut dyn Listener) -> Result<Self, Error> {
        if let Some(machine) = built_in(spec) {
            return machine.map(Self::from);
        }
        if is_uai(spec) {
            let UaiModel { machine, variables } = load_uai(spec)?;
            if !variables.iter().flatten().is_sorted() {
                let visible: Vec<String> = variables[0].iter().map(usize::to_string).collect();
                listener.note(&format!("the visible units are variables {}", visible.join(" ")));
            }
            return Ok(Self::from(machine));
        }
        let located = Self::locate(spec)?;
        if let Some(note) = located.note {
            listener.note(&note);
        }
        Self::load(&located.path)
    }
}

/// The machine that a name stands for, unless it is the name of something else.
fn built_in(spec: &str) -> Option<Result<Machine, Error>> {
    let (name, numbers) = spec.split_once(':')?;
    let bm = match name {
        "ising" => {
            let form = Form {
                spec,
                size: ("L", LONGEST_SIDE),
                strength: "K",
                hint: "write it as ising:L,K, for example ising:16,0.4",
            };
            form.numbers(numbers).and_then(|(l, k)| ising_torus(l, k))
        }
        "curie-weiss" => {
            let form = Form {
                spec,
                size: ("N", MOST_SPINS),
                strength: "BETA",
                hint: "write it as curie-weiss:N,BETA, for example curie-weiss:20,1",
            };
            form.numbers(numbers).and_then(|(n, beta)| curie_weiss(n, beta))
        }
        _ => return None,
    };
    Some(bm.map(Bm::into_machine))
}

/// What stands behind a name: a size and a strength.
struct Form<'a> {
    spec: &'a str,
    /// What it is called, and the largest.
    size: (&'a str, usize),
    strength: &'a str,
    hint: &'static str,
}

impl Form<'_> {
    fn numbers(&self, text: &str) -> Result<(usize, f64), Error> {
        let (size, strength) = text.split_once(',').unwrap_or((text, ""));
        let (what, most) = self.size;
        let n: usize =
            size.trim().parse().ok().filter(|n| (1..=most).contains(n)).ok_or_else(|| {
                self.refuse(what, size, &format!("a whole number from 1 to {most}"))
            })?;
        let x: f64 = strength
            .trim()
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite())
            .ok_or_else(|| self.refuse(self.strength, strength, "a finite number"))?;
        Ok((n, x))
    }

    fn refuse(&self, what: &str, found: &str, expected: &str) -> Error {
        Error::BuiltIn {
            name: self.spec.to_owned(),
            reason: format!("{what} is `{}`; it must be {expected}", found.trim()),
            hint: self.hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_machines() {
        let torus = built_in("ising:3,0.4").expect("a name").expect("a machine");
        assert_eq!((torus.layers()[0].len(), torus.n_parameters()), (9, 9 + 18));
        let mean = built_in("curie-weiss: 5 , -1e-1").expect("a name").expect("a machine");
        assert_eq!(mean.n_parameters(), 5 + 10);
        for other in ["model.safetensors", "runs/a", "ising", "C:\\ising:4", "digits:3"] {
            assert!(built_in(other).is_none() && !is_named(other), "{other}");
        }
        assert!(is_named("ising:") && is_named("curie-weiss:5,1"));
    }

    #[test]
    fn nonsense_says_what_is_meant() {
        for (spec, words) in [
            ("ising:", "L is ``"),
            ("ising:0,0.4", "L is `0`; it must be a whole number from 1 to 1024"),
            ("ising:-4,0.4", "L is `-4`"),
            ("ising:1000000,0.4", "from 1 to 1024"),
            ("ising:99999999999999999999999,1", "from 1 to 1024"),
            ("ising:4", "K is ``"),
            ("ising:4,nan", "K is `nan`; it must be a finite number"),
            ("ising:4,inf", "K is `inf`"),
            ("ising:4,0.4,2", "K is `0.4,2`"),
            ("curie-weiss:20000,1", "N is `20000`; it must be a whole number from 1 to 5000"),
            ("curie-weiss:20,x", "BETA is `x`"),
        ] {
            let error = built_in(spec).expect("a name").expect_err("nonsense");
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().starts_with("write it as "), "{error}");
        }
    }
}
