//! Bars, whole or made of parts: power by device, the phases of a round, …

use super::axis::{Axis, Quantity, drawable};
use super::look::{Entry, Look};
use serde::{Deserialize, Serialize};

/// More bars than this are drawn in groups, since finer ones would be invisible.
pub const MAX_BARS: usize = 300;

/// Bars from zero to their values, in the given order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// The heading; none if empty.
    pub title: String,
    /// The label of the bars.
    pub x_label: String,
    /// The axis upwards.
    pub y: Axis,
    /// The names and colors of the parts, from the bottom of a bar upwards; empty for whole bars.
    pub key: Vec<Entry>,
    /// The bars; neighbors share one if there are too many.
    pub bars: Vec<Bar>,
    /// A value for comparison, and its name: a dashed line.
    pub reference: Option<(String, f64)>,
}

/// One bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its parts; none if its value is not finite.
    pub spans: Vec<Span>,
}

/// One part of a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Index of its color.
    pub color: usize,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Bars {
    /// The color of whole bars: sky blue.
    const WHOLE: usize = 5;

    /// Whole bars with a name and a value each. A value that is not finite leaves its position empty. A
    /// bar of a group shows the range of its values.
    pub fn whole(
        title: impl Into<String>,
        x_label: &str,
        y_label: &str,
        bars: &[(String, f64)],
        reference: Option<(String, f64)>,
    ) -> Self {
        let reference = reference.filter(|(_, value)| drawable(*value));
        let values = bars.iter().map(|(_, value)| *value).chain(reference.iter().map(|(_, value)| *value));
        let group = |bars: &[(String, f64)]| {
            let known: Vec<f64> = bars.iter().map(|(_, value)| *value).filter(|v| drawable(*v)).collect();
            let (low, high) = known.iter().fold((0.0, 0.0), |(l, h): (f64, f64), v| (l.min(*v), h.max(*v)));
            let spans = if known.is_empty() { vec![] } else { vec![Span { color: Self::WHOLE, low, high }] };
            Bar { name: bars[0].0.clone(), spans }
        };
        Self {
            title: title.into(),
            x_label: x_label.to_owned(),
            y: Quantity::plain(y_label).from_zero().margin(0.05).axis(values),
            key: Vec::new(),
            bars: grouped(bars).map(group).collect(),
            reference,
        }
    }

    /// Bars that are stacks of named parts; at most seven parts differ in color. A value that is missing,
    /// negative or not finite counts as 0. A bar of a group shows the mean.
    pub fn stacked(
        title: impl Into<String>,
        x_label: &str,
        y_label: &str,
        parts: &[&str],
        bars: &[(String, Vec<f64>)],
    ) -> Self {
        let value = |values: &[f64], part: usize| {
            values.get(part).copied().filter(|v| drawable(*v)).map_or(0.0, |v| v.max(0.0))
        };
        let group = |bars: &[(String, Vec<f64>)]| {
            let mut foot = 0.0;
            let mut span = |part: usize| {
                let sum: f64 = bars.iter().map(|(_, values)| value(values, part)).sum();
                let low = foot;
                foot += sum / bars.len() as f64;
                Span { color: Look::new(part, 0, 0).color, low, high: foot }
            };
            let spans: Vec<Span> = (0..parts.len()).map(&mut span).collect();
            let shown = spans.into_iter().filter(|s| s.high > s.low && drawable(s.high));
            Bar { name: bars[0].0.clone(), spans: shown.collect() }
        };
        let bars: Vec<Bar> = grouped(bars).map(group).collect();
        let heights = bars.iter().flat_map(|bar| &bar.spans).map(|span| span.high);
        let entry = |(part, name): (usize, &&str)| {
            let look = Look { marker: None, ..Look::new(part, 0, 0) };
            Entry { label: (*name).to_owned(), look, ..Entry::default() }
        };
        Self {
            title: title.into(),
            x_label: x_label.to_owned(),
            y: Quantity::plain(y_label).from_zero().margin(0.05).axis(heights),
            key: parts.iter().enumerate().map(entry).collect(),
            bars,
            reference: None,
        }
    }
}

/// Groups of neighbors, at most [`MAX_BARS`] of them.
fn grouped<T>(bars: &[T]) -> std::slice::Chunks<'_, T> {
    bars.chunks(bars.len().div_ceil(MAX_BARS).max(1))
}
