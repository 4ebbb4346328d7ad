//! Hints between units: a key whose name differs from a known one only in its unit, and values with units in
//! text.

use std::fmt::Write as _;
use toml::Value;

/// The scale of a unit.
#[derive(Clone, Copy)]
enum Scale {
    /// A number of base units.
    Linear(f64),
    /// Decibels relative to a number of base units.
    Decibel(f64),
}

use Scale::{Decibel, Linear};

impl Scale {
    fn to_base(self, value: f64) -> f64 {
        match self {
            Linear(factor) => value * factor,
            Decibel(reference) => reference * libm::pow(10.0, value / 10.0),
        }
    }

    fn in_unit(self, value: f64) -> f64 {
        match self {
            Linear(factor) => value / factor,
            Decibel(reference) => 10.0 * libm::log10(value / reference),
        }
    }
}

/// A unit: the end of a key's name, the symbol, the scale.
type Unit = (&'static str, &'static str, Scale);

/// The units of each quantity. A key whose name ends in none of them may be a ratio.
const QUANTITIES: &[&[Unit]] = &[
    &[
        ("ns", "ns", Linear(1e-9)),
        ("us", "µs", Linear(1e-6)),
        ("ms", "ms", Linear(1e-3)),
        ("s", "s", Linear(1.0)),
        ("min", "min", Linear(60.0)),
        ("h", "h", Linear(3600.0)),
    ],
    &[("cm", "cm", Linear(1e-2)), ("m", "m", Linear(1.0)), ("km", "km", Linear(1e3))],
    &[
        ("hz", "Hz", Linear(1.0)),
        ("khz", "kHz", Linear(1e3)),
        ("mhz", "MHz", Linear(1e6)),
        ("ghz", "GHz", Linear(1e9)),
    ],
    &[
        ("w", "W", Linear(1.0)),
        ("mw", "mW", Linear(1e-3)),
        ("dbm", "dBm", Decibel(1e-3)),
        ("dbw", "dBW", Decibel(1.0)),
    ],
    &[("w_hz", "W/Hz", Linear(1.0)), ("dbm_hz", "dBm/Hz", Decibel(1e-3))],
    &[
        ("j", "J", Linear(1.0)),
        ("mj", "mJ", Linear(1e-3)),
        ("kj", "kJ", Linear(1e3)),
        ("wh", "Wh", Linear(3600.0)),
        ("mwh", "mWh", Linear(3.6)),
        ("kwh", "kWh", Linear(3.6e6)),
    ],
    &[("kmh", "km/h", Linear(1.0)), ("mps", "m/s", Linear(3.6)), ("m_s", "m/s", Linear(3.6))],
    &[("bits", "bits", Linear(1.0)), ("kbits", "kbits", Linear(1e3)), ("bytes", "bytes", Linear(8.0))],
    &[("", "", Linear(1.0)), ("db", "dB", Decibel(1.0)), ("percent", "%", Linear(0.01))],
];

/// The hint for `key`, which is unknown, with its value, if a known key has the same name with another
/// unit: "write radio.uplink_s = 0.005".
pub(crate) fn other_unit<'a>(
    key: &str,
    value: Option<&Value>,
    known: &(impl Iterator<Item = &'a str> + Clone),
) -> Option<String> {
    let lower = key.to_ascii_lowercase();
    QUANTITIES.iter().flat_map(|units| units.iter().map(move |unit| (units, unit))).find_map(
        |(units, from)| {
            let stem = lower.strip_suffix(from.0)?.strip_suffix('_').filter(|_| !from.0.is_empty())?;
            units.iter().find_map(|to| {
                let name = if to.0.is_empty() { stem.to_owned() } else { format!("{stem}_{}", to.0) };
                known.clone().find(|known| *known == name && name != lower)?;
                Some(match value.and_then(number) {
                    Some(value) => format!("write {name} = {}", converted(value, from, to)),
                    None => format!("write {name}{}", conversion(from, to)),
                })
            })
        },
    )
}

