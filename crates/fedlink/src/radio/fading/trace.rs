//! Gains, signal-to-noise ratios or rates from a file.

use super::estimate::gaussian;
use super::{Fading, FadingFacts, GainMeaning, Propagation};
use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::trace::{Times, Trace, TraceKind, read};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<TraceConfig>();

/// `[radio.trace]`.
#[keys]
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// the trace: long or wide CSV, NPY or NPZ
    #[key(allowed = "a path that ends in .csv, .npy or .npz", file)]
    pub file: String,
    /// what its numbers are: |h|², dB at the power and band of the measurement, or bits per second
    #[key(allowed = "\"auto\" (as the file says, else gain) | \"gain\" | \"snr_db\" | \"rate_bps\"")]
    pub kind: KindRule,
    /// what follows its last row
    #[key(allowed = "\"wrap\" (the first) | \"hold\" (the last) | \"error\"")]
    pub end: End,
}

/// The quantity that the numbers of a trace are (`radio.trace.kind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KindRule {
    /// The quantity that the file states, or gains if it states none.
    #[default]
    Auto,
    /// Power gains.
    Gain,
    /// Signal-to-noise ratios in dB.
    SnrDb,
    /// Rates in bits per second.
    RateBps,
}

/// The rule after the last row of a trace (`radio.trace.end`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum End {
    /// The first.
    #[default]
    Wrap,
    /// The last, forever.
    Hold,
    /// An error: a run must not be longer.
    Error,
}

impl PartConfig for TraceConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "trace";
    const MEANING: &'static str = "gains, signal-to-noise ratios or rates from a file, radio.trace.file";

    fn facts(&self) -> FadingFacts {
        FadingFacts { by_period: true, ..FadingFacts::default() }
    }

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        let ending = Path::new(&self.file).extension().and_then(|ending| ending.to_str());
        if self.file.is_empty() || ending.is_some_and(|ending| ["csv", "npy", "npz"].contains(&ending)) {
            return Ok(());
        }
        let problem = format!("is \"{}\", but must be the path of a .csv, .npy or .npz file", self.file);
        Err(ConfigError::new("file", problem))
    }

    fn build(self, scope: &Scope, propagation: &Propagation) -> Result<Box<dyn Fading>, ConfigError> {
        if self.file.is_empty() {
            let problem = "is needed by radio.fading = \"trace\": write the path of a CSV, NPY or NPZ file";
            return Err(ConfigError::new("file", problem));
        }
        let trace = read(Path::new(&self.file)).map_err(|problem| ConfigError::new("file", problem))?;
        Ok(Box::new(TraceFading::new(trace, self.kind, self.end, scope, propagation)?))
    }
}

/// The gain of device m in round t is row t of its column; if rows have times, the last row that is not after
/// t·`period_s` (counted from the first row), or row t if rows are equally spaced and no period is given.
///
/// A trace of F < M devices is used several times: device m takes column m mod F, from row 0 if m < F,
/// otherwise from a row drawn uniformly for it. With several resource blocks the gain is the mean of theirs.
/// dB become ratios. An estimate assumes a Gaussian amplitude with the mean gain of the column; rates are
/// known exactly.
///
/// Invariants: finite and ≥ 0, in every round up to `run.rounds`; after the end of a trace that must not be
/// exceeded the gain is not a number. The mean is that of the file, which need not be 1.
pub struct TraceFading {
    trace: Trace,
    kind: TraceKind,
    end: End,
    /// Seconds between rounds, if rows have times.
    period_s: Option<f64>,
    /// The row in which each device starts.
    starts: Vec<usize>,
    /// The mean of each column.
    means: Vec<f64>,
}

/// The part of a row by which rounding must not put t·period_s before the row that it means.
const SLACK: f64 = 1e-9;

