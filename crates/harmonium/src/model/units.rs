//! Which visible layers fit a data set.

use crate::error::Error;
use crate::machine::{Layer, Role};
use crate::schema::book_layers;
use crate::units::Units;
use harmonium_data::frame::counting_room;
use harmonium_data::{Binarize, Dataset, Summary, Visible};

/// The visible layers that fit a data set, without that of the labels: one for each kind and size of the columns of a
/// table, else one layer of the kind asked for or of the one that the values suggest; see [`fitting_units`].
///
/// # Errors
///
/// If a kind is asked for and the columns of the table have kinds of their own, or the values suggest a kind
/// of units that does not exist yet.
pub fn fitting_layers(
    data: &Dataset,
    asked: Option<Visible>,
    states: Option<usize>,
) -> Result<Vec<Layer>, Error> {
    if !data.modalities().is_empty() {
        return layers_of_modalities(data, states);
    }
    let Some(book) = data.book() else {
        let units = fitting_units(data, asked, states)?;
        return Ok(vec![Layer::new("visible", Role::Visible, units, data.n_columns())?]);
    };
    if let Some(kind) = asked {
        return Err(Error::Setting {
            name: "visible",
            value: kind.to_string(),
            range: "left out for a table of columns, which have kinds of their own",
        });
    }
    book_layers(book)
}

/// The visible layers of a table of bits in which columns that always add up to one are categories, in the order of the
/// columns; nothing where there are no such columns.
///
/// # Errors
///
/// If memory ends.
pub fn grouped_layers(data: &Dataset) -> Result<Option<Vec<Layer>>, Error> {
    let groups = if data.book().is_some() { Vec::new() } else { data.table().one_hot_groups() };
    if groups.is_empty() {
        return Ok(None);
    }
    let mut layers: Vec<Layer> = Vec::new();
    let mut end = 0;
    let mut add = |columns: std::ops::Range<usize>, units: Units| {
        if columns.is_empty() {
            return Ok(());
        }
        let (name, n) = (format!("columns{}", columns.start), columns.len() / units.group());
        layers.push(Layer::new(name, Role::Visible, units, n)?);
        Ok::<(), Error>(())
    };
    let mut groups = groups.into_iter().peekable();
    while let Some(group) = groups.next() {
        add(end..group.start, Units::Binary)?;
        // Neighbours of one size share a layer.
        let (start, q) = (group.start, group.len());
        end = group.end;
        while let Some(next) = groups.next_if(|g| g.start == end && g.len() == q) {
            end = next.end;
        }
        add(start..end, Units::Categorical { q })?;
    }
    add(end..data.n_columns(), Units::Binary)?;
    Ok(Some(layers))
}

/// What is to be said of columns of bits that always add up to one; nothing where there are none.
pub fn groups_note(data: &Dataset) -> Option<String> {
    let groups = if data.book().is_some() { Vec::new() } else { data.table().one_hot_groups() };
    let first = groups.first()?;
    let n: usize = groups.iter().map(ExactSizeIterator::len).sum();
    let many = if groups.len() == 1 {
        "one category".into()
    } else {
        format!("{} categories", groups.len())
    };
    Some(format!(
        "{n} of {} columns hold {many} written one-hot, the first of them columns {} to {}: exactly one is 1 in every \
         row",
        data.n_columns(),
        first.start,
        first.end - 1
    ))
}

/// The layers of each of several sources, called as it is; those of a table of columns have the name of the source and a
/// point before their own.
fn layers_of_modalities(data: &Dataset, states: Option<usize>) -> Result<Vec<Layer>, Error> {
    let mut layers = Vec::new();
    for modality in data.modalities() {
        let own = fitting_layers(&data.of_modality(modality)?, modality.visible, states)?;
        let name = &modality.name;
        let one = own.len() == 1;
        let called = |l: Layer| {
            let name = if one { name.clone() } else { format!("{name}.{}", l.name) };
            Layer { name, ..l }
        };
        layers.extend(own.into_iter().map(called));
    }
    Ok(layers)
}

/// The visible units that fit a data set: the kind asked for, or the one that its values suggest.
/// `states` is the number of values of a categorical unit; by default the largest value plus one.
///
/// # Errors
///
/// If the values suggest a kind of units that does not exist yet.
pub fn fitting_units(
    data: &Dataset,
    asked: Option<Visible>,
    states: Option<usize>,
) -> Result<Units, Error> {
    let summary = Summary::of(data.table());
    let bits = data.is_sampled() || data.is_bits();
    let kind = asked.unwrap_or(if bits { Visible::Binary } else { summary.visible });
    match kind {
        Visible::Binary => Ok(Units::Binary),
        Visible::Spin => Ok(Units::Spin),
        Visible::Gaussian => Ok(Units::Gaussian),
        Visible::Categorical => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let seen = summary.max.max(0.0) as usize + 1;
            Ok(Units::Categorical { q: states.unwrap_or(seen.max(2)) })
        }
        Visible::Counts => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole")]
            let room = counting_room(summary.max.max(0.0) as usize);
            let max = states.map(|q| q.saturating_sub(1)).or(room);
            let none = || Error::NoSuchUnits { kind: kind.to_string(), why: summary.why.clone() };
            Ok(Units::Counts { max: max.ok_or_else(none)? })
        }
        other => Err(Error::NoSuchUnits { kind: other.to_string(), why: summary.why }),
    }
}

/// The default way to read grey values for the kind of visible units asked for.
pub fn fitting_binarize(asked: Option<Visible>) -> Option<Binarize> {
    match asked {
        Some(Visible::Gaussian | Visible::Categorical | Visible::Spin | Visible::Counts) => {
            Some(Binarize::None)
        }
        _ => None,
    }
}