/// The conversion in words: ", in s: 1 ms is 0.001 s".
fn conversion(from: &Unit, to: &Unit) -> String {
    let one = if matches!(from.2, Decibel(_)) { 10.0 } else { 1.0 };
    let result = converted(one, from, to);
    match to.1 {
        "" => format!(", a ratio: {one} {} is {result}", from.1),
        unit => format!(", in {unit}: {one} {} is {result} {unit}", from.1),
    }
}

/// A number as written, also in text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A number in another unit, in the syntax of TOML.
fn converted(value: f64, from: &Unit, to: &Unit) -> String {
    let exact = to.2.in_unit(from.2.to_base(value));
    let digits = if matches!((from.2, to.2), (Linear(_), Linear(_))) { 12 } else { 4 };
    written(exact, digits)
}

/// A number with `digits` significant digits; large ones with a power of 10³.
fn written(value: f64, digits: usize) -> String {
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    if rounded.is_finite() && rounded.abs() >= 1e6 {
        let power = (libm::floor(libm::log10(rounded.abs())) as i32).div_euclid(3) * 3;
        let mantissa: f64 = format!("{:.*e}", digits - 1, rounded / libm::pow(10.0, f64::from(power)))
            .parse()
            .unwrap_or(rounded);
        return format!("{mantissa}e{power}");
    }
    if rounded != 0.0 && rounded.abs() < 1e-4 { format!("{rounded:e}") } else { rounded.to_string() }
}

/// The error of a text in place of a number. It states the number if the text means one, with a unit, a
/// decimal comma or quotes: `is "20MHz", but must be a number; write 20e6`.
pub(super) fn text_for_number(key: &str, value: &Value, error: &str) -> Option<String> {
    let Value::String(text) = value else { return None };
    let wanted = ["f64", "f32", "a whole number"]
        .iter()
        .find(|wanted| error.ends_with(&format!("expected {wanted}")))?;
    let wanted = if wanted.starts_with('f') { "a number" } else { wanted };
    let mut problem = format!("is {text:?}, but must be {wanted}");
    if let Some(meant) = meant(key, text) {
        let _ = write!(problem, "; write {meant}");
    }
    Some(problem)
}

