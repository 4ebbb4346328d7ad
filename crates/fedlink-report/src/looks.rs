//! The looks of the curves of a folder: a color means one value of one key, in all charts.

use crate::chart::{Entry, Look};
use fedlink::compress::Compressor;
use fedlink::parts::{Kind, find};
use fedlink::schedule::Policy;
use fedlink_study::results::{CurveResult, Status};

/// Up to this many curves, or values of a key, have a color each.
const MAX_COLORS: usize = 7;
/// References are black.
const REFERENCE_COLOR: usize = 6;
/// The family of reference parts.
const REFERENCE: &str = "reference";

/// The family of a part, from its entry in the list; `custom` for a part from outside this library,
/// `other` for a part without a family.
fn family<T: ?Sized + Kind>(name: &str) -> &'static str {
    match find::<T>(name) {
        Ok(entry) if entry.family.is_empty() => "other",
        Ok(entry) => entry.family,
        Err(_) => "custom",
    }
}

/// The facts of a curve on which its look depends.
pub trait Styled {
    /// Its value of every swept key.
    fn keys(&self) -> &[(String, String)];
    /// Its scheduling policy.
    fn policy(&self) -> &str;
    /// Its compressor.
    fn compressor(&self) -> &str;
}

impl Styled for CurveResult {
    fn keys(&self) -> &[(String, String)] {
        &self.keys
    }

    fn policy(&self) -> &str {
        &self.spec.schedule.policy
    }

    fn compressor(&self) -> &str {
        &self.spec.compress.scheme
    }
}

/// The look of each curve, and the family by which it is colored if curves are.
pub fn looks_of<C: Styled>(curves: &[C]) -> Vec<(Look, String)> {
    let Some(key) = ColorKey::of(curves) else {
        return (0..curves.len()).map(|i| (Look::of(i), String::new())).collect();
    };
    let family = |i: usize| if key.by_family { key.groups[i].clone() } else { String::new() };
    key.looks(curves, "").into_iter().enumerate().map(|(i, look)| (look, family(i))).collect()
}

/// The key of the colors of many curves.
#[derive(Debug, PartialEq)]
pub struct ColorKey {
    /// The key.
    pub key: String,
    /// The value of each curve.
    values: Vec<String>,
    /// The group of each curve, which has one color: the value, or the family of its part.
    groups: Vec<String>,
    /// Whether groups are families.
    by_family: bool,
}