impl TraceFading {
    /// The law of `trace`.
    pub fn new(
        mut trace: Trace,
        rule: KindRule,
        end: End,
        scope: &Scope,
        propagation: &Propagation,
    ) -> Result<Self, ConfigError> {
        check_propagation(&trace, propagation)?;
        let kind = check_kind(&trace, rule)?;
        if matches!(trace.times, Times::At(_)) && propagation.period_s.is_none() {
            let problem = "is needed by a trace with times: write the seconds from one round to the next";
            return Err(ConfigError::new("radio.period_s", problem));
        }
        if kind == TraceKind::SnrDb {
            trace.values.iter_mut().for_each(|value| *value = libm::pow(10.0, *value / 10.0));
        }
        let (rows, columns) = (trace.rows, trace.devices);
        if (columns as u64) < scope.devices && end != End::Wrap {
            let problem = format!(
                "has {columns} traces for {} devices, which share them from different rows on; write end = \
                 \"wrap\", or give every device its own",
                scope.devices
            );
            return Err(ConfigError::new("file", problem));
        }
        let start = |m: u64| {
            let is_copy = m >= columns as u64;
            // No round has this number.
            let draw = || stream(scope.seed, Purpose::Channel, u64::MAX, m).below(rows as u64) as usize;
            if is_copy { draw() } else { 0 }
        };
        let starts = (0..scope.devices).map(start).collect();
        let mean = |column: usize| {
            let sum: f64 = (0..rows).map(|row| mean(trace.at(row, column))).sum();
            sum / rows as f64
        };
        let means = (0..columns).map(mean).collect();
        let period_s = if trace.times == Times::Rounds { None } else { propagation.period_s };
        let fading = Self { trace, kind, end, period_s, starts, means };
        let last = scope.rounds.saturating_sub(1);
        if fading.row(last, 0.0, DeviceId(0)).is_none() {
            let problem = format!(
                "ends before round {last}, but run.rounds is {}; write end = \"wrap\" or \"hold\", or \
                 run fewer",
                scope.rounds
            );
            return Err(ConfigError::new("file", problem));
        }
        Ok(fading)
    }

    /// The row of `device` at `delay_s` before round `t`; none after the end of a trace that has one.
    fn row(&self, t: u64, delay_s: f64, device: DeviceId) -> Option<usize> {
        let (rows, start) = (self.trace.rows, self.starts.get(device.index()).copied().unwrap_or(0));
        match (&self.trace.times, self.period_s) {
            (Times::Step(step), Some(period)) => {
                let index = libm::floor((t as f64 * period - delay_s) / step + SLACK) as i64;
                self.within(index.saturating_add(start as i64))
            }
            (Times::At(times), Some(period)) => {
                let span = times[rows - 1] - times[0];
                let step = if rows > 1 { span / (rows - 1) as f64 } else { period };
                let time = t as f64 * period - delay_s + (times[start] - times[0]) + SLACK * step;
                let time = match self.end {
                    End::Wrap => time.rem_euclid(span + step),
                    End::Error if time >= span + step => return None,
                    End::Hold | End::Error => time,
                };
                Some(times.partition_point(|at| at - times[0] <= time).saturating_sub(1))
            }
            (Times::Rounds | Times::Step(_) | Times::At(_), _) => {
                // Both are below the number of rows after the remainder, and a file has at most 2²⁶.
                let t = if self.end == End::Wrap { t % rows as u64 } else { t.min(i64::MAX as u64 / 2) };
                self.within((t + start as u64) as i64)
            }
        }
    }

    /// Row `index` of a trace that continues by the rule for its end.
    fn within(&self, index: i64) -> Option<usize> {
        let rows = self.trace.rows as i64;
        match self.end {
            End::Wrap => Some(index.rem_euclid(rows) as usize),
            End::Hold => Some(index.clamp(0, rows - 1) as usize),
            End::Error => (index < rows).then_some(index.max(0) as usize),
        }
    }

    fn gain_before(&self, t: u64, delay_s: f64, device: DeviceId) -> f64 {
        let row = self.row(t, delay_s, device);
        row.map_or(f64::NAN, |row| mean(self.trace.at(row, device.index() % self.trace.devices)))
    }
}

