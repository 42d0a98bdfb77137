//! What was typed.

use super::Fallible;
use super::contenders::{Item, PEERS, Peer};
use crate::report::Json;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const USAGE: &str = "usage: cargo xtask bench peers [--only a,c] [--against NAME,...] \
     [--quick] [--full] [--epochs N] [--rounds N] [--data FOLDER] [--json [FILE]]";

/// Settings of a run.
#[derive(Debug)]
pub(super) struct Options {
    pub items: Vec<Item>,
    /// Peers that take part: few of them leave time for more rounds.
    pub peers: Vec<&'static Peer>,
    /// Of the item with batches of 100; that with batches of 10 has one.
    pub epochs: usize,
    pub rounds: usize,
    /// Temperatures that peers really run; their times are scaled to [`Item::BETAS`].
    pub betas: usize,
    pub data: Option<PathBuf>,
    pub json: Json,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> Fallible<Self> {
        let (mut items, mut data, mut json) = (Item::ALL.to_vec(), None, Json::No);
        let mut peers = PEERS.iter().collect();
        let (mut quick, mut full, mut epochs, mut rounds) = (false, false, None, None);
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            let mut value = |what: &str| words.next().ok_or(format!("{word} needs {what}"));
            match word {
                "--only" => items = listed(value("letters, e.g. a,c")?)?,
                "--against" => peers = named(value("names, e.g. numpy,sklearn-f32")?)?,
                "--epochs" => epochs = Some(positive(word, value("a number")?)?),
                "--rounds" => rounds = Some(positive(word, value("a number")?)?),
                "--data" => data = Some(PathBuf::from(value("a folder")?)),
                "--quick" => quick = true,
                "--full" => full = true,
                "--json" => json = Json::parse(&mut words),
                _ => return Err(format!("`{word}` is not known\n{USAGE}").into()),
            }
        }
        Ok(Self {
            items,
            peers,
            epochs: epochs.unwrap_or(if quick { 2 } else { 10 }),
            rounds: rounds.unwrap_or(if quick { 1 } else { 3 }),
            betas: if full { Item::BETAS } else { Item::BETAS / 10 },
            data,
            json,
        })
    }
}

fn listed(letters: &str) -> Fallible<Vec<Item>> {
    let item = |letter: &str| {
        Item::ALL.into_iter().find(|item| item.letter() == letter).ok_or(format!(
            "`{letter}` is not an item; there are {}",
            Item::ALL.map(Item::letter).join(", ")
        ))
    };
    Ok(letters.split(',').map(item).collect::<Result<_, _>>()?)
}

fn named(names: &str) -> Fallible<Vec<&'static Peer>> {
    let peer = |name: &str| {
        PEERS.iter().find(|peer| peer.name == name).ok_or(format!(
            "`{name}` is not a peer; there are {}",
            PEERS.each_ref().map(|peer| peer.name).join(", ")
        ))
    };
    Ok(names.split(',').map(peer).collect::<Result<_, _>>()?)
}

fn positive(flag: &str, text: &str) -> Fallible<usize> {
    match usize::from_str(text) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{flag} needs a number above 0, found `{text}`").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explicit_numbers_win_over_quick() {
        let options = Options::parse(&["--epochs", "3", "--quick"]).expect("well formed");
        assert_eq!((options.epochs, options.rounds), (3, 1));
    }

    #[test]
    fn json_takes_a_file_or_none() {
        let json = |words: &[&str]| Options::parse(words).expect("well formed").json;
        assert_eq!(json(&["--json", "--quick"]), Json::Stdout);
        assert_eq!(json(&["--json", "x.json", "--quick"]), Json::File("x.json".into()));
    }

    #[test]
    fn peers_can_be_named() {
        let options = Options::parse(&["--against", "sklearn-f32,numpy"]).expect("well formed");
        assert_eq!(
            options.peers.iter().map(|p| p.name).collect::<Vec<_>>(),
            ["sklearn-f32", "numpy"]
        );
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for words in [
            &["--only", "a,z"][..],
            &["--against", "numpy,nobody"],
            &["--rounds", "0"],
            &["--fast"],
            &["--data"],
        ] {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }
}
