//! Modulation and coding by a table of channel qualities.

use super::{Energy, Rate, spectral_efficiency};
use crate::base::units::from_db;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use serde::{Deserialize, Serialize};

/// The entry of this rate model.
pub const ENTRY: Entry<dyn Rate> = Entry::of::<McsConfig>();

/// Steps of a table: the channel quality indicators 1 to 15.
pub const STEPS: usize = 15;

/// A table of channel quality indicators (`radio.mcs.table`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Table {
    /// 3GPP TS 36.213 table 7.2.3-1, the same as TS 38.214 table 5.2.2.1-2: up to 64-QAM.
    #[default]
    #[serde(rename = "lte-64qam")]
    Lte64Qam,
    /// 3GPP TS 38.214 table 5.2.2.1-3: up to 256-QAM.
    #[serde(rename = "nr-256qam")]
    Nr256Qam,
}

impl Table {
    /// Bits per symbol of the modulation, and 1024 times the code rate, of each step.
    fn modulations(self) -> [(u16, u16); STEPS] {
        match self {
            Self::Lte64Qam => [
                (2, 78),
                (2, 120),
                (2, 193),
                (2, 308),
                (2, 449),
                (2, 602),
                (4, 378),
                (4, 490),
                (4, 616),
                (6, 466),
                (6, 567),
                (6, 666),
                (6, 772),
                (6, 873),
                (6, 948),
            ],
            Self::Nr256Qam => [
                (2, 78),
                (2, 193),
                (2, 449),
                (4, 378),
                (4, 490),
                (4, 616),
                (6, 466),
                (6, 567),
                (6, 666),
                (6, 772),
                (6, 873),
                (8, 711),
                (8, 797),
                (8, 885),
                (8, 948),
            ],
        }
    }

    /// S, bits per symbol of each step.
    pub fn efficiencies(self) -> [f64; STEPS] {
        self.modulations().map(|(order, rate)| f64::from(order) * f64::from(rate) / 1024.0)
    }

    /// The SNR in dB from which each step is used, unless others are given.
    pub fn thresholds_db(self) -> [f64; STEPS] {
        match self {
            Self::Lte64Qam => {
                [-6.7, -4.7, -2.3, 0.2, 2.4, 4.3, 5.9, 8.1, 10.3, 11.7, 14.1, 16.3, 18.7, 21.0, 22.7]
            }
            Self::Nr256Qam => {
                [-6.7, -2.3, 2.5, 6.1, 8.3, 10.5, 11.8, 14.2, 16.5, 18.8, 21.0, 22.7, 25.1, 27.6, 29.4]
            }
        }
    }
}

/// `[radio.mcs]`.
#[keys]
#[derive(Clone, Debug)]
pub struct McsConfig {
    /// table of channel qualities
    #[key(allowed = "\"lte-64qam\" | \"nr-256qam\"")]
    pub table: Table,
    /// SNR in dB from which each of the 15 steps is used
    #[key(allowed = "15 rising numbers", derived = "those of 10 % block errors")]
    pub thresholds_db: Vec<f64>,
    /// probability that an upload is lost: 0 leaves the block errors of the thresholds out
    #[key(range = "≥ 0 and < 1")]
    pub loss: f64,
}

impl PartConfig for McsConfig {
    type Part = dyn Rate;
    const NAME: &'static str = "mcs";
    const MEANING: &'static str =
        "modulation and coding by radio.mcs.table: a step function of the SNR, nothing below its first step";

    fn derive(&mut self, _: &Scope) {
        if self.thresholds_db.is_empty() {
            self.thresholds_db = self.table.thresholds_db().to_vec();
        }
    }

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        check_thresholds(&self.thresholds_db, &self.table.efficiencies())
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Rate>, ConfigError> {
        let mut thresholds = self.table.thresholds_db();
        // `resolve` has checked that there are as many.
        thresholds.iter_mut().zip(&self.thresholds_db).for_each(|(own, given)| *own = *given);
        Ok(Box::new(Mcs::new(self.table.efficiencies(), thresholds, self.loss)))
    }
}

