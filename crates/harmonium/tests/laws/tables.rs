//! From tables to batches and back: every kind of unit, every way to write it, and holes.

use crate::machines::{all, some_states};
use harmonium::Error;
use harmonium::evaluation::likelihood;
use harmonium::exact;
use harmonium::machine::{Batch, Coupling, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::models::Dbm;
use harmonium::random::Stream;
use harmonium::sampling::Clamp;
use harmonium::schema::{Encoding, Feed, Filling, Layout, Schema};
use harmonium::training::{Plan, Rule};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, Table};
use ndarray::Array2;

const DRAW: u64 = 3;

/// Visible layers of several kinds without couplings.
fn layers(kinds: &[(&str, Units, usize)]) -> Machine {
    let layer = |&(name, units, n): &(&str, Units, usize)| {
        Layer::new(name, Role::Visible, units, n).unwrap()
    };
    Machine::new(kinds.iter().map(layer).collect(), Vec::new()).unwrap()
}

fn real(values: &[f32], n_columns: usize) -> Dataset {
    Dataset::new(Table::from_real(values.to_vec(), n_columns).unwrap(), Binarize::None).unwrap()
}

fn values_of(machine: &Machine, batch: &Batch) -> Vec<Vec<f64>> {
    let x = batch.to_state(machine).unwrap();
    machine.layer_ids().map(|l| x.layer(l).to_vec()).collect()
}

#[test]
fn every_kind_and_encoding_comes_back_as_it_was() {
    let potts = Units::Categorical { q: 3 };
    let cases: [(&str, Machine, &[f32], usize); 6] = [
        ("binary", layers(&[("v", Units::Binary, 3)]), &[0.0, 1.0, 1.0, 1.0, 0.0, 0.0], 3),
        ("spin", layers(&[("v", Units::Spin, 2)]), &[-1.0, 1.0, 1.0, 1.0], 2),
        ("gaussian", layers(&[("v", Units::Gaussian, 2)]), &[0.25, -3.5, 1e-3, 7.0], 2),
        ("codes", layers(&[("v", potts, 2)]), &[2.0, 0.0, 1.0, 2.0], 2),
        ("one-hot", layers(&[("v", potts, 1)]), &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0], 3),
        (
            "several layers",
            layers(&[("a", Units::Binary, 2), ("b", potts, 2), ("c", Units::Gaussian, 1)]),
            &[1.0, 0.0, 2.0, 1.0, 0.5, 0.0, 0.0, 0.0, 1.0, -2.5],
            5,
        ),
    ];
    for (name, machine, values, n_columns) in cases {
        let data = real(values, n_columns);
        let schema = Schema::of(&machine, &data).unwrap();
        let batch = Feed::new(&machine, &schema, &data).unwrap().batch(0..2, Stream::new(DRAW));
        let x = batch.to_state(&machine).unwrap();
        let back = schema.table(&machine, &x, Layout::Columns).unwrap();
        let expected: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
        assert_eq!((back.n_columns, back.values), (n_columns, expected), "{name}");
        assert_eq!(*batch.clamp(), Clamp::visible(&machine), "{name}");
        let json = serde_json::to_value(&schema).unwrap();
        assert_eq!(serde_json::from_value::<Schema>(json).unwrap(), schema, "{name}");
    }
}

