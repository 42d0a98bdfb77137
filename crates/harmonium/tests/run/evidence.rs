//! Evidence and results in the formats of the UAI competitions.

use harmonium::Error;
use harmonium::run::{load_evidence, read_evidence, write_map, write_mar, write_pr};

#[test]
fn evidence_is_read_in_both_of_its_forms() {
    for (text, expected) in [
        ("0", vec![]),
        ("0\n", vec![]),
        ("2  0 1  5 0", vec![(0, 1), (5, 0)]),
        ("2\n5 0\n0 1\n", vec![(0, 1), (5, 0)]),
        ("1 7 1", vec![(7, 1)]),
        // One sample of evidence before the evidence itself.
        ("1\n2 3 0 4 1", vec![(3, 0), (4, 1)]),
        ("1\n1 3 0", vec![(3, 0)]),
        ("1\n0", vec![]),
        ("2  3 1  3 1", vec![(3, 1)]),
    ] {
        assert_eq!(read_evidence(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_no_evidence_is_refused() {
    for (text, words) in [
        ("", "ends after 0 words"),
        ("x", "number of observed variables is `x`"),
        ("-1", "is `-1`"),
        ("2 0 1", "before observed variable 1"),
        ("2 0 1 5", "before the state of variable 5"),
        ("2 0 1 5 0 7", "there is more after its 5 words"),
        ("1 0 x", "is `x`"),
        ("18446744073709551615 0 1", "before observed variable 1"),
        ("1 1 1 1 1", "there is more"),
    ] {
        let error = read_evidence(text).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(error.hint().contains("evidence is the number"), "{}", error.hint());
    }
    let error = read_evidence("2  3 1  3 0").unwrap_err();
    assert!(matches!(error, Error::Contradiction { .. }), "{error}");
    assert!(error.to_string().contains("variable 3 is given as 1 and as 0"), "{error}");
    let error = load_evidence("no-such-file.evid").unwrap_err();
    assert!(error.to_string().contains("no-such-file.evid"), "{error}");
}

#[test]
fn results_are_written_as_the_competitions_have_them() {
    assert_eq!(write_pr(std::f64::consts::LN_10 * 2.5), "PR\n2.5\n");
    let states = [vec![0.25, 0.75], vec![0.5, 0.25, 0.25]];
    assert_eq!(write_mar(states.iter().map(Vec::as_slice)), "MAR\n2 2 0.25 0.75 3 0.5 0.25 0.25\n");
    assert_eq!(write_map(&[1, 0, 2]), "MAP\n3 1 0 2\n");
}
