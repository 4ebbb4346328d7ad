//! From values to pixels: ranges, ticks and their labels.

use super::text;

/// Whether a figure can show a value; the bound keeps the difference of two finite.
pub fn drawable(v: f64) -> bool {
    v.abs() <= 1e300
}

/// Whether an axis can show a value: drawable, and on a logarithmic one positive. What is smaller than any
/// normal number has too few digits left for a tick.
pub fn shown(v: f64, log: bool) -> bool {
    drawable(v) && (!log || v >= 1e-300)
}

/// A labeled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value at the tick.
    pub at: f64,
    /// What is written beside it.
    pub label: String,
}

/// The span of values on one axis and how they are spread over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

/// How the values on an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// As they are.
    Plain,
    /// Times a hundred.
    Percent,
}

impl Axis {
    /// An axis that shows every drawable value given, with `margin` of the span left free on both sides; from
    /// zero to one if there is none. A logarithmic axis shows the positive ones.
    pub fn over(values: impl Iterator<Item = f64>, log: bool, margin: f64) -> Self {
        let shown = values.filter(|&v| shown(v, log));
        let (mut low, mut high) =
            shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = if log { (0.1, 1.0) } else { (0.0, 1.0) };
        }
        if log {
            // At least a tenth of a decade, or the ticks would all be one.
            let (a, b) = (libm::log10(low), libm::log10(high));
            let free = margin * (b - a).max(0.1);
            let lack = (0.1 - (b - a)).max(0.0) / 2.0;
            return Self { low: a - free - lack, high: b + free + lack, log };
        }
        let size = low.abs().max(high.abs());
        if high - low <= (size * 1e-9).max(1e-290) {
            let half = if size > 1e-290 { size * 0.05 } else { 0.5 };
            (low, high) = (low - half, high + half);
        }
        let free = margin * (high - low);
        Self { low: low - free, high: high + free, log }
    }

    /// The same axis without the part of its free margin outside `floor..=ceiling`; all values it is to show
    /// must lie inside.
    pub fn within(mut self, floor: f64, ceiling: f64) -> Self {
        if !self.log {
            self.low = self.low.max(floor);
            self.high = self.high.min(ceiling);
        }
        self
    }

    /// Where a value lies, as a share of the axis: 0 at its low end, 1 at its high end. `None` for what the
    /// axis cannot show.
    pub fn share(&self, v: f64) -> Option<f64> {
        if !shown(v, self.log) {
            return None;
        }
        let v = if self.log { libm::log10(v) } else { v };
        Some(((v - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    /// Round values inside the axis, at most about `wanted`, and the power of ten (0 if none) that every
    /// label is to be multiplied by.
    pub fn ticks(&self, wanted: usize, notation: Notation) -> (Vec<Tick>, i32) {
        if self.log {
            return self.log_ticks(wanted);
        }
        let scale = if notation == Notation::Percent { 100.0 } else { 1.0 };
        round_ticks(self.low * scale, self.high * scale, wanted, scale)
    }

    /// As [`Axis::ticks`], with as many as fit side by side on `length` pixels in `size` pixel text.
    pub fn ticks_across(&self, length: f64, size: u32, notation: Notation) -> (Vec<Tick>, i32) {
        let mut wanted = 10;
        loop {
            let (ticks, power) = self.ticks(wanted, notation);
            let room = text::widest(ticks.iter().map(|t| &*t.label), size) + 1.5 * f64::from(size);
            if wanted == 1 || room * ticks.len() as f64 <= length {
                return (ticks, power);
            }
            wanted -= 1;
        }
    }

    fn log_ticks(&self, wanted: usize) -> (Vec<Tick>, i32) {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let decades = last - first + 1;
        if decades >= 3 {
            let stride = decades.unsigned_abs().div_ceil(wanted.max(1) as u32) as i32;
            let powers = (first..=last)
                .filter(|k| k.rem_euclid(stride) == 0)
                .map(|k| Tick { at: power_of_ten(k), label: power_label(k) });
            return (powers.collect(), 0);
        }
        // Few powers of ten: round numbers between them as well.
        let (low, high) = (libm::pow(10.0, self.low), libm::pow(10.0, self.high));
        let mut ticks = Vec::new();
        for k in first - 1..=last {
            for m in [1.0, 2.0, 5.0] {
                let at = m * power_of_ten(k);
                if (low..=high).contains(&at) {
                    let plain = (-4..6).contains(&k);
                    let times = if m == 1.0 { power_label(k) } else { format!("{m}×{}", power_label(k)) };
                    ticks.push(Tick { at, label: if plain { format!("{at}") } else { times } });
                }
            }
        }
        if ticks.len() < 2 { round_ticks(low, high, wanted, 1.0) } else { (ticks, 0) }
    }

    /// The values 2 to 9 times each power of ten inside a logarithmic axis of a few decades.
    pub fn minor_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.floor() as i32, self.high.floor() as i32);
        if !self.log || last - first > 8 {
            return Vec::new();
        }
        let all = (first..=last).flat_map(|k| (2..=9).map(move |m| f64::from(m) * power_of_ten(k)));
        all.filter(|&v| (self.low..=self.high).contains(&libm::log10(v))).collect()
    }
}

/// Multiples of 1, 2 or 5 times a power of ten between `low` and `high`, at most about `wanted`, labeled with
/// the fewest decimals that distinguish them; `scale` turns a labeled value back into one on the axis.
fn round_ticks(low: f64, high: f64, wanted: usize, scale: f64) -> (Vec<Tick>, i32) {
    let rough = (high - low) / wanted.max(1) as f64;
    let mut exponent = libm::log10(rough).floor() as i32;
    // A hair less, for what rounding adds to a span that is five times a round number.
    let mantissa = rough / power_of_ten(exponent) * (1.0 - 1e-9);
    let step = match mantissa {
        m if m <= 1.0 => 1.0,
        m if m <= 2.0 => 2.0,
        m if m <= 5.0 => 5.0,
        _ => {
            exponent += 1;
            1.0
        }
    };
    let step = step * power_of_ten(exponent);
    // A common power of ten keeps the labels of very large and very small values short.
    let magnitude = libm::log10(low.abs().max(high.abs())).floor() as i32;
    let power = if (-3..5).contains(&magnitude) { 0 } else { magnitude.div_euclid(3) * 3 };
    let decimals = (power - exponent).clamp(0, 15) as usize;
    // A step too fine for the values' own precision still ends: there are at most about `wanted` of them.
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).clamp(0.0, 2.0 * wanted as f64) as usize;
    let ticks = (0..=count)
        .map(|i| {
            let value = (first + i as f64) * step + 0.0;
            let label = format!("{:.decimals$}", value / power_of_ten(power));
            let label = if label.trim_start_matches(['-', '0', '.']).is_empty() {
                label.trim_start_matches('-').to_owned()
            } else {
                label.replace('-', "\u{2212}")
            };
            Tick { at: value / scale, label }
        })
        .collect();
    (ticks, power)
}

