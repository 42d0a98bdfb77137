//! From the codebook of a table to the visible layers of a machine.

use crate::error::Error;
use crate::machine::{Layer, Role};
use crate::units::Units;
use harmonium_data::frame::{Codebook, Group};

/// One visible layer for each kind and size of the columns that are learned, in the order of the encoded table:
/// `numbers`, `bits`, `categories3`, …; where there is only one, it is called `visible`. The label has a layer
/// of its own, which is not among them.
///
/// # Errors
///
/// If memory ends.
pub fn book_layers(book: &Codebook) -> Result<Vec<Layer>, Error> {
    let groups = book.groups();
    let data: Vec<_> = groups.iter().filter(|(g, _)| !matches!(g, Group::Label(_))).collect();
    let layer = |(group, columns): &&(Group, Vec<usize>)| {
        let (name, units) = match group {
            Group::Numbers => ("numbers".to_owned(), Units::Gaussian),
            Group::Bits => ("bits".to_owned(), Units::Binary),
            Group::Categories(q) | Group::Label(q) => {
                (format!("categories{q}"), Units::Categorical { q: *q })
            }
            Group::Ordered(q) => (format!("levels{q}"), Units::Ordinal { levels: *q }),
            Group::Counts(max) => (format!("counts{max}"), Units::Counts { max: *max }),
            Group::Successes(n) => (format!("successes{n}"), Units::Binomial { n: *n }),
            other => {
                let (model, found) = ("a machine of a table", format!("found {other:?}"));
                return Err(Error::Topology { model, expected: "columns that units hold", found });
            }
        };
        let name = if data.len() == 1 { "visible".to_owned() } else { name };
        Layer::new(name, Role::Visible, units, columns.len())
    };
    data.iter().map(layer).collect()
}
