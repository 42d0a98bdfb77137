//! How the columns of a table become numbers for a machine, and back.

use super::code::{Code, Curve, MOST_COUNTED, number, whole};
use super::detect::{Detected, MOST_LEVELS, Odd, detect};
use super::{Asked, Cells, Frame, Kind, Kinds, Place};
use crate::Error;

/// The columns that are learned, each with its code, and those that are not.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Codebook {
    /// The columns that are learned, in the order of the table.
    pub columns: Vec<Coded>,
    /// The columns that are not.
    pub left_out: Vec<LeftOut>,
}

/// A column that is learned.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coded {
    /// What the table calls it.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// How its cells are written as numbers.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub code: Code,
    /// What was seen in it.
    pub why: String,
    /// Cells of the training table that were missing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub n_missing: usize,
}

/// A column that is not learned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LeftOut {
    /// What the table calls it.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Columns whose units are alike, and so stand in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Group {
    /// Numbers.
    Numbers,
    /// Two values.
    Bits,
    /// So many values.
    Categories(usize),
    /// So many values in an order.
    Ordered(usize),
    /// Whole numbers up to this one.
    Counts(usize),
    /// Successes out of so many.
    Successes(usize),
    /// The class of the row, one of so many.
    Label(usize),
}

impl Coded {
    /// Which columns it stands beside.
    pub fn group(&self) -> Group {
        match &self.code {
            Code::Level { levels } if self.kind == Kind::Label => Group::Label(levels.len()),
            Code::Level { levels } if levels.len() == 2 => Group::Bits,
            Code::Level { levels } if self.kind == Kind::Ordinal => Group::Ordered(levels.len()),
            Code::Level { levels } => Group::Categories(levels.len()),
            Code::Number { .. } => Group::Numbers,
            Code::Count { max } if matches!(self.kind, Kind::Binomial(_)) => Group::Successes(*max),
            Code::Count { max } => Group::Counts(*max),
        }
    }

    /// Whether its values are larger and smaller, so that a mean says something of them.
    pub fn is_ordered(&self) -> bool {
        !matches!(self.group(), Group::Bits | Group::Categories(_) | Group::Label(_))
    }

    /// Entries of its unit in a machine.
    pub fn n_entries(&self) -> usize {
        match self.group() {
            Group::Categories(q) | Group::Label(q) => q,
            _ => 1,
        }
    }

    /// The words that it may hold; none of a column of numbers.
    pub fn levels(&self) -> &[String] {
        match &self.code {
            Code::Level { levels } => levels,
            Code::Number { .. } | Code::Count { .. } => &[],
        }
    }

    /// The scale that its numbers are learned on, if they are bent.
    pub fn curve(&self) -> Option<Curve> {
        match self.code {
            Code::Number { curve, .. } => Some(curve).filter(|c| *c != Curve::Linear),
            Code::Level { .. } | Code::Count { .. } => None,
        }
    }

    /// $\ln |dz/dx|$ at the number $z$ that stands for a cell.
    pub(crate) fn log_slope(&self, z: f64) -> f64 {
        self.code.log_slope(z)
    }

    /// The error of a cell that the code does not know.
    pub(super) fn refuse(&self, frame: &Frame, row: usize, cell: &str) -> Error {
        let (place, column, cell) = (frame.place(row), self.name.clone(), cell.to_owned());
        match &self.code {
            Code::Level { levels } => {
                Error::UnknownLevel { place, column, cell, levels: levels.clone() }
            }
            Code::Number { curve: Curve::Linear, .. } => Error::NoNumber { place, column, cell },
            Code::Number { .. } if number(&cell).is_none() => {
                Error::NoNumber { place, column, cell }
            }
            Code::Number { .. } => Error::BelowLogarithm { place, column, cell },
            Code::Count { max } => Error::NoCount { place, column, cell, max: *max },
        }
    }
}

