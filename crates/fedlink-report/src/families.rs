//! How the curves of many policies are distinguished: the color by the policy's family, the line by what else differs.

use crate::figure::CurveStyle;
use fedlink::registry::find;
use fedlink::schedule::Policy;
use fedlink_study::results::CurveResult;

/// Up to so many curves each has a color of its own.
const MAX_COLORS: usize = 7;
/// Colors of families in the order in which they appear; references are black.
const FAMILY_COLORS: [usize; 6] = [0, 1, 2, 3, 4, 5];
const REFERENCE_COLOR: usize = 6;

/// The family of a policy, by its entry in the list; `custom` for what is not of this library, `other` for one of none.
pub fn family(policy: &str) -> &'static str {
    match find::<dyn Policy>(policy) {
        Ok(entry) if entry.family.is_empty() => "other",
        Ok(entry) => entry.family,
        Err(_) => "custom",
    }
}

/// A style for each curve where there are more than colors: the color of the family of its policy, the marker by the policy
/// within the family, the dashes by the values of the other swept keys (by the policy, if nothing else is swept). None
/// where there are few curves, or policies of one family.
pub fn styles(results: &[&CurveResult]) -> Option<Vec<CurveStyle>> {
    styles_without(results, "")
}

/// The same where the curves of one value of `key` are not seen beside those of another, so that it needs no dashes.
pub fn styles_without(results: &[&CurveResult], key: &str) -> Option<Vec<CurveStyle>> {
    let policy = |curve: &CurveResult| curve.config.schedule.policy.clone();
    let mut families: Vec<&'static str> = Vec::new();
    let mut members: Vec<Vec<String>> = Vec::new();
    let mut others: Vec<Vec<(String, String)>> = Vec::new();
    let other_keys = |curve: &CurveResult| -> Vec<(String, String)> {
        curve.keys.iter().filter(|(own, _)| own != "schedule.policy" && own != key).cloned().collect()
    };
    for curve in results {
        let name = policy(curve);
        let group = family(&name);
        let index = families.iter().position(|known| *known == group).unwrap_or_else(|| {
            families.push(group);
            members.push(Vec::new());
            families.len() - 1
        });
        if !members[index].contains(&name) {
            members[index].push(name);
        }
        let keys = other_keys(curve);
        if !others.contains(&keys) {
            others.push(keys);
        }
    }
    if results.len() <= MAX_COLORS || families.len() < 2 {
        return None;
    }
    let colored: Vec<&&str> = families.iter().filter(|group| **group != "reference").collect();
    let style = |curve: &&CurveResult| {
        let (name, group) = (policy(curve), family(&curve.config.schedule.policy));
        let of_family = families.iter().position(|known| *known == group).unwrap_or(0);
        let member = members[of_family].iter().position(|known| *known == name).unwrap_or(0);
        let color = colored.iter().position(|known| **known == group);
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
    use fedlink::schedule::policy::POLICIES;
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
                let same_family = family(&a.config.schedule.policy) == family(&b.config.schedule.policy);
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
    fn every_policy_of_the_library_has_a_family() {
        let without: Vec<&str> = POLICIES.iter().filter(|e| e.family.is_empty()).map(|e| e.name).collect();
        assert!(without.is_empty(), "give these a FAMILY: {without:?}");
        assert_eq!((family("bn2"), family("mine")), ("norm", "custom"));
    }
}
