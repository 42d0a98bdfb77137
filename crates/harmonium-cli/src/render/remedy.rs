//! Remedies as flags of the command line.

use harmonium::findings::Remedy;

/// What to do about a finding, as a sentence; empty where nothing is to be done.
pub(crate) fn advice(remedies: &[Remedy]) -> String {
    let spelt: Vec<String> = remedies.iter().map(spelt).collect();
    let text = match spelt.split_last() {
        None => return String::new(),
        Some((only, [])) => only.clone(),
        Some((last, [first])) => format!("{first}, or {last}"),
        Some((last, others)) => format!("{}, or {last}", others.join(", ")),
    };
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    format!("{}.", first.chain(letters).collect::<String>())
}

/// A remedy as the beginning of a sentence, with its flag.
fn spelt(remedy: &Remedy) -> String {
    match remedy {
        Remedy::LowerLearningRate(x) => format!("learn more slowly with `--learning-rate {x}`"),
        Remedy::RaiseLearningRate(x) => format!("learn faster with `--learning-rate {x}`"),
        Remedy::MoreEpochs(n) => format!("train longer with `--epochs {n}`"),
        Remedy::StopNear(n) => format!("stop near epoch {n} with `--epochs {n}`"),
        Remedy::LetItRun => "let it train on".into(),
        Remedy::Resume => "go on with `--resume` if it was interrupted".into(),
        Remedy::MoreChains(n) => format!("keep more chains with `--chains {n}`"),
        Remedy::MoreSweeps(n) => format!("make more sweeps with `--k {n}`"),
        Remedy::MoreReplicas(n) => format!("use more temperatures with `--replicas {n}`"),
        Remedy::Tempering => "temper the chains with `--rule pt`".into(),
        Remedy::FewerHidden => "use fewer `--hidden` units".into(),
        Remedy::SparsityTarget(x) => format!("ask for sparse units with `--sparsity-target {x}`"),
        Remedy::RaiseL2(x) => format!("penalise weights with `--l2 {x}`"),
        Remedy::MaxNorm(x) => format!("limit weights with `--max-norm {x}`"),
        Remedy::MeanFieldSweeps(n) => format!("allow more sweeps with `--mean-field-sweeps {n}`"),
        Remedy::ClampedGibbs => "sample the hidden units with `--posterior gibbs`".into(),
        Remedy::KeepCentering => "center the units by leaving out `--no-center`".into(),
        Remedy::Standardise => "standardise real-valued data".into(),
        Remedy::MoreData => "use more data".into(),
        Remedy::MeasureLikelihood => "measure one with `harmonium score`".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_a_sentence_with_flags() {
        assert_eq!(advice(&[]), "");
        let two = [Remedy::MoreChains(500), Remedy::Tempering];
        assert_eq!(advice(&two[..1]), "Keep more chains with `--chains 500`.");
        assert_eq!(
            advice(&two),
            "Keep more chains with `--chains 500`, or temper the chains with `--rule pt`."
        );
        let three = [Remedy::LowerLearningRate(0.003), Remedy::KeepCentering, Remedy::MoreData];
        assert_eq!(
            advice(&three),
            "Learn more slowly with `--learning-rate 0.003`, center the units by leaving out `--no-center`, or use more data."
        );
    }
}