impl Codebook {
    /// Looks at every column of a table; `asked` says what some of them hold.
    ///
    /// # Errors
    ///
    /// If a column that is asked for is not there or does not hold what is asked, a cell keeps its column from
    /// being what the others say it is, or nothing is left to learn.
    pub fn fit(frame: &Frame, asked: &Kinds) -> Result<Self, Error> {
        if let Some(name) = asked.keys().find(|name| frame.column(name).is_none()) {
            return Err(no_column(name, frame.names()));
        }
        let mut book = Self { columns: Vec::new(), left_out: Vec::new() };
        for (name, cells) in frame.names().iter().zip(frame.columns()) {
            let found = match (detect(name, cells), asked.get(name)) {
                (found, Some(asked)) => as_asked(name, *asked, found, cells)?,
                (Ok(found), None) => found,
                (Err(odd), None) => return Err(odd_cell(frame, name, odd)),
            };
            let Detected { kind, curve, why } = found;
            let name = name.clone();
            if kind == Kind::Ignore {
                book.left_out.push(LeftOut { name, why });
                continue;
            }
            let code = fit_code(frame, &name, kind, curve)?;
            let n_missing = cells.n_missing();
            book.columns.push(Coded { name, kind, code, why, n_missing });
        }
        book.check()?;
        Ok(book)
    }

    /// Whether there is something to learn, and at most one label.
    fn check(&self) -> Result<(), Error> {
        let labels: Vec<&Coded> = self.columns.iter().filter(|c| c.kind == Kind::Label).collect();
        if let [first, second, ..] = labels[..] {
            return Err(Error::TwoLabels { columns: (first.name.clone(), second.name.clone()) });
        }
        if self.columns.len() == labels.len() {
            return Err(self.nothing());
        }
        Ok(())
    }

    /// The error of a table of which nothing is learned.
    pub(super) fn nothing(&self) -> Error {
        let left_out = self.left_out.iter().map(|c| format!("`{}` ({})", c.name, c.why));
        let labels = self.columns.iter().map(|c| format!("`{}` (the label)", c.name));
        Error::NothingToLearn { left_out: labels.chain(left_out).collect() }
    }

    /// The columns of each layer, by their places in [`Codebook::columns`]: groups in the order of
    /// their first column, the label last.
    pub fn groups(&self) -> Vec<(Group, Vec<usize>)> {
        let mut groups: Vec<(Group, Vec<usize>)> = Vec::new();
        for (i, column) in self.columns.iter().enumerate() {
            let group = column.group();
            match groups.iter_mut().find(|(g, _)| *g == group) {
                Some((_, columns)) => columns.push(i),
                None => groups.push((group, vec![i])),
            }
        }
        groups.sort_by_key(|(group, _)| matches!(group, Group::Label(_)));
        groups
    }

    /// The columns in the order of the layers, the label last.
    pub fn in_order(&self) -> Vec<&Coded> {
        let places = self.groups().into_iter().flat_map(|(_, columns)| columns);
        places.map(|i| &self.columns[i]).collect()
    }

    /// The columns of the encoded table: all in the order of the layers but the label, which stands beside
    /// them.
    pub(crate) fn encoded(&self) -> Vec<&Coded> {
        let mut columns = self.in_order();
        columns.retain(|c| c.kind != Kind::Label);
        columns
    }

    /// The column that holds the class of a row, if there is one.
    pub fn label(&self) -> Option<&Coded> {
        self.columns.iter().find(|c| c.kind == Kind::Label)
    }

    /// The column of that name, if it is learned.
    pub fn column(&self, name: &str) -> Option<&Coded> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// What the entries of a machine's visible layers are called: `column` for a number, `column=word` for the second
    /// word of a binary column and for each word of a category.
    pub fn entry_names(&self) -> Vec<String> {
        let of = |column: &Coded| match column.group() {
            _ if column.is_ordered() => vec![column.name.clone()],
            Group::Bits => vec![format!("{}={}", column.name, column.levels()[1])],
            _ => column.levels().iter().map(|level| format!("{}={level}", column.name)).collect(),
        };
        self.in_order().into_iter().flat_map(of).collect()
    }

