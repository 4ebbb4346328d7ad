//! Axes: ranges, ticks and their labels.

use serde::{Deserialize, Serialize};

/// The approximate number of labeled ticks of a logarithmic axis, at most.
const LOG_TICKS: u32 = 7;
/// The sign of negative numbers.
const MINUS: &str = "\u{2212}";

/// Whether a figure can show a value; the bound keeps the difference of two finite.
pub fn drawable(v: f64) -> bool {
    v.abs() <= 1e300
}

/// Whether an axis can show a value: drawable and, on a logarithmic axis, positive and normal. A
/// subnormal number has too few digits for a tick.
pub fn shown(v: f64, log: bool) -> bool {
    drawable(v) && (!log || v >= 1e-300)
}

/// A labeled position on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// The value at the tick.
    pub at: f64,
    /// The text beside it.
    pub label: String,
}

/// A distance between the ticks of a linear axis; ticks are at its multiples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// From one tick to the next.
    pub by: f64,
    /// Decimals of the labels.
    pub decimals: usize,
}

/// The notation of the values on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notation {
    /// Unchanged.
    #[default]
    Plain,
    /// Times a hundred.
    Percent,
    /// Unchanged on the axis, with a prefix (12.3 k) in running text.
    Prefixed,
}

/// The quantity on an axis; [`Quantity::axis`] makes the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    label: String,
    notation: Notation,
    log: bool,
    from_zero: bool,
    margin: f64,
}

impl Quantity {
    /// Numbers in plain notation. The label includes their unit.
    pub fn plain(label: impl Into<String>) -> Self {
        Self { label: label.into(), notation: Notation::Plain, log: false, from_zero: false, margin: 0.04 }
    }

    /// Shares, written in percent: 0.93 as 93. The axis adds the unit to the label.
    pub fn share(label: impl Into<String>) -> Self {
        Self { notation: Notation::Percent, ..Self::plain(label) }
    }

    /// Large counts.
    pub fn count(label: impl Into<String>) -> Self {
        Self { notation: Notation::Prefixed, ..Self::plain(label) }
    }

    /// On a logarithmic axis, which shows positive values only.
    #[must_use]
    pub fn log(self) -> Self {
        Self { log: true, notation: Notation::Plain, ..self }
    }

    /// On an axis that includes zero, with no free space beyond zero on a side without values.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { from_zero: true, ..self }
    }

    /// With a free margin beyond the values, as a share of the span.
    #[must_use]
    pub fn margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }

    /// Whether its axis is logarithmic.
    pub(super) fn is_log(&self) -> bool {
        self.log
    }

    /// An axis that shows every drawable value; from zero to one if there is none.
    pub fn axis(&self, values: impl IntoIterator<Item = f64>) -> Axis {
        let shown = values.into_iter().filter(|&v| shown(v, self.log));
        let (mut low, mut high) =
            shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = if self.log { (0.1, 1.0) } else { (0.0, 1.0) };
        }
        if self.log {
            // At least a tenth of a decade, or all ticks would be equal.
            let (a, b) = (libm::log10(low), libm::log10(high));
            let free = self.margin * (b - a).max(0.1) + (0.1 - (b - a)).max(0.0) / 2.0;
            return Axis::logarithmic(&self.label, a - free, b + free);
        }
        let shares = self.notation == Notation::Percent && low >= 0.0 && high <= 1.0;
        if self.from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
            high = if low == high { 1.0 } else { high };
        }
        let size = low.abs().max(high.abs());
        let (mut floor, mut ceiling) = (f64::NEG_INFINITY, f64::INFINITY);
        if high - low <= (size * 1e-9).max(1e-290) {
            let half = if size > 1e-290 { size * 0.05 } else { 0.5 };
            (low, high) = (low - half, high + half);
        } else {
            // Values without negative ones need no space below zero, and values without positive ones
            // none above.
            floor = if low >= 0.0 { 0.0 } else { floor };
            ceiling = if high <= 0.0 { 0.0 } else { ceiling };
        }
        if shares {
            (floor, ceiling) = (0.0, 1.0);
        }
        let free = self.margin * (high - low);
        Axis::linear(&self.label, self.notation, (low - free).max(floor), (high + free).min(ceiling))
    }
}

