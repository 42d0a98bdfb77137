//! p-values of rows beside rows that are normal.

use harmonium::Method;
use harmonium::Model;
use harmonium::data::{Binarize, Dataset, Table};
use harmonium::exact;
use harmonium::machine::Machine;
use harmonium::model::{Anomalies, Scoring};
use harmonium::progress::Silent;
use harmonium::random::Stream;

/// p is the share of normal rows with as low a score, and never 0.
#[test]
fn p_values_count_normal_rows() {
    let normal = [3.0, 1.0, 2.0, 2.0];
    let rows = vec![0.5, 1.0, 1.5, 2.0, 9.0];
    let found = Anomalies::new(rows, &normal, Method::FreeEnergy).unwrap();
    assert_eq!(found.p_values, [0.2, 0.4, 0.4, 0.8, 1.0]);
    assert_eq!(found.found_at(0.4), (3, 2.0));
    assert!(Anomalies::new(vec![1.0], &[], Method::FreeEnergy).is_err());
}

/// Visible rows of exact samples of a machine.
fn drawn(machine: &Machine, n: usize, seed: u64) -> Dataset {
    let x = exact::samples(machine, n, Stream::new(seed)).unwrap();
    let mut values = Vec::new();
    for row in 0..n {
        for l in machine.visible_layers() {
            values.extend(x.row(l, row).iter().map(|v| *v as f32));
        }
    }
    let width = values.len() / n;
    Dataset::new(Table::from_real(values, width).unwrap(), Binarize::None).unwrap()
}

/// Rows of the same source are below every level as often as the level says; those of another are more often.
#[test]
fn p_values_of_normal_rows_are_uniform() {
    for name in ["rbm of counts", "gaussian rbm"] {
        let machine = crate::machines::all().into_iter().find(|m| m.0 == name).unwrap().1;
        let model = Model::from(machine.clone());
        let (n, n_normal) = (2000, 2000);
        let normal = drawn(&machine, n_normal, 1);
        let same = drawn(&machine, n, 2);
        let scoring = Scoring::default();
        let found = model.anomalies(&same, &normal, &scoring, &mut Silent).unwrap();
        for level in [0.02, 0.05, 0.1, 0.2, 0.5] {
            let share = found.found_at(level).0 as f64 / n as f64;
            // Chance in both sets of rows.
            let error = (level * (1.0 - level) * (1.0 / n as f64 + 1.0 / n_normal as f64)).sqrt();
            assert!(share <= level + 4.0 * error, "{name}: {share} of normal rows at {level}");
            if name == "gaussian rbm" {
                // No two rows have the same score: nothing is lost to ties.
                assert!(share >= level - 4.0 * error, "{name}: {share} of normal rows at {level}");
            }
        }
    }
}

/// What lies far away has the smallest p-value there is.
#[test]
fn rows_from_elsewhere_are_found() {
    let machine = crate::machines::gaussian().remove(0).1;
    let model = Model::from(machine.clone());
    let normal = drawn(&machine, 500, 1);
    let far = Table::from_real(vec![40.0, -40.0, 0.0, 60.0], 2).unwrap();
    let far = Dataset::new(far, Binarize::None).unwrap();
    let found = model.anomalies(&far, &normal, &Scoring::default(), &mut Silent).unwrap();
    assert_eq!(found.p_values, [1.0 / 501.0; 2]);
}
