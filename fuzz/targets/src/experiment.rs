//! Any text is an experiment of one of the three kinds, or an error. An experiment writes a file of the
//! same experiment.

use fedlink::parts::Parts;
use fedlink_study::experiment::{Experiment, FileKind, Source};
use fedlink_study::theory::{BoundExperiment, TheoremExperiment};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = Source::of_text("fuzz.toml", text);
    match source.kind() {
        FileKind::System => {
            let Ok(experiment) = Experiment::read(&source, &Parts::default()) else { return };
            check(experiment);
        }
        FileKind::Bound => {
            let Ok(experiment) = BoundExperiment::read(&source) else { return };
            check_bound(&experiment);
        }
        FileKind::Theorem => {
            let Ok(experiment) = TheoremExperiment::read(&source) else { return };
            check_theorem(&experiment);
        }
    }
}

/// The file that an experiment writes is read as the same experiment.
pub fn check(experiment: Experiment) {
    let Ok(first) = experiment.expand(&Parts::default()) else { return };
    let written = first.to_toml();
    let again =
        Experiment::parse("again.toml", written).unwrap_or_else(|error| panic!("{error}\nin\n{written}"));
    let second = again.expand(&Parts::default()).expect("it was valid before");
    assert_eq!(second.to_toml(), written);
    assert_eq!(first.curves.len(), second.curves.len());
    for (first, second) in first.curves.iter().zip(&second.curves) {
        assert_eq!((&first.label, &first.keys), (&second.label, &second.keys));
        // The rules reject NaN, so that equality is exact.
        assert_eq!(first.spec.resolved(), second.spec.resolved());
    }
}

/// The same of a figure of the bound.
pub fn check_bound(experiment: &BoundExperiment) {
    let written = experiment.to_toml();
    let again = BoundExperiment::parse("again.toml", written);
    let again = again.unwrap_or_else(|error| panic!("{error}\nin\n{written}"));
    assert_eq!(again.to_toml(), written);
}

/// The same of a check of the theorem.
pub fn check_theorem(experiment: &TheoremExperiment) {
    let written = experiment.to_toml();
    let again = TheoremExperiment::parse("again.toml", written);
    let again = again.unwrap_or_else(|error| panic!("{error}\nin\n{written}"));
    assert_eq!(again.to_toml(), written);
}