/// The number that a text means for `key`, in the unit of the key.
fn meant(key: &str, text: &str) -> Option<String> {
    let compact: String = text.trim().replace([' ', '_', '\u{a0}'], "").replacen(',', ".", 1);
    let end = (0..=compact.len())
        .rev()
        .filter(|&end| compact.is_char_boundary(end))
        .find(|&end| compact[..end].parse::<f64>().is_ok_and(f64::is_finite))?;
    let (value, unit) = (compact[..end].parse().ok()?, compact[end..].to_lowercase());
    if unit.is_empty() {
        return Some(written(value, 15));
    }
    let named = |unit: &&Unit| !unit.0.is_empty() && key.ends_with(&format!("_{}", unit.0));
    // "w" ends "noise_dbm_w" too: the longest name is the unit.
    let of_key = QUANTITIES.iter().filter_map(|units| Some((units, units.iter().find(named)?)));
    let (units, to) = of_key.max_by_key(|(_, unit)| unit.0.len()).or_else(|| {
        let ratios = QUANTITIES.last()?;
        Some((ratios, ratios.first()?))
    })?;
    let from =
        units.iter().find(|from| !from.1.is_empty() && (from.1.to_lowercase() == unit || from.0 == unit))?;
    Some(converted(value, from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 8] = [
        "radio.uplink_s",
        "cell.radius_m",
        "radio.bandwidth_hz",
        "radio.power_dbm",
        "radio.interference_w",
        "radio.rician.k_factor",
        "energy.battery_j",
        "radio.speed_kmh",
    ];

    fn hint(key: &str, value: impl Into<Value>) -> String {
        other_unit(key, Some(&value.into()), &KEYS.into_iter()).unwrap_or_default()
    }

    #[test]
    fn a_key_in_another_unit_is_converted() {
        for (key, value, hint_is) in [
            ("radio.uplink_ms", 5.0, "write radio.uplink_s = 0.005"),
            ("radio.uplink_us", 5.0, "write radio.uplink_s = 5e-6"),
            ("cell.radius_km", 0.5, "write cell.radius_m = 500"),
            ("radio.bandwidth_khz", 180.0, "write radio.bandwidth_hz = 180000"),
            ("radio.bandwidth_MHz", 20.0, "write radio.bandwidth_hz = 20e6"),
            ("radio.bandwidth_ghz", 2.4, "write radio.bandwidth_hz = 2.4e9"),
            ("radio.power_w", 0.2, "write radio.power_dbm = 23.01"),
            ("radio.power_mw", 200.0, "write radio.power_dbm = 23.01"),
            ("radio.interference_dbm", -90.0, "write radio.interference_w = 1e-12"),
            ("radio.rician.k_factor_db", 9.0, "write radio.rician.k_factor = 7.943"),
            ("energy.battery_kj", 1.5, "write energy.battery_j = 1500"),
            ("energy.battery_wh", 10.0, "write energy.battery_j = 36000"),
            ("radio.speed_mps", 10.0, "write radio.speed_kmh = 36"),
        ] {
            assert_eq!(hint(key, value), hint_is, "{key}");
        }
        assert_eq!(hint("radio.uplink_ms", 5), "write radio.uplink_s = 0.005");
        assert_eq!(hint("radio.uplink_ms", "5"), "write radio.uplink_s = 0.005");
    }

    #[test]
    fn without_a_number_the_hint_states_the_conversion() {
        let hint = |key| other_unit(key, None, &KEYS.into_iter()).unwrap();
        assert_eq!(hint("radio.uplink_ms"), "write radio.uplink_s, in s: 1 ms is 0.001 s");
        assert_eq!(hint("radio.rician.k_factor_db"), "write radio.rician.k_factor, a ratio: 10 dB is 10");
        assert_eq!(hint("radio.power_w"), "write radio.power_dbm, in dBm: 1 W is 30 dBm");
    }

    #[test]
    fn other_names_have_no_hint_of_a_unit() {
        for key in
            ["radio.uplink", "radio.uplink_m", "cell.uplink_ms", "uplink_ms", "radio.uplink_s", "_ms", ""]
        {
            assert_eq!(other_unit(key, None, &KEYS.into_iter()), None, "{key}");
        }
    }

    #[test]
    fn the_error_of_a_text_that_means_a_number_states_the_number() {
        let problem = |key: &str, text: &str| {
            let error = format!("invalid type: string {text:?}, expected f64");
            text_for_number(key, &Value::from(text), &error).unwrap()
        };
        for (key, text, write) in [
            ("bandwidth_hz", "20MHz", "; write 20e6"),
            ("bandwidth_hz", "20 MHz", "; write 20e6"),
            ("rate", "0,001", "; write 0.001"),
            ("rate", "0.001", "; write 0.001"),
            ("uplink_s", "5 ms", "; write 0.005"),
            ("power_dbm", "0.2W", "; write 23.01"),
            ("k_factor", "9 dB", "; write 7.943"),
            ("share", "10 %", "; write 0.1"),
            ("rate", "1e-3", "; write 0.001"),
            ("rate", "fast", ""),
            ("bandwidth_hz", "20 m", ""),
            ("rate", "nan", ""),
            ("rate", "", ""),
        ] {
            assert_eq!(problem(key, text), format!("is {text:?}, but must be a number{write}"), "{key}");
        }
        let whole = "invalid type: string \"40\", expected a whole number";
        let problem = text_for_number("devices", &Value::from("40"), whole).unwrap();
        assert_eq!(problem, "is \"40\", but must be a whole number; write 40");
        assert_eq!(text_for_number("rate", &Value::from(true), "invalid type: boolean, expected f64"), None);
        assert_eq!(text_for_number("policy", &Value::from("a"), "unknown variant `a`"), None);
    }
}
