//! The curves of a sweep over several keys in panels: a plot for each value of each key.

use crate::looks::distinct;
use fedlink_study::results::CurveResult;

/// The curves that have one value of one key.
#[derive(Debug)]
pub struct Panel {
    /// `policy=bc`, or `schedule.policy=bc` if another swept key ends in `policy` too.
    pub name: String,
    /// The indices of its curves among all.
    pub curves: Vec<usize>,
}

/// The panels of a sweep, key by key; none if the curves differ in fewer than two keys. A panel has at
/// least two curves.
pub fn panels(results: &[CurveResult]) -> Vec<Panel> {
    let pairs = || results.iter().flat_map(|curve| &curve.keys);
    let values = |key: &str| distinct(pairs().filter(|(own, _)| own == key).map(|(_, value)| value.as_str()));
    let keys = distinct(pairs().map(|(key, _)| key.as_str())).into_iter().map(|key| (key, values(key)));
    let keys: Vec<(&str, Vec<&str>)> = keys.filter(|(_, values)| values.len() > 1).collect();
    if keys.len() < 2 {
        return Vec::new();
    }
    let namesakes = |key| keys.iter().filter(|(other, _)| last_part(other) == last_part(key)).count();
    let name = |key| if namesakes(key) > 1 { key } else { last_part(key) };
    let panel = |(key, value)| Panel {
        name: format!("{}={value}", name(key)),
        // A curve without the key is in every panel of it, as a reference.
        curves: (0..results.len()).filter(|&i| [value, ""].contains(&results[i].swept(key))).collect(),
    };
    let pairs = keys.iter().flat_map(|(key, values)| values.iter().map(move |value| (*key, *value)));
    pairs.map(panel).filter(|panel| panel.curves.len() > 1).collect()
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::curve_of;

    fn curve(keys: &[(&str, &str)]) -> CurveResult {
        let words: Vec<&str> = keys.iter().map(|(_, value)| *value).collect();
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        CurveResult { keys, ..curve_of(&words.join(" "), &[&[0.5]]) }
    }

    fn names(results: &[CurveResult]) -> Vec<(String, Vec<&str>)> {
        panels(results)
            .into_iter()
            .map(|panel| (panel.name, panel.curves.iter().map(|&i| results[i].label.as_str()).collect()))
            .collect()
    }

    #[test]
    fn every_value_of_every_key_has_a_panel_unless_it_has_one_curve_alone() {
        let grid = [("bc", "1"), ("bc", "10"), ("bn2", "1"), ("bn2", "10"), ("bn2-c", "10")];
        let results: Vec<CurveResult> =
            grid.iter().map(|(policy, k)| curve(&[("schedule.policy", policy), ("schedule.k", k)])).collect();
        let expected = [
            ("policy=bc", vec!["bc 1", "bc 10"]),
            ("policy=bn2", vec!["bn2 1", "bn2 10"]),
            ("k=1", vec!["bc 1", "bn2 1"]),
            ("k=10", vec!["bc 10", "bn2 10", "bn2-c 10"]),
        ];
        assert_eq!(names(&results), expected.map(|(name, curves)| (name.to_owned(), curves)));
    }

    #[test]
    fn a_single_key_that_differs_needs_no_panels() {
        let one = |policy| curve(&[("schedule.policy", policy), ("schedule.k", "1")]);
        assert!(panels(&[one("bc"), one("bn2")]).is_empty());
        assert!(panels(&[]).is_empty());
    }

    #[test]
    fn keys_with_the_same_last_part_are_named_in_full() {
        let grid = [("0.1", "1"), ("0.1", "2"), ("0.2", "1")];
        let results = grid.map(|(a, b)| curve(&[("adversary.share", a), ("defence.share", b)]));
        assert_eq!(names(&results)[0].0, "adversary.share=0.1");
        assert_eq!(names(&results)[1].0, "defence.share=1");
    }
}
