//! The settings to search.

use fedlink::base::rng::{Purpose, stream};
use fedlink::radio::PayloadMode;
use fedlink::spec::{ConfigError, Spec, all_keys, unknown_key};
use std::collections::BTreeSet;
use std::str::FromStr;
use toml::Value;

/// The most values of a range.
const RANGE: usize = 16;
/// The most points that are listed; of a larger space points are drawn.
const LISTED: usize = 20_000;

/// A key with the values to try.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Axis {
    /// The key, as `schedule.k`.
    pub key: String,
    /// Its values, numbers ascending.
    pub values: Vec<Value>,
}

impl Axis {
    /// An axis.
    pub fn new(key: impl Into<String>, values: Vec<Value>) -> Self {
        let mut values = values;
        if values.iter().all(|value| number(value).is_some()) {
            values.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
        }
        values.dedup();
        Self { key: key.into(), values }
    }

    /// Whether its values are numbers, so that two of them can be adjacent.
    pub fn is_ordered(&self) -> bool {
        self.values.iter().all(|value| number(value).is_some())
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
}

impl FromStr for Axis {
    type Err = ConfigError;

    /// Reads `schedule.k=1,5,20`, `schedule.k=1..40` or `radio.uplink_s=0.01..0.1:log`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = |problem: &str| ConfigError::new("--over", format!("{text:?}: {problem}"));
        let form = "write KEY=a,b,c, KEY=1..40 or KEY=0.01..0.1:log";
        let (key, rest) = text.split_once('=').ok_or_else(|| refused(form))?;
        let key = key.trim();
        if !all_keys().iter().any(|known| known == key) {
            return Err(unknown_key(key));
        }
        let values: Vec<Value> = match rest.split_once("..") {
            Some((low, high)) => {
                let (high, is_log) = match high.split_once(':') {
                    Some((high, "log")) => (high, true),
                    Some((high, "linear")) => (high, false),
                    Some(_) => return Err(refused("a range ends with :log or :linear")),
                    None => (high, low.trim().parse::<i64>().is_ok_and(|low| low > 0)),
                };
                range(low.trim(), high.trim(), is_log).ok_or_else(|| {
                    refused(&format!(
                        "a range has two numbers, the smaller one first (above 0 with :log); {form}"
                    ))
                })?
            }
            None => rest.split(',').map(|value| parsed(value.trim())).collect(),
        };
        if values.iter().any(|value| value.as_str() == Some("")) {
            return Err(refused(form));
        }
        let axis = Self::new(key, values);
        let texts: BTreeSet<String> = axis.values.iter().map(ToString::to_string).collect();
        if texts.len() < axis.values.len() {
            return Err(refused("write every value once"));
        }
        Ok(axis)
    }
}