/// Checks that there are 15 rising thresholds, none below the SNR at which the capacity equals the step's
/// rate.
fn check_thresholds(thresholds: &[f64], efficiencies: &[f64; STEPS]) -> Result<(), ConfigError> {
    let refuse = |problem: String| Err(ConfigError::new("thresholds_db", problem));
    if thresholds.len() != STEPS {
        return refuse(format!("has {} numbers, but must have {STEPS}", thresholds.len()));
    }
    for (i, (&threshold, &efficiency)) in thresholds.iter().zip(efficiencies).enumerate() {
        let index = i + 1;
        if !(threshold.is_finite() && threshold.abs() <= 200.0) {
            return refuse(format!("number {index} is {threshold}, but must lie in -200..=200"));
        }
        if i > 0 && threshold <= thresholds[i - 1] {
            return refuse(format!(
                "number {index} is {threshold}, but must be above the one before, {}",
                thresholds[i - 1]
            ));
        }
        if spectral_efficiency(from_db(threshold)) < efficiency {
            return refuse(format!(
                "number {index} is {threshold}, but {efficiency} bits per symbol need at least {:.2} dB",
                10.0 * libm::log10(libm::exp2(efficiency) - 1.0)
            ));
        }
    }
    Ok(())
}

/// b(γ, n) = n·S(i) with the largest step i whose threshold is at most γ; 0 below the first.
///
/// Efficiencies S are those of the 3GPP tables, modulation order times code rate. The default thresholds of
/// `lte-64qam` are the commonest set for 10 % block errors on the Gaussian channel (−6.7 … 22.7 dB); those of
/// `nr-256qam`, for which there is no such set, follow γ_i = Γ_i·(2^S_i − 1) with Γ_i = 2.7 dB + 0.6 dB·S_i,
/// which fits the former within 0.2 dB. srsLTE's thresholds are 6 to 9 dB higher: name the table with
/// every result. The block errors are either left out (`loss = 0`) or made real (`loss = 0.1`).
///
/// ```
/// use fedlink::radio::rate::{Mcs, Rate, mcs::Table};
/// let rate = Mcs::of(Table::Lte64Qam);
/// assert_eq!(rate.bits(0.2, 1000.0), 0.0);
/// assert_eq!(rate.bits(1000.0, 1024.0), 6.0 * 948.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mcs {
    efficiencies: [f64; STEPS],
    /// Ratios.
    thresholds: [f64; STEPS],
    loss: f64,
}

impl Mcs {
    /// Steps with these bits per symbol from these SNRs on, both rising.
    pub fn new(efficiencies: [f64; STEPS], thresholds_db: [f64; STEPS], loss: f64) -> Self {
        Self { efficiencies, thresholds: thresholds_db.map(from_db), loss }
    }

    /// A table with its default thresholds and no loss.
    pub fn of(table: Table) -> Self {
        Self::new(table.efficiencies(), table.thresholds_db(), 0.0)
    }

    /// The number of steps that an SNR reaches.
    fn reached(&self, snr: f64) -> usize {
        self.thresholds.partition_point(|&threshold| threshold <= snr)
    }
}

impl Rate for Mcs {
    fn loses(&self) -> bool {
        self.loss > 0.0
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        match self.reached(snr) {
            0 => 0.0,
            step => symbols * self.efficiencies[step - 1],
        }
    }

    fn slope(&self, snr: f64) -> Option<f64> {
        Some(self.bits(snr, 1.0))
    }

    /// The best step: step i has energy for E/γ_i symbols.
    fn spread(&self, energy: &Energy, symbols: f64) -> f64 {
        let step =
            |(&efficiency, &threshold): (&f64, &f64)| efficiency * symbols.min(energy.symbols_at(threshold));
        let steps = self.efficiencies.iter().zip(&self.thresholds).take(self.reached(energy.max_snr));
        steps.map(step).fold(0.0, f64::max)
    }