#[test]
fn columns_may_stand_in_any_order_and_fields_may_be_added() {
    let potts = Units::Categorical { q: 2 };
    let machine = layers(&[("bits", Units::Binary, 2), ("codes", potts, 1), ("labels", potts, 1)]);
    let json = serde_json::json!({ "later": 1, "layers": [
        { "layer": "codes", "units": { "categorical": { "q": 2 } }, "encoding": "codes",
          "columns": [{ "start": 1, "end": 2 }], "scale": [2.0] },
        { "layer": "bits", "units": "binary", "encoding": "entries",
          "columns": [{ "start": 2, "end": 3 }, { "start": 0, "end": 1 }] },
        { "layer": "labels", "units": { "categorical": { "q": 2 } }, "encoding": "label",
          "classes": ["no", "yes"] },
    ]});
    let schema: Schema = serde_json::from_value(json).unwrap();
    assert_eq!(schema.classes(), ["no", "yes"]);
    let data = real(&[1.0, 1.0, 0.0, 0.0, 0.0, 1.0], 3);
    let data = data.with_labels(Labels::from_values(vec![1, 0])).unwrap();
    let feed = Feed::new(&machine, &schema, &data).unwrap();
    let batch = feed.batch([0, 1], Stream::new(DRAW));
    let found = values_of(&machine, &batch);
    assert_eq!(found[0], [0.0, 1.0, 1.0, 0.0], "bits");
    assert_eq!(found[1], [0.0, 1.0, 1.0, 0.0], "codes");
    assert_eq!(found[2], [0.0, 1.0, 1.0, 0.0], "labels");
    let x = batch.to_state(&machine).unwrap();
    let back = schema.table(&machine, &x, Layout::Columns).unwrap();
    assert_eq!(back.values, [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(feed.means(), vec![vec![0.5; 2]; 3]);
}

#[test]
fn names_of_columns_and_classes_head_the_table() {
    let potts = |q| Units::Categorical { q };
    let machine = layers(&[("a", potts(2), 2), ("labels", potts(3), 1)]);
    let names = ["left", "right"].map(str::to_owned);
    let table = Table::from_real(vec![1.0, 0.0], 2).unwrap().with_names(&names);
    let labels = Labels::from_texts(["eel"]).numbered_as(&["cat", "dog", "eel"].map(str::to_owned));
    let data = Dataset::new(table, Binarize::None).unwrap().with_labels(labels.unwrap()).unwrap();
    let schema = Schema::of(&machine, &data).unwrap();
    let batch = Feed::new(&machine, &schema, &data).unwrap().batch([0], Stream::new(DRAW));
    let x = batch.to_state(&machine).unwrap();
    let columns = schema.table(&machine, &x, Layout::Columns).unwrap();
    assert_eq!(columns.names, ["left", "right", "label"]);
    assert_eq!(columns.values, [1.0, 0.0, 2.0]);
    let entries = schema.table(&machine, &x, Layout::Entries).unwrap();
    let expected =
        ["left=0", "left=1", "right=0", "right=1", "label=cat", "label=dog", "label=eel"];
    assert_eq!(entries.names, expected);
    assert_eq!(entries.values, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn labels_fill_their_layer_and_are_free_without() {
    let machine =
        layers(&[("visible", Units::Binary, 3), ("labels", Units::Categorical { q: 2 }, 1)]);
    let plain = real(&[0.0, 1.0, 1.0, 1.0, 0.0, 0.0], 3);
    let labelled = plain.clone().with_labels(Labels::from_values(vec![1, 0])).unwrap();
    let feed = Feed::of(&machine, &labelled).unwrap().whole().unwrap();
    let batch = feed.batch(0..2, Stream::new(DRAW));
    assert_eq!(values_of(&machine, &batch)[1], [0.0, 1.0, 1.0, 0.0]);
    assert!(batch.clamp().holds_layer(LayerId(1)));
    let free = Feed::of(&machine, &plain).unwrap();
    assert_eq!(free.filled(), [LayerId(0)]);
    let batch = free.batch(0..2, Stream::new(DRAW));
    assert!(batch.clamp().frees_layer(LayerId(1)) && batch.clamp().holds_layer(LayerId(0)));
    let error = free.whole().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the data has 3 columns, the visible layers take 5 (3 of `visible` + 2 of `labels`), or 4 with categories as whole numbers"
    );
    let many = plain.with_labels(Labels::from_values(vec![1, 2])).unwrap();
    let error = Feed::of(&machine, &many).unwrap_err();
    assert_eq!(error.to_string(), "the labels have 3 classes, layer `labels` takes 2");
}

#[test]
fn packed_and_unpacked_presentations_are_the_same() {
    let machine = layers(&[("v", Units::Binary, 130)]);
    let grey = Array2::from_shape_fn((5, 130), |(r, c)| ((r * 37 + c * 11) % 256) as u16);
    let data = Dataset::from_array(grey.view()).unwrap().binarized(Binarize::Sample).unwrap();
    let feed = Feed::of(&machine, &data).unwrap();
    let rows = [4, 0, 2];
    let mut batch = feed.batch([], Stream::new(0));
    for draw in [Stream::new(5), Stream::new(6)] {
        feed.refill(&mut batch, rows, draw);
        let unpacked = data.to_array(draw);
        let expected: Vec<f64> = rows.iter().flat_map(|&r| unpacked.row(r).to_vec()).collect();
        assert_eq!(values_of(&machine, &batch)[0], expected);
        // Two layers, the second of which does not start at a whole word.
        let two = layers(&[("a", Units::Binary, 61), ("b", Units::Binary, 69)]);
        let halves = values_of(&two, &Feed::of(&two, &data).unwrap().batch([2], draw));
        assert_eq!(halves.concat(), unpacked.row(2).to_vec());
    }
}

#[test]
fn the_clamp_holds_exactly_what_is_there() {
    let potts = Units::Categorical { q: 3 };
    let machine =
        layers(&[("bits", Units::Binary, 3), ("codes", potts, 2), ("real", Units::Gaussian, 1)]);
    let whole = real(&[1.0, 0.0, 1.0, 2.0, 0.0, 0.5, 0.0, 1.0, 1.0, 1.0, 1.0, -0.5], 6);
    let seen = |row: usize, c: usize| !(row * 5 + c * 3).is_multiple_of(4);
    let mask = Array2::from_shape_fn((2, 6), |(r, c)| seen(r, c));
    let data = whole.clone().with_mask(mask.view()).unwrap();
    let feed = Feed::of(&machine, &data).unwrap();
    let batch = feed.batch([0, 1], Stream::new(DRAW));
    let units = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)];
    let x = batch.to_state(&machine).unwrap();
    let complete = Feed::of(&machine, &whole).unwrap().batch([0, 1], Stream::new(DRAW));
    let y = complete.to_state(&machine).unwrap();
    for row in 0..2 {
        for (c, &(l, unit)) in units.iter().enumerate() {
            let l = LayerId(l);
            assert_eq!(batch.clamp().holds(l, row, unit), seen(row, c), "row {row}, column {c}");
            let group = machine.layer(l).units.group();
            let entries = unit * group..(unit + 1) * group;
            if seen(row, c) {
                assert_eq!(x.row(l, row)[entries.clone()], y.row(l, row)[entries]);
            }
        }
    }
    // A batch that held whole layers can hold holes when it is filled again.
    let mut batch = complete;
    feed.refill(&mut batch, [1], Stream::new(DRAW));
    assert!((0..3).all(|c| batch.clamp().holds(LayerId(0), 0, c) == seen(1, c)));
    let error = feed.whole().unwrap_err();
    assert!(matches!(error, Error::Value { units: "finite", row: 0, .. }), "{error}");
}

#[test]
fn exact_scores_sum_over_holes() {
    let mut n_seen = 0;
    for (name, machine) in all() {
        let visible = machine.visible_layers();
        let kind = |l: &LayerId| machine.layer(*l).units;
        let alone = matches!(kind(&visible[0]), Units::Binary | Units::Spin);
        if !alone || visible.iter().any(|l| kind(l) == Units::Gaussian) {
            continue;
        }
        n_seen += 1;
        let x = some_states(&machine, 4, 71);
        let row =
            |r: usize| -> Vec<f64> { visible.iter().flat_map(|&l| x.row(l, r).to_vec()).collect() };
        let rows = Array2::from_shape_fn((4, row(0).len()), |(r, c)| row(r)[c]);
        let score = |first: f64| {
            let mut rows = rows.clone();
            rows.column_mut(0).fill(first);
            likelihood::exact(&machine, &Dataset::from_array(rows.view()).unwrap()).unwrap().rows
        };
        let off = if kind(&visible[0]) == Units::Spin { -1.0 } else { 0.0 };
        let both = [score(off), score(1.0)];
        for (r, log) in score(f64::NAN).into_iter().enumerate() {
            let sum: f64 = both.iter().map(|b| b[r].exp()).sum();
            assert!((log.exp() - sum).abs() < 1e-9, "{name}: {log}");
        }
    }
    assert!(n_seen > 3);
}

#[test]
fn stacks_learn_around_holes_and_pseudo_likelihood_names_their_place() {
    let mut bits = Array2::from_shape_fn((6, 4), |(r, c)| f32::from(u8::from((r + c) % 2 == 0)));
    bits[[3, 2]] = f32::NAN;
    let data = Dataset::from_array(bits.view()).unwrap();
    assert!(data.table().is_bits(), "a hole does not widen bits");
    let expected = "finite units of layer `visible` cannot hold NaN (row 3, column 2)";
    let plan = Plan { epochs: 1, pretrain_epochs: 1, ..Plan::default() };
    Dbm::binary(4, &[2, 2]).unwrap().train(&data, &plan).unwrap();
    let plan = Plan { rule: Rule::Pseudo, ..Plan::default() };
    let layer = Layer::new("visible", Role::Visible, Units::Binary, 4).unwrap();
    let pairs = Coupling::lateral(LayerId(0), Triangle::from_fn(4, |_, _| 0.1).unwrap());
    let error = Machine::new(vec![layer], vec![pairs]).unwrap().train(&data, &plan).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "one run of columns is meant")]