/// An axis: its label, range and ticks. Every renderer uses these and chooses none of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity in running text: `test accuracy`, `bits sent`.
    pub name: String,
    /// The quantity with its unit: `test accuracy (%)`, `bits sent (×10⁶)`.
    pub label: String,
    /// The low end; on a logarithmic axis its decimal logarithm.
    pub low: f64,
    /// The high end; on a logarithmic axis its decimal logarithm.
    pub high: f64,
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// The notation of the values.
    pub notation: Notation,
    /// The number beside a tick is its value times this factor.
    pub factor: f64,
    /// Distances between ticks from the largest to the smallest, for any size and any part of a linear axis.
    pub steps: Vec<Step>,
    /// The ticks of a logarithmic axis.
    pub ticks: Vec<Tick>,
    /// The positions of the small ticks of a logarithmic axis, without labels.
    pub minor: Vec<f64>,
}

impl Axis {
    fn linear(label: &str, notation: Notation, low: f64, high: f64) -> Self {
        let scale = if notation == Notation::Percent { 100.0 } else { 1.0 };
        // A common power of ten keeps the labels of very large and very small values short.
        let magnitude = libm::log10(low.abs().max(high.abs()) * scale).floor() as i32;
        let power = if (-3..5).contains(&magnitude) { 0 } else { magnitude.div_euclid(3) * 3 };
        let top = libm::log10((high - low) * scale).floor() as i32 + 1;
        let exponents = (top - 4..=top).rev();
        let step = |(exponent, multiple): (i32, f64)| Step {
            by: multiple * power_of_ten(exponent) / scale,
            decimals: (power - exponent).clamp(0, 15) as usize,
        };
        let unit = match (power, notation) {
            (0, Notation::Percent) => "%".to_owned(),
            (0, _) => String::new(),
            (_, Notation::Percent) => format!("×{} %", power_label(power)),
            _ => format!("×{}", power_label(power)),
        };
        Self {
            name: label.to_owned(),
            label: match (label.is_empty(), unit.is_empty()) {
                (_, true) => label.to_owned(),
                (true, _) => unit,
                _ => format!("{label} ({unit})"),
            },
            low,
            high,
            log: false,
            notation,
            factor: scale / power_of_ten(power),
            steps: exponents.flat_map(|e| [5.0, 2.0, 1.0].map(|m| step((e, m)))).collect(),
            ticks: Vec::new(),
            minor: Vec::new(),
        }
    }

    fn logarithmic(label: &str, low: f64, high: f64) -> Self {
        let mut axis = Self {
            name: label.to_owned(),
            label: label.to_owned(),
            low,
            high,
            log: true,
            notation: Notation::Plain,
            factor: 1.0,
            ..Self::default()
        };
        let (first, last) = (low.ceil() as i32, high.floor() as i32);
        let decades = last - first + 1;
        if last - first <= 8 {
            let all = (first - 1..=last).flat_map(|k| (2..=9).map(move |m| f64::from(m) * power_of_ten(k)));
            axis.minor = all.filter(|&v| (low..=high).contains(&libm::log10(v))).collect();
        }
        if decades >= 3 {
            let stride = decades.unsigned_abs().div_ceil(LOG_TICKS) as i32;
            let powers = (first..=last).filter(|k| k.rem_euclid(stride) == 0);
            axis.ticks = powers.map(|k| Tick { at: power_of_ten(k), label: power_label(k) }).collect();
            return axis;
        }
        // If there are few powers of ten, round numbers between them are ticks as well.
        let ends = (libm::pow(10.0, low), libm::pow(10.0, high));
        for k in first - 1..=last {
            for m in [1.0, 2.0, 5.0] {
                let at = m * power_of_ten(k);
                if (ends.0..=ends.1).contains(&at) {
                    let plain = (-4..6).contains(&k);
                    let times = if m == 1.0 { power_label(k) } else { format!("{m}×{}", power_label(k)) };
                    axis.ticks.push(Tick { at, label: if plain { format!("{at}") } else { times } });
                }
            }
        }
        if axis.ticks.len() < 2 {
            let plain = Self::linear(label, Notation::Plain, ends.0, ends.1);
            axis.ticks = plain.ticks(LOG_TICKS as usize);
            (axis.label, axis.factor) = (plain.label, plain.factor);
        }
        axis
    }