impl Fading for TraceFading {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        self.gain_before(t, 0.0, device)
    }

    fn earlier(&self, t: u64, device: DeviceId, delay_s: f64) -> Option<f64> {
        self.period_s.map(|_| self.gain_before(t, delay_s, device))
    }

    fn estimate(&self, t: u64, device: DeviceId, error: f64, rng: &mut Stream) -> f64 {
        let (gain, mean) = (self.gain(t, device), self.means[device.index() % self.trace.devices]);
        if error == 0.0 || self.kind == TraceKind::RateBps || mean == 0.0 {
            return gain;
        }
        mean * gaussian(gain / mean, 1, error, rng)
    }

    fn blocks(&self, t: u64, device: DeviceId, out: &mut [f64]) {
        match self.row(t, 0.0, device) {
            Some(row) if self.trace.blocks == out.len() => {
                out.copy_from_slice(self.trace.at(row, device.index() % self.trace.devices));
            }
            _ => out.fill(self.gain(t, device)),
        }
    }

    fn fades_apart(&self) -> bool {
        self.trace.blocks > 1
    }

    fn meaning(&self) -> GainMeaning {
        match self.kind {
            TraceKind::Gain => GainMeaning::Gain,
            TraceKind::SnrDb => GainMeaning::SnrAtReference,
            TraceKind::RateBps => GainMeaning::RateBps,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Refuses the propagation keys whose effects a trace already contains.
fn check_propagation(trace: &Trace, propagation: &Propagation) -> Result<(), ConfigError> {
    propagation.check()?;
    propagation.refuse_amplitudes(TraceConfig::NAME, "which has its own")?;
    if propagation.antennas != 1 {
        let problem =
            format!("is {}, but a trace is the gain over all antennas; set it to 1", propagation.antennas);
        return Err(ConfigError::new("radio.antennas", problem));
    }
    let (has, needs) = (trace.blocks, propagation.blocks.count);
    if has > 1 && needs > 1 && has != needs {
        let problem = format!("is {needs}, but the trace has {has} resource blocks");
        return Err(ConfigError::new("radio.ofdma.resource_blocks", problem));
    }
    Ok(())
}

/// The quantity that the numbers of `trace` are; they must be possible values of it.
fn check_kind(trace: &Trace, rule: KindRule) -> Result<TraceKind, ConfigError> {
    let asked = match rule {
        KindRule::Auto => None,
        KindRule::Gain => Some(TraceKind::Gain),
        KindRule::SnrDb => Some(TraceKind::SnrDb),
        KindRule::RateBps => Some(TraceKind::RateBps),
    };
    if let (Some(asked), Some(found)) = (asked, trace.kind)
        && asked != found
    {
        let problem = format!("is \"{}\", but the file has {}; leave it out", asked.name(), found.name());
        return Err(ConfigError::new("kind", problem));
    }
    let kind = asked.or(trace.kind).unwrap_or(TraceKind::Gain);
    let bad = trace.values.iter().enumerate().find_map(|(i, &value)| Some((i, kind.problem(value)?)));
    bad.map_or(Ok(kind), |(i, problem)| {
        let (row, device) = (i / (trace.devices * trace.blocks), i / trace.blocks % trace.devices);
        // A line for each row, where a file can have numbers that are not of its kind: wide ones.
        Err(ConfigError::new("file", format!("line {}, column {}: {problem}", row + 1, device + 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::gains;
    use super::super::{Blocks, Memory};
    use super::*;
    use crate::radio::trace::parse;

    fn scope(devices: u64, rounds: u64) -> Scope {
        Scope { devices, rounds, ..Scope::default() }
    }

    fn period(period_s: f64) -> Propagation {
        Propagation { period_s: Some(period_s), ..Propagation::default() }
    }

    fn make(file: &str, end: End, scope: &Scope, propagation: &Propagation) -> Result<TraceFading, String> {
        let trace = parse(file.as_bytes()).unwrap();
        TraceFading::new(trace, KindRule::Auto, end, scope, propagation).map_err(|error| error.to_string())
    }

    /// A file of this number of lines.
    fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
        (0..count).map(line).collect::<Vec<_>>().join("\n")
    }

    /// The gains of device 0 in the first rounds.
    fn first(fading: &TraceFading, rounds: u64) -> Vec<f64> {
        (0..rounds).map(|t| fading.gain(t, DeviceId(0))).collect()
    }

    #[test]
    fn a_trace_by_rounds_ends_by_its_rule() {
        let file = "1,5\n2,6\n3,7\n";
        let plain = Propagation::default();
        let wrap = make(file, End::Wrap, &scope(2, 9), &plain).unwrap();
        assert_eq!(first(&wrap, 5), [1.0, 2.0, 3.0, 1.0, 2.0]);
        assert_eq!(gains(&wrap, u64::MAX, 2), gains(&wrap, u64::MAX % 3, 2));
        let hold = make(file, End::Hold, &scope(2, 9), &plain).unwrap();
        assert_eq!(first(&hold, 5), [1.0, 2.0, 3.0, 3.0, 3.0]);
        assert_eq!(gains(&hold, u64::MAX, 2), [3.0, 7.0]);
        let exact = make(file, End::Error, &scope(2, 3), &plain).unwrap();
        assert_eq!(first(&exact, 3), [1.0, 2.0, 3.0]);
        assert!(exact.gain(3, DeviceId(0)).is_nan());
        let problem = make(file, End::Error, &scope(2, 4), &plain).err().unwrap();
        assert!(problem.starts_with("file: ends before round 3, but run.rounds is 4"), "{problem}");
    }

    #[test]
    fn fewer_traces_than_devices_are_shared_from_rows_drawn_for_each() {
        let rows = lines(100, |t| format!("{t},{}", 1000 + t));
        let fading = make(&rows, End::Wrap, &scope(400, 50), &Propagation::default()).unwrap();
        let now = gains(&fading, 0, 400);
        assert_eq!(now[..2], [0.0, 1000.0]);
        let odd_is_second = now.iter().enumerate().all(|(m, g)| (m % 2 == 1) == (*g >= 1000.0));
        assert!(odd_is_second, "device m takes column m mod 2");
        let starts: std::collections::BTreeSet<u64> = now.iter().map(|g| *g as u64 % 1000).collect();
        assert!(starts.len() > 80, "rows drawn for 398 devices: {}", starts.len());
        // The next round is the next row.
        let next = gains(&fading, 1, 400);
        assert!(
            now.iter().zip(&next).all(|(a, b)| *b == if a % 1000.0 == 99.0 { a - 99.0 } else { a + 1.0 })
        );
        let problem = make(&rows, End::Hold, &scope(3, 50), &Propagation::default()).err().unwrap();
        assert!(problem.starts_with("file: has 2 traces for 3 devices"), "{problem}");
    }

    #[test]
    fn times_are_resampled_by_holding_the_previous_row() {
        let file = "time_s,device,gain\n5,0,1\n6,0,2\n8,0,3\n";
        // The span is 3 s, the mean step 1.5 s: wrapped after 4.5 s.
        let fading = make(file, End::Wrap, &scope(1, 20), &period(0.5)).unwrap();
        assert_eq!(first(&fading, 10), [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 1.0]);
        assert_eq!(fading.earlier(6, DeviceId(0), 0.1), Some(2.0));
        let fading = make(file, End::Hold, &scope(1, 20), &period(2.0)).unwrap();
        assert_eq!(first(&fading, 4), [1.0, 2.0, 3.0, 3.0]);
        assert_eq!(
            make(file, End::Error, &scope(1, 3), &period(2.0)).map(|fading| first(&fading, 3)[2]),
            Ok(3.0)
        );
        assert!(make(file, End::Error, &scope(1, 4), &period(2.0)).is_err());
        let problem = make(file, End::Wrap, &scope(1, 3), &Propagation::default()).err().unwrap();
        assert!(problem.starts_with("radio.period_s: is needed by a trace with times"), "{problem}");
    }

    #[test]
    fn equal_steps_are_hit_exactly_in_spite_of_rounding() {
        let mut trace = parse(lines(1000, |t| t.to_string()).as_bytes()).unwrap();
        trace.times = Times::Step(0.1);
        let make = |propagation: &Propagation| {
            TraceFading::new(trace.clone(), KindRule::Auto, End::Hold, &scope(1, 9), propagation).unwrap()
        };
        assert_eq!(first(&make(&period(0.1)), 1000), first(&make(&Propagation::default()), 1000));
        assert_eq!(first(&make(&period(0.3)), 300), (0..300).map(|t| f64::from(3 * t)).collect::<Vec<_>>());
        assert_eq!(first(&make(&period(0.05)), 4), [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn decibels_become_ratios_and_kinds_reach_the_radio() {
        let plain = Propagation::default();
        let snr = make("round,device,snr_db\n0,0,20\n1,0,-10\n", End::Wrap, &scope(1, 2), &plain).unwrap();
        assert_eq!(snr.meaning(), GainMeaning::SnrAtReference);
        assert!(
            (snr.gain(0, DeviceId(0)) - 100.0).abs() < 1e-12
                && (snr.gain(1, DeviceId(0)) - 0.1).abs() < 1e-15
        );
        let rate = make("round,device,rate_bps\n0,0,5e6\n", End::Wrap, &scope(1, 2), &plain).unwrap();
        assert_eq!((rate.meaning(), rate.gain(9, DeviceId(0))), (GainMeaning::RateBps, 5e6));
        let mut rng = stream(0, Purpose::CsiError, 0, 0);
        assert_eq!(rate.estimate(0, DeviceId(0), 0.5, &mut rng), 5e6);
        let kind = |file: &str, rule| {
            let trace = parse(file.as_bytes()).unwrap();
            let fading = TraceFading::new(trace, rule, End::Wrap, &scope(1, 2), &plain);
            fading.map(|fading| fading.meaning()).map_err(|error| error.to_string())
        };
        assert_eq!(kind("1\n2\n", KindRule::Auto), Ok(GainMeaning::Gain));
        assert_eq!(kind("1\n-2\n", KindRule::SnrDb), Ok(GainMeaning::SnrAtReference));
        let problem = kind("1\n-2\n", KindRule::RateBps).unwrap_err();
        assert_eq!(
            problem,
            "file: line 2, column 1: rate_bps is -2, but must be a finite number of at least 0"
        );
        let problem = kind("round,device,snr_db\n0,0,20\n", KindRule::Gain).unwrap_err();
        assert_eq!(problem, "kind: is \"gain\", but the file has snr_db; leave it out");
    }

    #[test]
    fn an_estimate_errs_in_proportion_to_the_mean_gain_of_the_trace() {
        let fading = make("1e-12\n3e-12\n", End::Wrap, &scope(1, 2), &Propagation::default()).unwrap();
        let seen = |i: u64| {
            let mut rng = stream(3, Purpose::CsiError, i, 0);
            fading.estimate(0, DeviceId(0), 0.25, &mut rng) / 2e-12
        };
        // E[ĝ | g] = (1−ε)²·g + ε(1−ε) in units of the mean, here with g = ½.
        super::super::tests::near_mean((0..20_000).map(seen), 0.5625 * 0.5 + 0.1875, "E ĝ");
    }

    #[test]
    fn resource_blocks_are_read_and_their_mean_is_the_gain() {
        let file = "round,device,gain,rb\n0,0,1,0\n0,0,3,1\n1,0,5,0\n1,0,9,1\n";
        let blocks =
            |count| Propagation { blocks: Blocks { count, spacing_hz: 1.0 }, ..Propagation::default() };
        let fading = make(file, End::Wrap, &scope(1, 2), &blocks(2)).unwrap();
        let mut out = [0.0; 2];
        fading.blocks(1, DeviceId(0), &mut out);
        assert_eq!((out, fading.gain(1, DeviceId(0))), ([5.0, 9.0], 7.0));
        let problem = make(file, End::Wrap, &scope(1, 2), &blocks(3)).err().unwrap();
        assert_eq!(problem, "radio.ofdma.resource_blocks: is 3, but the trace has 2 resource blocks");
    }

    #[test]
    fn keys_whose_effect_a_trace_contains_are_refused_and_the_file_is_named() {
        let propagation = Propagation { antennas: 2, ..Propagation::default() };
        assert!(
            make("1\n", End::Wrap, &scope(1, 1), &propagation).err().unwrap().starts_with("radio.antennas")
        );
        let memory = Memory::GaussMarkov { correlation: 0.5 };
        let propagation = Propagation { memory, ..Propagation::default() };
        assert!(
            make("1\n", End::Wrap, &scope(1, 1), &propagation)
                .err()
                .unwrap()
                .starts_with("radio.correlation")
        );
        let build = |file: &str| {
            let own = toml::Table::from_iter([("file".to_owned(), toml::Value::String(file.to_owned()))]);
            ENTRY.build(&own, &Scope::default(), &Propagation::default()).err().unwrap().to_string()
        };
        assert!(build("").starts_with("radio.trace.file: is needed by radio.fading = \"trace\""));
        let problem = "radio.trace.file: is \"gains\", but must be the path of a .csv, .npy or .npz file";
        assert_eq!(build("gains"), problem);
        assert!(build("no such file.csv").starts_with("radio.trace.file: no such file.csv: "));
    }
}