/// `10^k`, correctly rounded, zero or infinite where it does not exist.
fn power_of_ten(k: i32) -> f64 {
    // The parser rounds correctly; a power function need not.
    format!("1e{k}").parse().unwrap_or(f64::INFINITY)
}

/// `10^k` as it is written.
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
        let axis = Axis::over([0.0, 500.0].into_iter(), false, 0.0);
        assert_eq!(labels(&axis.ticks(5, Notation::Plain).0), ["0", "100", "200", "300", "400", "500"]);
        let axis = Axis::over([0.903, 0.931].into_iter(), false, 0.0);
        assert_eq!(
            labels(&axis.ticks(6, Notation::Percent).0),
            ["90.5", "91.0", "91.5", "92.0", "92.5", "93.0"]
        );
    }

    #[test]
    fn large_values_share_a_power_of_ten() {
        let axis = Axis::over([0.0, 4e6].into_iter(), false, 0.0);
        let (ticks, power) = axis.ticks(4, Notation::Plain);
        assert_eq!((labels(&ticks), power), (vec!["0", "1", "2", "3", "4"], 6));
        assert_eq!(ticks[3].at, 3e6);
    }

    #[test]
    fn a_logarithmic_axis_is_labeled_with_powers_of_ten() {
        let axis = Axis::over([0.5, 2e3, -1.0, 0.0].into_iter(), true, 0.0);
        assert_eq!(labels(&axis.ticks(6, Notation::Plain).0), ["10⁰", "10¹", "10²", "10³"]);
        assert_eq!(axis.share(0.0), None);
        assert_eq!(axis.share(2e3), Some(1.0));
        // Half a decade has no two powers of ten, a tenth of one no two of 1, 2 and 5.
        let axis = Axis::over([300.0, 700.0].into_iter(), true, 0.2);
        assert!(axis.ticks(6, Notation::Plain).0.len() >= 2);
        let axis = Axis::over([1.05e7, 1.35e7].into_iter(), true, 0.0);
        let (ticks, power) = axis.ticks(3, Notation::Plain);
        assert_eq!((labels(&ticks), power), (vec!["11", "12", "13"], 6));
    }

    #[test]
    fn labels_stay_short_whatever_the_values() {
        for notation in [Notation::Plain, Notation::Percent] {
            for v in [5.2e164, 3e-200, 1e300] {
                let (ticks, _) = Axis::over([0.0, v].into_iter(), false, 0.0).ticks(6, notation);
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
            let axis = Axis::over(std::iter::once(v), false, 0.05);
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
            let axis = Axis::over(values.iter().copied(), log, 0.04);
            let (ticks, power) = axis.ticks(wanted, Notation::Plain);
            prop_assert!(!ticks.is_empty() && ticks.len() <= 2 * wanted + 6, "{} ticks", ticks.len());
            for pair in ticks.windows(2) {
                prop_assert!(pair[0].at < pair[1].at, "{ticks:?}");
                prop_assert!(pair[0].label != pair[1].label, "{ticks:?}");
            }
            for tick in &ticks {
                // The label is the value, unless it is a power of ten.
                if let Ok(written) = tick.label.replace('\u{2212}', "-").parse::<f64>() {
                    let value = written * power_of_ten(power);
                    let step = (ticks[ticks.len() - 1].at - ticks[0].at).max(tick.at.abs() * 1e-9);
                    prop_assert!((value - tick.at).abs() <= 1e-3 * step, "{tick:?}, power {power}");
                }
            }
            for v in values {
                let expected = v.is_finite() && v.abs() <= 1e300 && (!log || v >= 1e-300);
                prop_assert_eq!(axis.share(v).is_some(), expected);
            }
        }
    }
}