    /// Names of all columns, learned and left out.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let left = self.left_out.iter().map(|c| c.name.as_str());
        self.columns.iter().map(|c| c.name.as_str()).chain(left)
    }

    /// The column of that name.
    ///
    /// # Errors
    ///
    /// If it is not learned; says why if that is known.
    pub fn learned(&self, name: &str) -> Result<&Coded, Error> {
        if let Some(column) = self.column(name) {
            return Ok(column);
        }
        if let Some(LeftOut { name, why }) = self.left_out.iter().find(|c| c.name == name) {
            return Err(Error::NotLearned { name: name.clone(), why: why.clone() });
        }
        let learned: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        Err(no_column(name, &learned))
    }
}

/// What a column is, where people say so.
fn as_asked(
    name: &str,
    asked: Asked,
    found: Result<Detected, Odd>,
    cells: &Cells,
) -> Result<Detected, Error> {
    let Asked { kind, curve } = asked;
    let detected = found.ok().filter(|f| f.kind == Kind::Gaussian && kind == Kind::Gaussian);
    let curve = match curve {
        Some(Curve::Linear) => Curve::Linear,
        Some(Curve::Log | Curve::Log1p) => {
            let numbers: Vec<f64> = cells.iter().flatten().filter_map(number).collect();
            Curve::logarithm(&numbers)
                .ok_or_else(|| Error::NoLogarithm { column: name.to_owned() })?
        }
        None => detected.map_or(Curve::Linear, |f| f.curve),
    };
    Ok(Detected { kind, curve, why: "as asked for".into() })
}

/// The code of a column that holds what is said.
fn fit_code(frame: &Frame, name: &str, kind: Kind, curve: Curve) -> Result<Code, Error> {
    let cells = frame.column(name).ok_or_else(|| no_column(name, frame.names()))?;
    let column = name.to_owned();
    match kind {
        Kind::Gaussian => {
            let wrong = |(row, cell): (usize, Option<&str>)| {
                cell.filter(|cell| number(cell).is_none()).map(|cell| (row, cell.to_owned()))
            };
            if let Some((row, cell)) = cells.iter().enumerate().find_map(wrong) {
                return Err(Error::NoNumber { place: frame.place(row), column, cell });
            }
            if cells.n_missing() == cells.len() {
                return Err(Error::LevelCount { column, kind, found: 0 });
            }
            Ok(Code::fit_number(cells, curve))
        }
        Kind::Binary | Kind::Categorical | Kind::Label => {
            let code = Code::fit_levels(cells);
            let found = match &code {
                Code::Level { levels } => levels.len(),
                _ => 0,
            };
            let enough = if kind == Kind::Binary { found == 2 } else { found >= 2 };
            if enough { Ok(code) } else { Err(Error::LevelCount { column, kind, found }) }
        }
        Kind::Ordinal => {
            let wrong = |cell: &str| number(cell).is_none();
            if let Some((place, cell)) = first_that(frame, cells, wrong) {
                return Err(Error::NoNumber { place, column, cell });
            }
            let code = Code::fit_levels(cells);
            let found = match &code {
                Code::Level { levels } => levels.len(),
                _ => 0,
            };
            let fits = (2..=MOST_LEVELS).contains(&found);
            if fits { Ok(code) } else { Err(Error::LevelCount { column, kind, found }) }
        }
        Kind::Counts | Kind::Binomial(_) => {
            let most = if let Kind::Binomial(n) = kind { n as usize } else { MOST_COUNTED };
            let wrong = |cell: &str| whole(cell).is_none_or(|k| k > most);
            if let Some((place, cell)) = first_that(frame, cells, wrong) {
                return Err(Error::NoCount { place, column, cell, max: most });
            }
            let code = match kind {
                Kind::Binomial(_) => (most <= MOST_COUNTED).then_some(Code::Count { max: most }),
                _ => Code::fit_counts(cells),
            };
            code.ok_or(Error::NoUnits { column, kind })
        }
        Kind::Ignore => Err(Error::NoUnits { column, kind }),
    }
}

/// The first cell that is wrong, with its place.
fn first_that(
    frame: &Frame,
    cells: &Cells,
    wrong: impl Fn(&str) -> bool,
) -> Option<(Place, String)> {
    let of = |(row, cell): (usize, Option<&str>)| {
        cell.filter(|c| wrong(c)).map(|cell| (frame.place(row), cell.to_owned()))
    };
    cells.iter().enumerate().find_map(of)
}