impl ColorKey {
    /// The color key of many curves: the policy, the compression scheme, or another swept key, whichever
    /// is the first with two to seven values. Policies or schemes with more values are colored by family.
    /// None if there are few curves, or no such key: each curve then has the look of its place.
    pub fn of<C: Styled>(results: &[C]) -> Option<Self> {
        if results.len() <= MAX_COLORS {
            return None;
        }
        let (policy, scheme) = (<dyn Policy>::KEY, <dyn Compressor>::KEY);
        let of_config =
            |value: fn(&C) -> &str| -> Vec<String> { results.iter().map(|c| value(c).to_owned()).collect() };
        let parts = [
            (policy, of_config(C::policy), family::<dyn Policy> as fn(&str) -> &'static str),
            (scheme, of_config(C::compressor), family::<dyn Compressor>),
        ];
        let parts = parts.map(|(key, values, family)| (key, values, Some(family)));
        let swept = distinct(results.iter().flat_map(Styled::keys).map(|(key, _)| key.as_str()));
        let swept = swept.into_iter().filter(|key| *key != policy && *key != scheme);
        let others = swept.map(|key| {
            let values: Vec<String> = results.iter().map(|curve| value_of(curve, key)).collect();
            (key, values, None)
        });
        let key = parts.into_iter().chain(others).find_map(|(key, values, family)| {
            let (key, different) = (key.to_owned(), distinct(&values));
            match (different.len(), family) {
                (0 | 1, _) => None,
                (2..=MAX_COLORS, family) => {
                    let is_reference = |value: &String| family.is_some_and(|of| of(value) == REFERENCE);
                    let group = |v: &String| if is_reference(v) { REFERENCE.to_owned() } else { v.clone() };
                    let groups = values.iter().map(group).collect();
                    Some(Self { key, values, groups, by_family: false })
                }
                (_, Some(family)) => {
                    let largest = |name| different.iter().filter(|value| family(value) == name).count();
                    let families = distinct(different.iter().map(|value| family(value)));
                    let fits = families.len() > 1 && families.iter().all(|name| largest(*name) <= MAX_COLORS);
                    let groups = values.iter().map(|value| family(value).to_owned()).collect();
                    fits.then_some(Self { key, values, groups, by_family: true })
                }
                _ => None,
            }
        });
        let looks_differ = |key: &Self| {
            let looks = key.looks(results, "");
            (1..looks.len()).all(|i| !looks[..i].contains(&looks[i]))
        };
        key.filter(looks_differ)
    }

    /// The look of each curve: the color of its group, and dashes and marker by the other swept keys
    /// except `panel`, whose values are in separate panels. Within a family the marker identifies the
    /// part.
    fn looks<C: Styled>(&self, results: &[C], panel: &str) -> Vec<Look> {
        let other_keys = |curve: &C| -> Vec<(String, String)> {
            curve.keys().iter().filter(|(key, _)| *key != self.key && key != panel).cloned().collect()
        };
        let all: Vec<Vec<(String, String)>> = results.iter().map(other_keys).collect();
        let others = distinct(&all);
        let colored = distinct(self.groups.iter().filter(|group| *group != REFERENCE));
        let look = |i: usize| {
            let group = &self.groups[i];
            let pairs = self.groups.iter().zip(&self.values);
            let members = distinct(pairs.filter(|(own, _)| *own == group).map(|(_, value)| value));
            let member = place(&members, &&self.values[i]);
            let color = colored.iter().position(|known| *known == group).unwrap_or(REFERENCE_COLOR);
            let other = place(&others, &&all[i]);
            // If the color alone would distinguish curves, dashes and markers do so too.
            let (dash, marker) = match (others.len() > 1, members.len() > 1) {
                (true, true) => (other, member),
                (true, false) => (other, other),
                (false, true) => (member, member),
                (false, false) => (color, color),
            };
            Look::new(color, dash, marker)
        };
        (0..results.len()).map(look).collect()
    }
}

/// The legend of all curves of a folder, in their order.
pub fn legend(results: &[CurveResult]) -> Vec<Entry> {
    entries(results, ColorKey::of(results).as_ref(), "", |curve| curve.label.clone())
}

/// The same for panels, one for each value of `panel`, which the labels omit: a curve has one label in
/// all panels.
pub fn panel_legend(results: &[CurveResult], key: &ColorKey, panel: &str) -> Vec<Entry> {
    entries(results, Some(key), panel, |curve| {
        let rest = curve.keys.iter().filter(|(own, _)| own != panel).map(|(_, value)| value.as_str());
        rest.collect::<Vec<&str>>().join(" ")
    })
}

/// The value of a swept key.
fn value_of(curve: &impl Styled, key: &str) -> String {
    curve.keys().iter().find(|(own, _)| own == key).map_or_else(String::new, |(_, value)| value.clone())
}

fn entries(
    results: &[CurveResult],
    key: Option<&ColorKey>,
    panel: &str,
    label: impl Fn(&CurveResult) -> String,
) -> Vec<Entry> {
    let looks = key.map(|key| key.looks(results, panel));
    let entry = |(i, curve): (usize, &CurveResult)| Entry {
        label: match curve.status() {
            Status::Finished => label(curve),
            other => format!("{} ({})", label(curve), other.name()),
        },
        group: key.filter(|key| key.by_family).map_or_else(String::new, |key| key.groups[i].clone()),
        look: looks.as_ref().map_or_else(|| Look::of(i), |looks| looks[i]),
    };
    results.iter().enumerate().map(entry).collect()
}

/// The distinct values, in the order of their first occurrence.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut different = Vec::new();
    for value in values {
        if !different.contains(&value) {
            different.push(value);
        }
    }
    different
}