fn a_schema_that_does_not_fit_is_refused() {
    let weights = Matrix::from_fn(3, 2, |i, j| 0.3 * (i + j) as f64).unwrap();
    let layers = layers(&[("v", Units::Binary, 3), ("w", Units::Binary, 2)]).layers().to_vec();
    let between = Coupling::between(LayerId(0), LayerId(1), weights);
    let machine = Machine::new(layers, vec![between]).unwrap();
    let data = real(&[0.0, 1.0, 1.0], 3);
    let with = |columns, units| {
        let encoding = Encoding::Entries { columns };
        let layer = Layer::new("v", Role::Visible, units, 3).unwrap();
        Schema::new(vec![Filling::new(&layer, encoding)])
    };
    let feed = |schema: &Schema| Feed::new(&machine, schema, data.clone());
    let refused = |columns, units| feed(&with(columns, units)).unwrap_err();
    assert!(matches!(refused(vec![0..2], Units::Binary), Error::ColumnCount { .. }));
    assert!(matches!(refused(vec![0..2, 2..4], Units::Binary), Error::Shape { .. }));
    assert!(matches!(refused(vec![0..3], Units::Spin), Error::Shape { .. }));
    assert!(matches!(refused(vec![1..4], Units::Binary), Error::ColumnCount { .. }));
    // What the schema does not name is free: two units with the inputs 0.3 + 0.6 and 0.6 + 0.9.
    let batch = feed(&with(vec![0..3], Units::Binary)).unwrap().batch([0], Stream::new(DRAW));
    assert!(batch.clamp().frees_layer(LayerId(1)));
    let x = batch.to_state(&machine).unwrap();
    let sum = exact::log_sums(&machine, batch.clamp(), &x).unwrap()[0];
    assert!((sum - 0.9_f64.exp().ln_1p() - 1.5_f64.exp().ln_1p()).abs() < 1e-12);
}