fn odd_cell(frame: &Frame, name: &str, odd: Odd) -> Error {
    let Odd { row, cell, n_numbers } = odd;
    Error::OddCell { place: frame.place(row), column: name.to_owned(), cell, n_numbers }
}

pub(super) fn no_column(name: &str, names: &[String]) -> Error {
    Error::NoColumn { name: name.to_owned(), names: names.to_vec() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::frame) fn frame(columns: &[(&str, &[Option<&str>])]) -> Frame {
        let column = |(name, cells): &(&str, &[Option<&str>])| {
            ((*name).to_owned(), cells.iter().copied().collect())
        };
        Frame::new(columns.iter().map(column).collect()).unwrap()
    }

    pub(in crate::frame) fn animals() -> Frame {
        frame(&[
            ("id", &[Some("a1"), Some("a2"), Some("a3"), Some("a4"), Some("a5"), Some("a6")]),
            ("mass", &[Some("3.5"), Some("4.0"), None, Some("9.5"), Some("3.0"), Some("4.5")]),
            (
                "kind",
                &[Some("cat"), Some("dog"), Some("cat"), Some("owl"), Some("cat"), Some("owl")],
            ),
            ("tame", &[Some("yes"), Some("yes"), Some("no"), None, Some("yes"), Some("no")]),
        ])
    }

    pub(in crate::frame) fn book() -> Codebook {
        Codebook::fit(&animals(), &Kinds::new()).unwrap()
    }

    pub(in crate::frame) fn asked(pairs: &[(&str, &str)]) -> Result<Codebook, Error> {
        let asked = pairs.iter().map(|(n, k)| ((*n).to_owned(), k.parse().unwrap()));
        Codebook::fit(&animals(), &asked.collect())
    }

    #[test]
    fn each_column_is_found_out_about() {
        let book = book();
        let kinds: Vec<_> = book.columns.iter().map(|c| (c.name.as_str(), c.kind)).collect();
        let expected =
            [("mass", Kind::Gaussian), ("kind", Kind::Categorical), ("tame", Kind::Binary)];
        assert_eq!(kinds, expected);
        assert_eq!(book.left_out[0].name, "id");
        let groups: Vec<Group> = book.groups().into_iter().map(|(g, _)| g).collect();
        assert_eq!(groups, [Group::Numbers, Group::Categories(3), Group::Bits]);
        let entries = ["mass", "kind=cat", "kind=dog", "kind=owl", "tame=yes"];
        assert_eq!(book.entry_names(), entries);
    }

    #[test]
    fn kinds_can_be_said() {
        let book = asked(&[("kind", "label"), ("id", "categorical"), ("tame", "ignore")]).unwrap();
        let groups: Vec<Group> = book.groups().into_iter().map(|(g, _)| g).collect();
        assert_eq!(groups, [Group::Categories(6), Group::Numbers, Group::Label(3)]);
        assert_eq!(
            asked(&[("mass", "gaussian:log")]).unwrap().columns[0].curve(),
            Some(Curve::Log)
        );
        let error = |pairs: &[(&str, &str)]| asked(pairs).unwrap_err();
        assert!(matches!(error(&[("kind", "gaussian")]), Error::NoNumber { .. }));
        assert!(matches!(error(&[("kind", "binary")]), Error::LevelCount { found: 3, .. }));
        assert!(matches!(error(&[("size", "binary")]), Error::NoColumn { .. }));
        let two = error(&[("kind", "label"), ("tame", "label")]);
        assert!(matches!(two, Error::TwoLabels { .. }));
        assert!(matches!(error(&[("kind", "ordinal")]), Error::NoNumber { .. }));
        for kind in ["counts", "binomial:9"] {
            assert!(matches!(error(&[("mass", kind)]), Error::NoCount { .. }), "{kind}");
        }
        assert!(matches!(error(&[("kind", "binomial:2000")]), Error::NoCount { .. }));
        let nothing = ["mass", "kind", "tame"].map(|n| (n, "ignore"));
        assert!(matches!(error(&nothing), Error::NothingToLearn { .. }));
    }
}