    /// The position of a value as a share of the axis: 0 at its low end, 1 at its high end. `None` for
    /// values that the axis cannot show.
    pub fn share(&self, v: f64) -> Option<f64> {
        if !shown(v, self.log) {
            return None;
        }
        let v = if self.log { libm::log10(v) } else { v };
        Some(((v - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    /// The same axis with ticks at whole numbers only.
    pub(crate) fn of_whole_numbers(mut self) -> Self {
        self.steps.retain(|step| step.by >= 1.0);
        self
    }

    /// Round values inside the axis, at most about `wanted` of them on a linear one.
    pub fn ticks(&self, wanted: usize) -> Vec<Tick> {
        if self.log {
            return self.ticks.clone();
        }
        // Slightly less, because of the rounding error of a span that is a multiple of a round number.
        let finest = (self.high - self.low) / wanted.max(1) as f64 * (1.0 - 1e-9);
        let Some(step) = self.steps.iter().rfind(|step| step.by >= finest) else { return Vec::new() };
        // The loop ends even if a step is too fine for the values: there are at most about `wanted`
        // ticks.
        let first = (self.low / step.by - 1e-9).ceil();
        let count = ((self.high / step.by + 1e-9).floor() - first).clamp(0.0, 2.0 * wanted as f64) as usize;
        let tick = |i: usize| {
            let at = (first + i as f64) * step.by + 0.0;
            let label = format!("{:.*}", step.decimals, at * self.factor);
            let zero = label.trim_start_matches(['-', '0', '.']).is_empty();
            let label =
                if zero { label.trim_start_matches('-').to_owned() } else { label.replace('-', MINUS) };
            Tick { at, label }
        };
        (0..=count).map(tick).collect()
    }
}

/// `10^k`, correctly rounded; zero or infinite beyond the range of floats.
fn power_of_ten(k: i32) -> f64 {
    // The parser rounds correctly; a power function need not.
    format!("1e{k}").parse().unwrap_or(f64::INFINITY)
}

/// `10^k` in text.
pub fn power_label(k: i32) -> String {
    let digits = k.to_string();
    let raised = digits.chars().map(|c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => char::from_u32('⁰' as u32 + c as u32 - '0' as u32).unwrap_or(c),
    });
    format!("10{}", raised.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|t| &*t.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let axis = Quantity::plain("round").margin(0.0).axis([0.0, 500.0]);
        assert_eq!(labels(&axis.ticks(5)), ["0", "100", "200", "300", "400", "500"]);
        let axis = Quantity::share("accuracy").margin(0.0).axis([0.903, 0.931]);
        assert_eq!(labels(&axis.ticks(6)), ["90.5", "91.0", "91.5", "92.0", "92.5", "93.0"]);
        assert_eq!(axis.label, "accuracy (%)");
    }

    #[test]
    fn large_values_share_a_power_of_ten() {
        let axis = Quantity::count("bits sent").margin(0.0).axis([0.0, 4e6]);
        let ticks = axis.ticks(4);
        assert_eq!((labels(&ticks), &*axis.label), (vec!["0", "1", "2", "3", "4"], "bits sent (×10⁶)"));
        assert_eq!(ticks[3].at, 3e6);
    }

    #[test]
    fn a_logarithmic_axis_is_labeled_with_powers_of_ten() {
        let log = |margin, values: &[f64]| {
            Quantity::plain("bound").log().margin(margin).axis(values.iter().copied())
        };
        let axis = log(0.0, &[0.5, 2e3, -1.0, 0.0]);
        assert_eq!(labels(&axis.ticks(6)), ["10⁰", "10¹", "10²", "10³"]);
        assert_eq!(axis.share(0.0), None);
        assert_eq!(axis.share(2e3), Some(1.0));
        // Half a decade does not contain two powers of ten, a tenth of one not two numbers of 1, 2 and 5.
        assert!(log(0.2, &[300.0, 700.0]).ticks(6).len() >= 2);
        let axis = log(0.0, &[1.05e7, 1.35e7]);
        assert!(axis.label == "bound (×10⁶)" && labels(&axis.ticks(3)).contains(&"12.0"), "{axis:?}");
    }

    #[test]
    fn an_axis_from_zero_leaves_no_space_beyond_zero() {
        let ends = |values: &[f64]| {
            let axis = Quantity::plain("").from_zero().margin(0.1).axis(values.iter().copied());
            (axis.low, axis.high)
        };
        assert_eq!(ends(&[2.0, 10.0]), (0.0, 11.0));
        assert_eq!(ends(&[-10.0]), (-11.0, 0.0));
        assert_eq!((ends(&[0.0]), ends(&[])), ((0.0, 1.1), (0.0, 1.1)));
        let shares = Quantity::share("").axis([0.0, 1.0]);
        assert_eq!((shares.low, shares.high), (0.0, 1.0));
    }

    #[test]
    fn labels_stay_short_for_all_values() {
        for quantity in [Quantity::plain(""), Quantity::share("")] {
            for v in [5.2e164, 3e-200, 1e300] {
                let ticks = quantity.clone().margin(0.0).axis([0.0, v]).ticks(6);
                assert!(ticks.iter().all(|t| t.label.len() <= 6), "{ticks:?}");
            }
        }
    }

    #[test]
    fn powers_are_written_with_raised_digits() {
        assert_eq!(power_label(-12), "10⁻¹²");
        assert_eq!(power_label(304), "10³⁰⁴");
    }

    #[test]
    fn an_axis_of_one_value_has_it_in_the_middle() {
        for v in [0.0, 1.0, -3e-12, 1e300, 5e-324] {
            let axis = Quantity::plain("").axis([v]);
            assert!((axis.share(v).unwrap() - 0.5).abs() < 1e-6, "{v}: {axis:?}");
        }
    }

    proptest! {
        #[test]
        fn every_axis_has_distinct_ticks_in_order_inside_it(
            values in proptest::collection::vec(proptest::num::f64::ANY, 1..6),
            log: bool,
            wanted in 2usize..12,
        ) {
            let quantity = if log { Quantity::plain("").log() } else { Quantity::plain("") };
            let axis = quantity.axis(values.iter().copied());
            let ticks = axis.ticks(wanted);
            prop_assert!(!ticks.is_empty() && ticks.len() <= 2 * wanted + 6, "{} ticks", ticks.len());
            for pair in ticks.windows(2) {
                prop_assert!(pair[0].at < pair[1].at, "{ticks:?}");
                prop_assert!(pair[0].label != pair[1].label, "{ticks:?}");
            }
            for tick in &ticks {
                // The label is the value, unless it is a power of ten.
                if let Ok(written) = tick.label.replace('\u{2212}', "-").parse::<f64>() {
                    let value = written / axis.factor;
                    let step = (ticks[ticks.len() - 1].at - ticks[0].at).max(tick.at.abs() * 1e-9);
                    prop_assert!((value - tick.at).abs() <= 1e-3 * step, "{tick:?}, factor {}", axis.factor);
                }
            }
            for v in values {
                let expected = v.is_finite() && v.abs() <= 1e300 && (!log || v >= 1e-300);
                prop_assert_eq!(axis.share(v).is_some(), expected);
            }
        }
    }
}