fn place<T: PartialEq>(values: &[T], value: &T) -> usize {
    values.iter().position(|known| known == value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::curve_of;

    fn curves(policies: &[&str], ks: &[&str]) -> Vec<CurveResult> {
        let pairs = policies.iter().flat_map(|policy| ks.iter().map(move |k| (*policy, *k)));
        let curve = |(policy, k): (&str, &str)| {
            let mut curve = curve_of(&format!("{policy} {k}"), &[&[0.5]]);
            fedlink_study::example::change(&mut curve, |config| {
                // Some policies schedule all devices.
                (config.schedule.policy, config.data.devices) = (policy.into(), config.schedule.k);
            });
            curve.keys = vec![("schedule.policy".into(), policy.into()), ("schedule.k".into(), k.into())];
            curve
        };
        pairs.map(curve).collect()
    }

    fn looks(results: &[CurveResult]) -> Vec<Look> {
        legend(results).into_iter().map(|entry| entry.look).collect()
    }

    fn differ(looks: &[Look]) -> bool {
        (0..looks.len()).all(|i| !looks[..i].contains(&looks[i]))
    }

    #[test]
    fn few_curves_have_a_color_each() {
        let results = curves(&["bc", "bn2", "random"], &["1", "2"]);
        assert_eq!(ColorKey::of(&results), None);
        let colors: Vec<usize> = looks(&results).iter().map(|look| look.color).collect();
        assert_eq!(colors, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_color_is_a_policy_and_a_dash_pattern_is_a_value_of_the_second_key() {
        // Three of these policies are of one family.
        let results = curves(&["bc", "bn2", "bn2-c", "bc-bn2"], &["1", "5", "10", "20"]);
        let looks = looks(&results);
        for (a, one) in results.iter().zip(&looks) {
            for (b, other) in results.iter().zip(&looks) {
                let same = |key: &str| a.swept(key) == b.swept(key);
                assert_eq!(one.color == other.color, same("schedule.policy"));
                assert_eq!(one.dash == other.dash, same("schedule.k"));
            }
        }
        assert!(differ(&looks));
    }

    #[test]
    fn many_values_of_a_key_leave_the_color_to_the_next_key() {
        let values: Vec<String> = (1..=9).map(|k| k.to_string()).collect();
        let mut results = curves(&["bc"], &values.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((ColorKey::of(&results), differ(&looks(&results))), (None, true));
        for (i, curve) in results.iter_mut().enumerate() {
            curve.keys.push(("learn.local_steps".into(), (i % 2).to_string()));
        }
        let results: Vec<CurveResult> = results.iter().chain(&results).cloned().collect();
        // Each curve occurs twice: only the place distinguishes the two.
        assert_eq!((ColorKey::of(&results), differ(&looks(&results))), (None, true));
        assert_eq!(ColorKey::of(&results[..9]).unwrap().key, "learn.local_steps");
    }

    #[test]
    fn a_curve_looks_the_same_in_all_panels_of_a_key() {
        let results = curves(&["bc", "bn2", "bn2-c", "fixed"], &["1", "5"]);
        let key = ColorKey::of(&results).unwrap();
        let (panels, all) = (panel_legend(&results, &key, "schedule.k"), looks(&results));
        for (one, other) in panels.chunks_exact(2).map(|pair| (&pair[0], &pair[1])) {
            assert_eq!(one, other);
        }
        assert_ne!(panels[2].look, panels[4].look, "bn2 and bn2-c");
        // The policies of a panel differ without color too.
        let gray = |i: usize| (panels[i].look.dash, panels[i].look.marker);
        assert!([0, 2, 4, 6].iter().all(|&i| (0..i).step_by(2).all(|j| gray(i) != gray(j))));
        assert!(panels.iter().zip(&all).all(|(entry, look)| entry.look.color == look.color));
        assert_eq!(panels[6].label, "fixed");
    }

    #[test]
    fn the_legend_states_that_a_curve_did_not_finish() {
        let mut results = curves(&["bc"], &["1"]);
        results[0].runs[0].status = Status::Diverged("the loss is not finite".into());
        assert_eq!(legend(&results)[0].label, "bc 1 (diverged)");
    }

    #[test]
    fn every_policy_and_scheme_has_a_family_and_every_family_a_color() {
        fn check<T: ?Sized + Kind>() {
            let without: Vec<&str> =
                T::entries().iter().filter(|e| e.family.is_empty()).map(|e| e.name).collect();
            assert!(without.is_empty(), "give these a FAMILY: {without:?}");
            let mut families: Vec<&str> = T::entries().iter().map(|entry| entry.family).collect();
            families.sort_unstable();
            families.dedup();
            families.retain(|family| *family != REFERENCE);
            assert!(families.len() < MAX_COLORS, "two families would share a color: {families:?}");
        }
        check::<dyn Policy>();
        check::<dyn Compressor>();
        assert_eq!((family::<dyn Policy>("bn2"), family::<dyn Policy>("mine")), ("norm", "custom"));
    }

    #[test]
    fn no_two_curves_of_all_policies_look_alike() {
        let names: Vec<&str> = <dyn Policy>::entries().iter().map(|entry| entry.name).collect();
        let results = curves(&names, &["1", "5"]);
        let key = ColorKey::of(&results).unwrap();
        assert!(key.by_family);
        assert!(differ(&looks(&results)));
        for (i, entry) in legend(&results).iter().enumerate() {
            assert_eq!(entry.group, family::<dyn Policy>(&results[i].spec.schedule.policy));
        }
        // In panels a policy looks the same in all of them.
        let panels = panel_legend(&results, &key, "schedule.k");
        assert!(differ(&panels.iter().step_by(2).map(|entry| entry.look).collect::<Vec<_>>()));
    }

    #[test]
    fn with_one_policy_the_color_is_the_scheme() {
        let mut results = curves(&["bc"], &["1", "2", "3", "4"]);
        results.extend(curves(&["bc"], &["1", "2", "3", "4"]));
        results[4..].iter_mut().for_each(|curve| {
            fedlink_study::example::change(curve, |config| config.compress.scheme = "low-rank".into());
        });
        assert_eq!(ColorKey::of(&results).unwrap().key, "compress.scheme");
        let looks = looks(&results);
        assert!(looks[..4].iter().all(|look| look.color == 0));
        assert!(looks[4..].iter().all(|look| look.color == 1));
        assert_eq!((looks[1].dash, looks[5].dash), (1, 1));
    }
}
