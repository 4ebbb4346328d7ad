//! How many curves are distinguished: the color by the family of what is compared, the line by what else
//! differs.

use crate::figure::CurveStyle;
use fedlink::compress::Compressor;
use fedlink::registry::{Kind, find};
use fedlink::schedule::Policy;
use fedlink_study::results::CurveResult;

/// Up to so many curves each has a color of its own.
const MAX_COLORS: usize = 7;
/// Colors of families in the order in which they appear; references are black.
const FAMILY_COLORS: [usize; 6] = [0, 1, 2, 3, 4, 5];
const REFERENCE_COLOR: usize = 6;

/// The family of a part, by its entry in the list; `custom` for what is not of this library, `other` for one
/// of none.
fn family<T: ?Sized + Kind>(name: &str) -> &'static str {
    match find::<T>(name) {
        Ok(entry) if entry.family.is_empty() => "other",
        Ok(entry) => entry.family,
        Err(_) => "custom",
    }
}

/// A key whose values are parts that have families.
struct Compared {
    key: &'static str,
    family: fn(&str) -> &'static str,
    chosen: fn(&CurveResult) -> &str,
}

const COMPARED: [Compared; 2] = [
    Compared {
        key: <dyn Policy>::KEY,
        family: family::<dyn Policy>,
        chosen: |curve| &curve.config.schedule.policy,
    },
    Compared {
        key: <dyn Compressor>::KEY,
        family: family::<dyn Compressor>,
        chosen: |curve| &curve.config.compress.scheme,
    },
];

/// The key by whose families many curves are colored: the policy, or else the compression scheme; none where
/// there are few curves, or parts of one family.
pub fn compared_key(results: &[&CurveResult]) -> Option<&'static str> {
    compared(results).map(|compared| compared.key)
}

fn compared(results: &[&CurveResult]) -> Option<&'static Compared> {
    let has_families = |compared: &&Compared| {
        let mut families = results.iter().map(|curve| (compared.family)((compared.chosen)(curve)));
        let first = families.next();
        families.any(|family| Some(family) != first)
    };
    COMPARED.iter().find(has_families).filter(|_| results.len() > MAX_COLORS)
}

/// A style for each curve where there are more than colors: the color of the family of its policy (or
/// scheme), the marker by the policy within the family, the dashes by the values of the other swept keys (by
/// the policy, if nothing else is swept). None where there are few curves, or parts of one family.
pub fn styles(results: &[&CurveResult]) -> Option<Vec<CurveStyle>> {
    styles_without(results, "")
}