    fn loss(&self, _: f64, _: f64, bits: f64) -> f64 {
        if bits > 0.0 { self.loss } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Table as Toml;

    const PRINTED: [(Table, [f64; STEPS]); 2] = [
        (
            Table::Lte64Qam,
            [
                0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223,
                3.9023, 4.5234, 5.1152, 5.5547,
            ],
        ),
        (
            Table::Nr256Qam,
            [
                0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152,
                5.5547, 6.2266, 6.9141, 7.4063,
            ],
        ),
    ];

    #[test]
    fn efficiencies_are_those_printed_in_the_standards() {
        for (table, printed) in PRINTED {
            for (own, printed) in table.efficiencies().iter().zip(printed) {
                assert!((own - printed).abs() <= 5.1e-5, "{own} is not {printed}");
            }
        }
    }

    #[test]
    fn the_rate_steps_to_the_table_at_each_threshold_and_stays_below_capacity() {
        for (table, _) in PRINTED {
            let rate = Mcs::of(table);
            assert_eq!(rate.bits(from_db(table.thresholds_db()[0]) * 0.999, 10.0), 0.0);
            for (i, efficiency) in table.efficiencies().into_iter().enumerate() {
                let snr = from_db(table.thresholds_db()[i]);
                assert_eq!(rate.bits(snr, 10.0), 10.0 * efficiency);
                assert_eq!(rate.slope(snr), Some(efficiency));
                assert!(efficiency <= spectral_efficiency(snr));
                let below = if i == 0 { 0.0 } else { table.efficiencies()[i - 1] };
                assert_eq!(rate.slope(snr * (1.0 - 1e-12)), Some(below));
            }
        }
    }

    #[test]
    fn thresholds_of_256_qam_follow_the_fit_to_those_of_64_qam() {
        let fit = |efficiency: f64| 2.7 + 0.6 * efficiency + 10.0 * (efficiency.exp2() - 1.0).log10();
        for (table, slack) in [(Table::Nr256Qam, 0.051), (Table::Lte64Qam, 0.21)] {
            for (efficiency, threshold) in table.efficiencies().into_iter().zip(table.thresholds_db()) {
                assert!((fit(efficiency) - threshold).abs() < slack, "{efficiency}: {}", fit(efficiency));
            }
        }
    }

    #[test]
    fn spread_energy_uses_the_best_step_that_the_power_reaches() {
        let rate = Mcs::of(Table::Lte64Qam);
        let energy = 50.0;
        for max_snr in [0.01, 1.0, 30.0, 1e9] {
            let mut best = 0.0f64;
            for i in 1..=20_000 {
                let symbols = 0.02 * f64::from(i);
                best = best.max(rate.bits((energy / symbols).min(max_snr), symbols));
                let spread = rate.spread(&Energy { snr: energy, over: 1.0, max_snr }, symbols);
                let range = best * (1.0 - 1e-12)..=best + 0.02 * 5.6;
                assert!(range.contains(&spread), "{spread}, not {best}");
            }
        }
    }

    #[test]
    fn wrong_thresholds_are_refused_by_their_number() {
        let build = |text: &str| {
            let own: Toml = text.parse().unwrap();
            ENTRY.build(&own, &Scope::default(), &()).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(build(""), Ok(()));
        assert_eq!(build("table = \"nr-256qam\"\nloss = 0.1"), Ok(()));
        let listed = |change: &dyn Fn(&mut Vec<f64>)| {
            let mut numbers = Table::Lte64Qam.thresholds_db().to_vec();
            change(&mut numbers);
            build(&format!("thresholds_db = {numbers:?}"))
        };
        assert_eq!(listed(&|_| ()), Ok(()));
        let error = |change: &dyn Fn(&mut Vec<f64>)| listed(change).unwrap_err();
        assert!(error(&|n| n.truncate(14)).contains("thresholds_db: has 14 numbers, but must have 15"));
        assert!(error(&|n| n[3] = -2.3).contains("number 4 is -2.3, but must be above the one before, -2.3"));
        assert!(error(&|n| n[0] = -20.0).contains("number 1 is -20, but 0.15234375 bits per symbol need"));
        assert!(error(&|n| n[14] = 1e9).contains("number 15 is 1000000000, but must lie in"));
        assert!(build("loss = 1.0").unwrap_err().contains("radio.mcs.loss"));
    }
}
