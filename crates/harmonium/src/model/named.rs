//! From a name to a model: a built-in machine, a UAI file or factor graph, a model file or a run directory.

use crate::error::Error;
use crate::machine::Machine;
use crate::models::{Bm, LONGEST_SIDE, MOST_SITES, MOST_SPINS, curie_weiss, ising, potts};
use crate::progress::Listener;
use crate::run::{Model, UaiModel, load_fg, load_uai};
use std::path::Path;

/// Whether something is the name of a built-in machine, with whatever numbers.
pub fn is_named(spec: &str) -> bool {
    matches!(spec.split_once(':'), Some(("ising" | "potts" | "curie-weiss", _)))
}

/// Whether a path names a file of factors: a UAI file, or a factor graph of libDAI.
pub fn is_factors(path: &str) -> bool {
    ends_in(path, "uai") || ends_in(path, "fg")
}

fn ends_in(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

impl Model {
    /// Opens a model by its name: a built-in machine (`ising:16,0.4`, `ising:4x4x4,0.2,0.1`,
    /// `potts:8x8,3,1`, `curie-weiss:20,1`), a UAI file, a factor graph of libDAI, a model file or a run directory. The listener hears what should be known about it.
    ///
    /// # Errors
    ///
    /// If there is none, it is damaged, or the numbers of a built-in machine make no sense.
    pub fn open(spec: &str, listener: &mut dyn Listener) -> Result<Self, Error> {
        if let Some(machine) = built_in(spec) {
            return machine.map(Self::from);
        }
        if is_factors(spec) {
            let read = if ends_in(spec, "fg") { load_fg(spec) } else { load_uai(spec) };
            let UaiModel { machine, variables } = read?;
            if !variables.iter().flatten().is_sorted() {
                let visible: Vec<String> = variables[0].iter().map(usize::to_string).collect();
                listener.note(&format!("the visible units are variables {}", visible.join(" ")));
                let mut model = Self::from(machine);
                model.about.data.variables = variables.concat();
                return Ok(model);
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
            let hint = "write it as ising:L,K, for example ising:16,0.4; or ising:8x16,K or ising:4x4x4,K, each with ,h behind it for a field";
            let mut form = Form::new(spec, numbers, hint);
            form.lattice(1).and_then(|sides| {
                let k = form.real("K")?;
                let h = if form.is_done() { 0.0 } else { form.real("h")? };
                form.end().and_then(|()| ising(&sides, k, h))
            })
        }
        "potts" => {
            let hint = "write it as potts:LxL,q,K, for example potts:16x16,3,1";
            let mut form = Form::new(spec, numbers, hint);
            // Sites are counted once the number of states is known.
            form.lattice(2).and_then(|sides| {
                let q = form.whole("q", 2, MOST_SITES)?;
                let k = form.real("K")?;
                form.end()?;
                form.check_sites(&sides, q)?;
                potts(&sides, q, k)
            })
        }
        "curie-weiss" => {
            let hint = "write it as curie-weiss:N,BETA, for example curie-weiss:20,1";
            let mut form = Form::new(spec, numbers, hint);
            form.whole("N", 1, MOST_SPINS).and_then(|n| {
                let beta = form.real("BETA")?;
                form.end().and_then(|()| curie_weiss(n, beta))
            })
        }
        _ => return None,
    };
    Some(bm.map(Bm::into_machine))
}

/// The numbers behind a name, taken one after the other.
struct Form<'a> {
    spec: &'a str,
    words: std::iter::Peekable<std::str::Split<'a, char>>,
    hint: &'static str,
}

impl<'a> Form<'a> {
    fn new(spec: &'a str, numbers: &'a str, hint: &'static str) -> Self {
        Self { spec, words: numbers.split(',').peekable(), hint }
    }

    /// The sides of a lattice: `16` is 16 by 16, `8x16` and `4x4x4` are what they say.
    fn lattice(&mut self, least_states: usize) -> Result<Vec<usize>, Error> {
        let word = self.words.next().unwrap_or_default();
        let side = |form: &Self, text: &str, most: usize| {
            let whole = text.trim().parse().ok().filter(|n| (1..=most).contains(n));
            whole.ok_or_else(|| form.refuse("L", text, &format!("a whole number from 1 to {most}")))
        };
        let sides = if word.contains('x') {
            word.split('x')
                .map(|text| side(self, text, MOST_SITES))
                .collect::<Result<_, Error>>()?
        } else {
            vec![side(self, word, LONGEST_SIDE)?; 2]
        };
        if sides.len() > 3 {
            return Err(self.refuse("the number of sides", &sides.len().to_string(), "2 or 3"));
        }
        self.check_sites(&sides, least_states)?;
        Ok(sides)
    }

    fn check_sites(&self, sides: &[usize], n_states: usize) -> Result<(), Error> {
        let entries = sides.iter().map(|&side| side as f64).product::<f64>() * n_states as f64;
        if entries <= MOST_SITES as f64 {
            return Ok(());
        }
        let what = if n_states == 1 { "the number of spins" } else { "sites times states" };
        Err(self.refuse(what, &entries.to_string(), &format!("at most {MOST_SITES}")))
    }

    fn whole(&mut self, what: &str, least: usize, most: usize) -> Result<usize, Error> {
        let word = self.words.next().unwrap_or_default();
        let whole = word.trim().parse().ok().filter(|n| (least..=most).contains(n));
        whole.ok_or_else(|| {
            self.refuse(what, word, &format!("a whole number from {least} to {most}"))
        })
    }

    fn real(&mut self, what: &str) -> Result<f64, Error> {
        let word = self.words.next().unwrap_or_default();
        let real = word.trim().parse().ok().filter(|x: &f64| x.is_finite());
        real.ok_or_else(|| self.refuse(what, word, "a finite number"))
    }

    fn is_done(&mut self) -> bool {
        self.words.peek().is_none()
    }

    /// Refuses more numbers than the name takes.
    fn end(&mut self) -> Result<(), Error> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.refuse("what follows the last number", word, "left out")),
        }
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
        let box_of_spins = built_in("ising:2x3x4,0.4,-0.5").expect("a name").expect("a machine");
        assert_eq!((box_of_spins.layers()[0].len(), box_of_spins.layers()[0].bias[7]), (24, -0.5));
        let potts = built_in("potts:3x4,5,1").expect("a name").expect("a machine");
        assert_eq!((potts.layers()[0].n_units(), potts.layers()[0].len()), (12, 60));
        assert_eq!(built_in("potts:3,2,1"), built_in("potts:3x3,2,1"));
        assert_eq!(built_in("ising:5,0.4"), built_in("ising:5x5,0.4,0"));
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
            ("ising:4,0.4,x", "h is `x`"),
            ("ising:4,0.4,2,7", "what follows the last number is `7`"),
            ("ising:4x,0.4", "L is ``"),
            ("ising:0x4,0.4", "L is `0`; it must be a whole number from 1 to 1048576"),
            ("ising:2x2x2x2,0.4", "the number of sides is `4`; it must be 2 or 3"),
            ("ising:1025x1024,0.4", "the number of spins is `1049600`; it must be at most 1048576"),
            ("ising:99999999999x99999999999,1", "L is `99999999999`"),
            ("ising:1048576x1048576x1048576,1", "the number of spins"),
            ("potts:4x4", "q is ``"),
            ("potts:4x4,1,1", "q is `1`; it must be a whole number from 2 to"),
            ("potts:4x4,3", "K is ``"),
            ("potts:1024,3,1", "sites times states is `2097152`"),
            ("potts:4,3,1,0.5", "what follows the last number is `0.5`"),
            ("curie-weiss:20000,1", "N is `20000`; it must be a whole number from 1 to 5000"),
            ("curie-weiss:20,x", "BETA is `x`"),
        ] {
            let error = built_in(spec).expect("a name").expect_err("nonsense");
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().starts_with("write it as "), "{error}");
        }
    }
}