/// The same where the curves of one value of `key` are not seen beside those of another, so that it needs no
/// dashes.
pub fn styles_without(results: &[&CurveResult], key: &str) -> Option<Vec<CurveStyle>> {
    let Compared { key: own_key, family, chosen } = compared(results)?;
    let mut families: Vec<(&'static str, Vec<&str>)> = Vec::new();
    let mut others: Vec<Vec<(String, String)>> = Vec::new();
    let other_keys = |curve: &CurveResult| -> Vec<(String, String)> {
        curve.keys.iter().filter(|(own, _)| own != own_key && own != key).cloned().collect()
    };
    for curve in results {
        let (name, group) = (chosen(curve), family(chosen(curve)));
        match families.iter_mut().find(|(known, _)| *known == group) {
            Some((_, members)) if members.contains(&name) => {}
            Some((_, members)) => members.push(name),
            None => families.push((group, vec![name])),
        }
        let keys = other_keys(curve);
        if !others.contains(&keys) {
            others.push(keys);
        }
    }
    let colored: Vec<&str> =
        families.iter().map(|(group, _)| *group).filter(|group| *group != "reference").collect();
    let style = |curve: &&CurveResult| {
        let (name, group) = (chosen(curve), family(chosen(curve)));
        let members = families.iter().find(|(known, _)| *known == group).map(|(_, members)| members);
        let member = members.and_then(|members| members.iter().position(|known| *known == name)).unwrap_or(0);
        let color = colored.iter().position(|known| *known == group);
        let other = others.iter().position(|known| *known == other_keys(curve)).unwrap_or(0);
        CurveStyle {
            color: color.map_or(REFERENCE_COLOR, |index| FAMILY_COLORS[index % FAMILY_COLORS.len()]),
            dash: if others.len() > 1 { other } else { member },
            marker: member,
            group: group.to_owned(),
        }
    };
    Some(results.iter().map(style).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::SeriesStyle;
    use fedlink_study::example::curve_of;

    fn curves(policies: &[&str], ks: &[&str]) -> Vec<CurveResult> {
        let pairs = policies.iter().flat_map(|policy| ks.iter().map(move |k| (*policy, *k)));
        let curve = |(policy, k): (&str, &str)| {
            let mut curve = curve_of(&format!("{policy} {k}"), &[&[0.5]]);
            curve.config.schedule.policy = policy.into();
            curve.keys = vec![("schedule.policy".into(), policy.into()), ("schedule.k".into(), k.into())];
            curve
        };
        pairs.map(curve).collect()
    }

    fn styled(results: &[CurveResult]) -> Option<Vec<CurveStyle>> {
        styles(&results.iter().collect::<Vec<&CurveResult>>())
    }

    #[test]
    fn few_curves_keep_a_color_each() {
        assert_eq!(styled(&curves(&["bc", "bn2", "random"], &["1", "2"])), None);
        // One family has nothing to tell apart by color.
        assert_eq!(styled(&curves(&["bn2", "bn2-c", "bc-bn2"], &["1", "2", "3"])), None);
    }

    #[test]
    fn the_color_is_the_family_s_and_the_dashes_are_the_second_key_s() {
        let results = curves(&["bc", "bn2", "bn2-c", "fixed"], &["1", "5"]);
        let styles = styled(&results).unwrap();
        for (a, one) in results.iter().zip(&styles) {
            for (b, other) in results.iter().zip(&styles) {
                let of = |curve: &CurveResult| family::<dyn Policy>(&curve.config.schedule.policy);
                let same_family = of(a) == of(b);
                assert_eq!(one.color == other.color, same_family);
                assert_eq!(one.dash == other.dash, a.swept("schedule.k") == b.swept("schedule.k"));
            }
        }
        // No two curves look alike.
        for (i, style) in styles.iter().enumerate() {
            assert!(styles[..i].iter().all(|before| before != style), "{i}");
        }
    }

    #[test]
    fn a_curve_looks_the_same_in_all_panels_of_a_key() {
        let results = curves(&["bc", "bn2", "bn2-c", "fixed"], &["1", "5"]);
        let styles = styles_without(&results.iter().collect::<Vec<&CurveResult>>(), "schedule.k").unwrap();
        for (one, other) in styles.chunks_exact(2).map(|pair| (&pair[0], &pair[1])) {
            assert_eq!(one, other);
        }
        assert_ne!(styles[2], styles[4], "bn2 and bn2-c");
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
            families.retain(|family| *family != "reference");
            assert!(families.len() <= FAMILY_COLORS.len(), "two families would share a color: {families:?}");
        }
        check::<dyn Policy>();
        check::<dyn Compressor>();
        assert_eq!((family::<dyn Policy>("bn2"), family::<dyn Policy>("mine")), ("norm", "custom"));
    }

    #[test]
    fn no_two_curves_of_all_policies_look_alike() {
        let names: Vec<&str> = <dyn Policy>::entries().iter().map(|entry| entry.name).collect();
        let results = curves(&names, &["1", "5"]);
        let all = results.iter().collect::<Vec<&CurveResult>>();
        // In panels a policy looks the same in all of them.
        let both = [(styles(&all).unwrap(), false), (styles_without(&all, "schedule.k").unwrap(), true)];
        for (styles, in_panels) in both {
            let drawn: Vec<SeriesStyle> =
                styles.iter().enumerate().map(|(i, style)| SeriesStyle::of_curve(i, Some(style))).collect();
            let policy = |i: usize| &results[i].config.schedule.policy;
            for i in 0..drawn.len() {
                let alike = (0..i).find(|&j| drawn[j] == drawn[i] && !(in_panels && policy(j) == policy(i)));
                assert_eq!(alike.map(|j| &results[j].label), None, "{}", results[i].label);
            }
        }
    }

    #[test]
    fn where_one_policy_is_used_the_color_is_the_family_of_the_scheme() {
        let mut results = curves(&["bc"], &["1", "2", "3", "4"]);
        results.extend(curves(&["bc"], &["1", "2", "3", "4"]));
        results[4..].iter_mut().for_each(|curve| curve.config.compress.scheme = "low-rank".into());
        let all = results.iter().collect::<Vec<&CurveResult>>();
        assert_eq!(compared_key(&all), Some("compress.scheme"));
        let styles = styles(&all).unwrap();
        assert!(styles[..4].iter().all(|style| style.color == 0 && style.group == "largest"));
        assert!(styles[4..].iter().all(|style| style.color == 1 && style.group == "low rank"));
        assert_eq!((styles[1].dash, styles[5].dash), (1, 1));
    }
}