/// A value as TOML, or as text.
fn parsed(text: &str) -> Value {
    let table = toml::from_str::<toml::Table>(&format!("value = {text}"));
    table.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// At most 16 values from `low` to `high`: all whole numbers if there are so few.
fn range(low: &str, high: &str, is_log: bool) -> Option<Vec<Value>> {
    let of = |low: f64, high: f64, count: usize| -> Vec<f64> {
        let share = |i: usize| i as f64 / (count - 1) as f64;
        let at = |i: usize| {
            if is_log { low * libm::pow(high / low, share(i)) } else { low + (high - low) * share(i) }
        };
        (0..count).map(at).collect()
    };
    if let (Ok(low), Ok(high)) = (low.parse::<i64>(), high.parse::<i64>()) {
        let count =
            usize::try_from(high.checked_sub(low)?.checked_add(1)?).ok().filter(|count| *count >= 2)?;
        if is_log && low < 1 {
            return None;
        }
        if count <= RANGE {
            return Some((low..=high).map(Value::Integer).collect());
        }
        let whole: BTreeSet<i64> =
            of(low as f64, high as f64, RANGE).iter().map(|x| x.round() as i64).collect();
        return Some(whole.into_iter().map(Value::Integer).collect());
    }
    let (low, high) = (low.parse::<f64>().ok()?, high.parse::<f64>().ok()?);
    let is_range = low.is_finite() && high.is_finite() && low < high && (!is_log || low > 0.0);
    // Three digits are as good as twenty, and a person can read them.
    let short = |value: f64| format!("{value:.2e}").parse().unwrap_or(value);
    is_range.then(|| of(low, high, 9).into_iter().map(|x| Value::Float(short(x))).collect())
}

/// The space of settings: one value of each axis is a point.
#[derive(Clone, Debug)]
pub struct Space {
    /// The axes.
    pub axes: Vec<Axis>,
}

/// A point: the index of the value of each axis.
pub type Point = Vec<usize>;

impl Space {
    /// The axes that matter for every scenario: policy, K, τ, compressor and, where the uplink has seconds,
    /// their number. The scenario's own values are among them.
    pub fn of_scenario(spec: &Spec) -> Self {
        let devices = spec.data.devices;
        let text = |names: &[&str], own: &str| -> Vec<Value> {
            let others = names.iter().filter(|name| **name != own);
            [own].iter().chain(others).map(|name| Value::from(*name)).collect()
        };
        let whole = |values: &[f64], own: u64, most: u64| -> Vec<Value> {
            let rounded = values.iter().map(|value| (value.round() as u64).clamp(1, most)).chain([own]);
            rounded.collect::<BTreeSet<u64>>().into_iter().map(|value| Value::Integer(value as i64)).collect()
        };
        let m = devices as f64;
        let k = spec.schedule.k;
        let tau = spec.learn.local_steps as f64;
        let policies = ["bc", "bn2", "bc-bn2", "bn2-c", "proportional-fair"];
        let mut axes = vec![
            Axis::new("schedule.policy", text(&policies, &spec.schedule.policy)),
            Axis::new(
                "schedule.k",
                whole(&[1.0, 0.05 * m, 0.1 * m, 0.2 * m, 0.33 * m, 0.67 * m], k, devices),
            ),
            Axis::new("learn.local_steps", whole(&[1.0, 2.0 * tau, 4.0 * tau], spec.learn.local_steps, 1000)),
            Axis::new("compress.scheme", text(&["d-sgd", "eden", "stc"], &spec.compress.scheme)),
        ];
        if spec.radio.mode == PayloadMode::Airtime
            && spec.radio.bandwidth_hz.is_some()
            && let Some(own) = spec.radio.uplink_s
        {
            let short = |value: f64| Value::Float(format!("{value:.2e}").parse().unwrap_or(value));
            axes.push(Axis::new("radio.uplink_s", [0.1, 0.3, 1.0].map(|part| short(part * own)).to_vec()));
        }
        Self { axes }
    }

    /// The number of points.
    pub fn size(&self) -> f64 {
        self.axes.iter().map(|axis| axis.values.len() as f64).product()
    }

    /// The settings of a point.
    pub fn settings(&self, point: &Point) -> Vec<(String, Value)> {
        self.axes
            .iter()
            .zip(point)
            .map(|(axis, &value)| (axis.key.clone(), axis.values[value].clone()))
            .collect()
    }

    /// The point of a value of each axis, if they are among the values.
    pub fn point_of(&self, value: impl Fn(&str) -> Option<Value>) -> Option<Point> {
        let place = |axis: &Axis| {
            let own = value(&axis.key)?;
            let same =
                |other: &Value| *other == own || number(other).is_some() && number(other) == number(&own);
            axis.values.iter().position(same)
        };
        self.axes.iter().map(place).collect()
    }

    /// All points, in an order in which every prefix has every value of an axis about equally often: a Latin
    /// square after the other, always the same. Of a very large space, as many as are listed.
    pub fn points(&self) -> Vec<Point> {
        let mut random = stream(0, Purpose::Schedule, u64::MAX - 2, u64::MAX);
        let total = self.size();
        if total <= LISTED as f64 {
            let mut points: Vec<Point> = vec![Vec::new()];
            for axis in &self.axes {
                points = points
                    .iter()
                    .flat_map(|point| {
                        (0..axis.values.len()).map(move |value| [&point[..], &[value]].concat())
                    })
                    .collect();
            }
            random.shuffle(&mut points);
            return self.balanced(points);
        }
        let mut points = BTreeSet::new();
        let mut listed = Vec::new();
        while listed.len() < LISTED {
            let draw = |axis: &Axis, random: &mut fedlink::base::rng::Stream| {
                random.below(axis.values.len() as u64) as usize
            };
            let point: Point = self.axes.iter().map(|axis| draw(axis, &mut random)).collect();
            if points.insert(point.clone()) {
                listed.push(point);
            }
        }
        listed
    }

    /// Takes next, of the first points that are left, the one whose values were taken least.
    fn balanced(&self, mut points: Vec<Point>) -> Vec<Point> {
        /// The points among which the next one is chosen, and the points that are ordered.
        const AMONG: usize = 64;
        const ORDERED: usize = 2000;
        let mut taken: Vec<Vec<usize>> = self.axes.iter().map(|axis| vec![0; axis.values.len()]).collect();
        for done in 0..points.len().min(ORDERED) {
            let load = |point: &Point| -> usize {
                let counts = point.iter().zip(&taken).zip(&self.axes);
                counts.map(|((&value, taken), axis)| taken[value] * axis.values.len()).sum()
            };
            let end = (done + AMONG).min(points.len());
            let next = (done..end).min_by_key(|&i| (load(&points[i]), i)).unwrap_or(done);
            points.swap(done, next);
            points[done].iter().zip(&mut taken).for_each(|(&value, taken)| taken[value] += 1);
        }
        points
    }

    /// The points that differ in one axis: by an adjacent value of numbers, by any other value of names. The
    /// axes alternate.
    pub fn neighbors(&self, point: &Point) -> Vec<Point> {
        let mut near: Vec<(usize, Point)> = Vec::new();
        for (i, axis) in self.axes.iter().enumerate() {
            let own = point[i];
            let others: Vec<usize> = if axis.is_ordered() {
                [own.checked_sub(1), Some(own + 1)].into_iter().flatten().collect()
            } else {
                (0..axis.values.len()).filter(|value| *value != own).collect()
            };
            let others = others.into_iter().filter(|value| *value < axis.values.len());
            for (turn, value) in others.enumerate() {
                let mut other = point.clone();
                other[i] = value;
                near.push((turn, other));
            }
        }
        near.sort_by_key(|(turn, _)| *turn);
        near.into_iter().map(|(_, point)| point).collect()
    }

    /// A point in words: `bc k=10 local_steps=5 eden`.
    pub fn label(&self, point: &Point) -> String {
        let word = |(axis, &value): (&Axis, &usize)| match &axis.values[value] {
            Value::String(text) => text.clone(),
            value => format!("{}={value}", axis.key.rsplit('.').next().unwrap_or(&axis.key)),
        };
        self.axes.iter().zip(point).map(word).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Axis {
        text.parse().unwrap()
    }

    #[test]
    fn an_axis_is_a_list_or_a_range() {
        assert_eq!(axis("schedule.policy=bc,bn2").values, ["bc", "bn2"].map(Value::from));
        assert_eq!(axis("schedule.k=3,1,2").values, [1, 2, 3].map(Value::Integer));
        assert_eq!(axis("schedule.k=1..4").values, [1, 2, 3, 4].map(Value::Integer));
        let wide = axis("schedule.k=1..40").values;
        assert!(
            wide.len() <= 16 && wide[0] == Value::Integer(1) && wide[wide.len() - 1] == Value::Integer(40)
        );
        let log = axis("radio.uplink_s=0.01..0.1:log").values;
        assert_eq!(
            (&log[0], &log[4], &log[8]),
            (&Value::Float(0.01), &Value::Float(0.0316), &Value::Float(0.1))
        );
        for (bad, words) in [
            ("schedule.k", "write KEY="),
            ("schedule.kk=1", "schedule.k"),
            ("schedule.k=5..1", "the smaller one first"),
            ("radio.uplink_s=0..1:log", "above 0"),
            ("radio.uplink_s=0.1..1:cubic", ":linear"),
            ("schedule.policy=bc,", "write KEY="),
        ] {
            let message = bad.parse::<Axis>().unwrap_err().to_string();
            assert!(message.contains(words), "{bad}: {message}");
        }
    }

    #[test]
    fn every_prefix_of_the_points_has_every_value_about_equally_often() {
        let axes =
            vec![axis("schedule.k=1..6"), axis("schedule.policy=bc,bn2,age"), axis("learn.local_steps=1,2")];
        let space = Space { axes };
        let points = space.points();
        assert_eq!(points.len(), 36);
        assert_eq!(points.iter().collect::<BTreeSet<_>>().len(), 36);
        for value in 0..6 {
            let count = points[..18].iter().filter(|point| point[0] == value).count();
            assert!((2..=4).contains(&count), "{value}: {count}");
        }
        assert_eq!(points, space.points());
        assert_eq!(space.label(&vec![1, 0, 1]), "k=2 bc local_steps=2");
        // k = 1 and 3, two other policies, one other number of steps.
        assert_eq!(space.neighbors(&vec![1, 0, 1]).len(), 5);
    }
}
