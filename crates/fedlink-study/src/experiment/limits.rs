//! The largest sweep that is allowed. Its size is known as a product, before any curve is made.

use super::Experiment;
use super::rule::values_at;
use fedlink::spec::ConfigError;
use toml::Value;

/// The most curves of an experiment, excluded combinations included: each has a configuration in memory and
/// a line in every table.
const MAX_CURVES: u128 = 10_000;

/// The most runs of an experiment, excluded combinations included: each has a configuration in memory and a
/// file.
const MAX_RUNS: u128 = 1_000_000;

impl Experiment {
    /// Refuses a sweep of too many runs.
    pub(super) fn check_size(&self) -> Result<(), ConfigError> {
        let curves = product(self.sweep.iter().map(|(_, values)| values.len()));
        let seeds = self.max_seeds();
        let runs = curves.saturating_mul(seeds.into());
        if curves <= MAX_CURVES && runs <= MAX_RUNS {
            return Ok(());
        }
        let sizes: Vec<String> =
            self.sweep.iter().map(|(key, values)| format!("{} of {key}", values.len())).collect();
        let problem = format!(
            "{curves} combinations ({}) of {seeds} seeds each make {runs} runs; at most {MAX_CURVES} \
             combinations and {MAX_RUNS} runs are allowed: sweep fewer keys or values, or lower run.seeds",
            if sizes.is_empty() { "nothing is swept".into() } else { sizes.join(" × ") },
        );
        Err(ConfigError::new(if self.sweep.is_empty() { "run.seeds" } else { "sweep" }, problem))
    }

    /// The largest number of seeds that any value of `run.seeds` gives a curve.
    fn max_seeds(&self) -> u64 {
        let whole = |value: &Value| value.as_integer().and_then(|seeds| u64::try_from(seeds).ok());
        let base = self.table.get("run").and_then(|run| run.get("seeds"));
        base.into_iter().chain(values_at(self, "run.seeds")).filter_map(whole).max().unwrap_or(1).max(1)
    }
}

/// The product of all sizes, in numbers that do not overflow.
fn product(sizes: impl Iterator<Item = usize>) -> u128 {
    sizes.fold(1u128, |product, size| product.saturating_mul(size as u128))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(keys: &[&str], values: usize, seeds: u64) -> String {
        let list: Vec<String> = (1..=values).map(|i| i.to_string()).collect();
        let lines: Vec<String> =
            keys.iter().map(|key| format!("\"{key}\" = [{}]", list.join(", "))).collect();
        format!("[run]\nseeds = {seeds}\n[sweep]\n{}\n", lines.join("\n"))
    }

    #[test]
    fn a_sweep_beyond_all_memory_is_refused_as_a_product() {
        let keys = [
            "schedule.k",
            "learn.local_steps",
            "learn.batch",
            "run.rounds",
            "run.evaluate_every",
            "radio.symbols",
            "data.samples_per_device",
            "run.seed",
            "defense.strikes",
            "defense.cap_slack",
        ];
        let error = Experiment::parse("x", &sweep(&keys, 100, 3)).unwrap_err().to_string();
        assert!(error.contains("100000000000000000000 combinations (100 of "), "{error}");
        assert!(
            error.contains("make 300000000000000000000 runs; at most 10000 combinations and 1000000 runs"),
            "{error}"
        );
    }

    #[test]
    fn a_sweep_of_very_many_values_is_refused_without_a_look_at_each_pair() {
        let started = std::time::Instant::now();
        let error = Experiment::parse("x", &sweep(&["run.seed"], 400_000, 1)).unwrap_err().to_string();
        assert!(error.contains("400000 combinations"), "{error}");
        let twice = format!("[sweep]\n\"run.seed\" = [{}1]\n", "1, 2, 3, ".repeat(3000));
        let error = Experiment::parse("x", &twice).unwrap_err().to_string();
        assert!(error.contains("has 1 twice; write every value once"), "{error}");
        // Pair by pair it takes minutes.
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    #[test]
    fn seeds_count_wherever_they_are_given() {
        let message = |text: &str| Experiment::parse("x", text).unwrap_err().to_string();
        let error = message(&sweep(&["schedule.k", "learn.local_steps"], 4, 100_000));
        assert!(error.contains("16 combinations") && error.contains("make 1600000 runs"), "{error}");
        let swept = "[sweep]\n\"run.seeds\" = [1, 600_000]\n";
        assert!(message(swept).contains("make 1200000 runs"), "{}", message(swept));
        let overridden = "[sweep]\n\"schedule.k\" = [1, 2]\n[[override]]\nwhen = { \"schedule.k\" = 2 }\n\
                          set = { \"run.seeds\" = 600_000 }\n";
        assert!(message(overridden).contains("make 1200000 runs"), "{}", message(overridden));
        assert!(Experiment::parse("x", &sweep(&["schedule.k"], 3, 5)).is_ok());
    }
}
