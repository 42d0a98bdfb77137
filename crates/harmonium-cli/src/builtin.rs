//! Machines with a name: `ising:16,0.4`, `curie-weiss:20,1`.

use crate::failure::Failure;
use harmonium::machine::Machine;
use harmonium::models::{LONGEST_SIDE, MOST_SPINS, curie_weiss, ising_torus};

/// Whether something is the name of a machine, with whatever numbers.
pub(crate) fn is_name(spec: &str) -> bool {
    matches!(spec.split_once(':'), Some(("ising" | "curie-weiss", _)))
}

/// The machine that a name stands for, unless it is the name of something else.
pub(crate) fn machine(spec: &str) -> Option<Result<Machine, Failure>> {
    let (name, numbers) = spec.split_once(':')?;
    let bm = match name {
        "ising" => {
            let form = Form { spec, size: ("L", LONGEST_SIDE), strength: "K", example: "16,0.4" };
            form.numbers(numbers).and_then(|(l, k)| Ok(ising_torus(l, k)?))
        }
        "curie-weiss" => {
            let form = Form { spec, size: ("N", MOST_SPINS), strength: "BETA", example: "20,1" };
            form.numbers(numbers).and_then(|(n, beta)| Ok(curie_weiss(n, beta)?))
        }
        _ => return None,
    };
    Some(bm.map(harmonium::models::Bm::into_machine))
}

/// What stands behind a name: a size and a strength.
struct Form<'a> {
    spec: &'a str,
    /// What it is called, and the largest.
    size: (&'a str, usize),
    strength: &'a str,
    example: &'a str,
}

impl Form<'_> {
    fn numbers(&self, text: &str) -> Result<(usize, f64), Failure> {
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

    fn refuse(&self, what: &str, found: &str, expected: &str) -> Failure {
        let name = self.spec.split(':').next().unwrap_or_default();
        Failure::new(
            format!("`{}`: {what} is `{}`; it must be {expected}", self.spec, found.trim()),
            format!(
                "write it as {name}:{},{}, for example {name}:{}",
                self.size.0, self.strength, self.example
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_machines() {
        let torus = machine("ising:3,0.4").expect("a name").expect("a machine");
        assert_eq!((torus.layers()[0].len(), torus.n_parameters()), (9, 9 + 18));
        let mean = machine("curie-weiss: 5 , -1e-1").expect("a name").expect("a machine");
        assert_eq!(mean.n_parameters(), 5 + 10);
        for other in ["model.safetensors", "runs/a", "ising", "C:\\ising:4", "digits:3"] {
            assert!(machine(other).is_none() && !is_name(other), "{other}");
        }
        assert!(is_name("ising:") && is_name("curie-weiss:5,1"));
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
            let failure = machine(spec).expect("a name").expect_err("nonsense").to_string();
            assert!(failure.contains(words), "{failure}");
            assert!(failure.contains("hint: write it as "), "{failure}");
        }
    }
}
