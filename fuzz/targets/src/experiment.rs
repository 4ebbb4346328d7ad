//! Any text is an experiment of one of the three kinds, which is written as a file that says the same, or an
//! error.

use fedlink_study::experiment::AnyExperiment;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(experiment) = AnyExperiment::parse("fuzz.toml", text) else { return };
    check(&experiment);
}

/// The file that an experiment is written as is read as the same experiment.
pub fn check(experiment: &AnyExperiment) {
    let written = experiment.to_toml().expect("what was read can be written");
    let again = AnyExperiment::parse("again.toml", &written);
    let again = again.unwrap_or_else(|error| panic!("{error}\nin\n{written}"));
    assert_eq!(again.to_toml().expect("what was read can be written"), written);
    if let (AnyExperiment::Simulation(first), AnyExperiment::Simulation(second)) = (experiment, &again) {
        let [first, second] = [first, second].map(|experiment| experiment.curves().expect("it was checked"));
        assert_eq!(first.len(), second.len());
        for (first, second) in first.iter().zip(&second) {
            assert_eq!((&first.label, &first.keys), (&second.label, &second.keys));
            // Floats that are no numbers are refused by the rules, so equality is meant.
            assert_eq!(first.config.resolved(), second.config.resolved());
        }
    }
}
