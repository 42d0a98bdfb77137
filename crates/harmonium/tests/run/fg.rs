//! Factor graphs of libDAI: the energy of the file, pointwise; and nothing that is not one.

use harmonium::exact;
use harmonium::machine::{LayerId, State};
use harmonium::model::is_factors;
use harmonium::run::{load_fg, read_fg, read_uai};

/// Labels with gaps, factors in either order of their variables, entries in any order, comments.
const GRAPH: &str = "# three variables
5

1
7
2
2
0 0.3
1 1.7

2
7 3
2 2
4
0 1
1 2
 # a comment inside
2 3
3 4

2
3 12
2 2
4
3 0.5
0 5
2 0.25
1 7

0
1
0 11

1
12
2
2
0 2
1 0.1
";

#[test]
fn the_energy_is_that_of_the_file() {
    let model = read_fg(GRAPH).unwrap();
    let n: usize = model.variables.iter().map(Vec::len).sum();
    assert_eq!(n, 3, "labels 3, 7 and 12 are variables 0, 1 and 2");
    let mut total = 0.0;
    for code in 0..8 {
        let bit = |i: usize| code >> i & 1;
        let (of_3, of_7, of_12) = (bit(0), bit(1), bit(2));
        let factors = [
            [0.3, 1.7][of_7],
            // The first variable of a factor runs fastest.
            [1.0, 2.0, 3.0, 4.0][of_7 + 2 * of_3],
            [5.0, 7.0, 0.25, 0.5][of_3 + 2 * of_12],
            11.0,
            [2.0, 0.1][of_12],
        ];
        let weight: f64 = factors.iter().product();
        total += weight;
        let mut x = State::zeros(&model.machine, 1).unwrap();
        for (l, variables) in model.variables.iter().enumerate() {
            let values: Vec<f64> = variables.iter().map(|&i| bit(i) as f64).collect();
            x.set_row(LayerId(l), 0, &values).unwrap();
        }
        let energy = model.machine.energies(&x).unwrap()[0];
        assert!((energy + weight.ln()).abs() < 1e-12, "state {code}");
    }
    assert!((exact::log_partition(&model.machine).unwrap() - total.ln()).abs() < 1e-12);
}

#[test]
fn the_same_factors_are_the_same_machine_in_both_formats() {
    let fg = "2  1 0 2 2 0 3 1 4  2 0 1 2 2 4 0 1 1 2 2 3 3 5";
    // There the last variable runs fastest.
    let uai = "MARKOV 2 2 2 2  1 0  2 1 0  2 3 4  4 1 2 3 5";
    assert_eq!(read_fg(fg).unwrap(), read_uai(uai).unwrap());
}

#[test]
fn what_is_not_a_factor_graph_is_refused_with_its_place() {
    for (text, words) in [
        ("", "it ends after 0 words, before the number of factors"),
        ("# nothing else", "it ends after 0 words"),
        ("MARKOV", "the number of factors is `MARKOV` (word 1)"),
        ("0", "it has no variables"),
        ("1 0 1 0 5", "it has no variables"),
        ("18446744073709551615", "it ends after 1 words"),
        ("1 3 0 1 2 2 2 2 8", "factor 0 has 3 variables, more than 2"),
        ("1 9999999999999", "more than 2"),
        ("1 2 4 4 2 2", "names variable 4 twice"),
        ("1 1 0 3 3 0 1 1 1 2 1", "variable 0 has 3 states, not 2"),
        ("1 1 0 2 3 0 1 1 1 0 2", "at most 2 entries, found 3"),
        ("1 1 0 2 2 0 1 5 1", "an entry 5, but it has 2 states"),
        ("1 1 0 2 2 0 1 1 -1", "no positive number"),
        ("1 1 0 2 2 0 1 1 inf", "no positive number"),
        ("1 1 0 2 2 0 1 1 nan", "no positive number"),
        ("1 1 0 2 1 0 1", "entry 1 of table 0 is 0"),
        ("1 1 0 2 2 0 1 1 2 7", "there is more after its 9 words"),
        ("1 1 0 2 2 0 1 1", "it ends after 8 words"),
    ] {
        let error = read_fg(text).unwrap_err();
        assert!(error.to_string().contains(words), "`{text}`: {error}");
        assert!(!error.hint().is_empty());
    }
    assert!(load_fg("/dev/null").is_err());
    assert!(is_factors("a.fg") && is_factors("b.UAI") && !is_factors("fg"));
}
