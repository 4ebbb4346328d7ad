//! "did you mean".

use std::borrow::Cow;

/// Names longer than this, in bytes, have no hint, because a distance takes time and memory proportional
/// to the product of both lengths.
const MAX_LENGTH: usize = 200;

/// The known name that is nearest to `name`, if one is near: the same but for case, almost the same, or
/// the same or almost the same last part under another section.
///
/// ```
/// use fedlink::parts::nearest;
/// let keys = ["schedule.k", "schedule.policy", "schedule.bc-bn2.kc", "radio.symbols"];
/// assert_eq!(nearest("shedule.k", keys), Some("schedule.k"));
/// assert_eq!(nearest("schedule.K", keys), Some("schedule.k"));
/// assert_eq!(nearest("k", keys), Some("schedule.k"));
/// assert_eq!(nearest("run.policy", keys), Some("schedule.policy"));
/// assert_eq!(nearest("radio.smybols", keys), Some("radio.symbols"));
/// assert_eq!(nearest("learn.lr", keys), None);
/// assert_eq!(nearest(&"schedule.k".repeat(100_000), keys), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    fn last(key: &str) -> &str {
        key.rsplit('.').next().unwrap_or(key)
    }
    if name.len() > MAX_LENGTH {
        return None;
    }
    let name = lowercase(name);
    let far = |a: &str, b: &str| strsim::damerau_levenshtein(a, b);
    let rank = |candidate: &str| {
        let lower = lowercase(candidate);
        let (part, own) = (last(&name), last(&lower));
        // If the last part agrees, the section is misspelled or missing.
        if part == own {
            return Some((0, far(&name, &lower)));
        }
        // The lower bound is much faster than the distance and excludes most words.
        let within = |a: &str, b: &str, max: usize| {
            a.chars().count().abs_diff(b.chars().count()) <= max
                && min_distance(a, b) <= max
                && far(a, b) <= max
        };
        let near_whole = part.len() > 1 && within(&name, &lower, name.len().div_ceil(4));
        let near_part = part.len() > 1 && own.len() > 1 && within(part, own, part.len().div_ceil(4));
        (near_whole || near_part).then(|| (1 + far(part, own), far(&name, &lower)))
    };
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LENGTH)
        .filter_map(|candidate| Some((rank(candidate)?, candidate)))
        .min_by_key(|&(rank, _)| rank)
        .map(|(_, candidate)| candidate)
}

/// The name in lowercase, without a copy if it is in lowercase already.
fn lowercase(name: &str) -> Cow<'_, str> {
    let is_lowercase = name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lowercase { Cow::Borrowed(name) } else { Cow::Owned(name.to_lowercase()) }
}

/// A lower bound of the Damerau-Levenshtein distance: the number of letters of one word that the other
/// lacks. Inserting, removing or replacing a letter changes it by one, and swapping two letters does not
/// change it.
fn min_distance(a: &str, b: &str) -> usize {
    // Letters that share a counter lower the bound; it stays valid.
    let mut surplus = [0i16; 64];
    a.chars().for_each(|letter| surplus[letter as usize % 64] += 1);
    b.chars().for_each(|letter| surplus[letter as usize % 64] -= 1);
    let more: usize = surplus.iter().map(|&count| count.max(0) as usize).sum();
    let fewer: usize = surplus.iter().map(|&count| (-count).max(0) as usize).sum();
    more.max(fewer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lower_bound_is_at_most_the_distance(a in "[a-eA-E._é🦀]{0,9}", b in "[a-eA-E._é🦀]{0,9}") {
            let distance = strsim::damerau_levenshtein(&a, &b);
            prop_assert!(min_distance(&a, &b) <= distance);
            prop_assert!(min_distance(&a, &b) >= a.chars().count().abs_diff(b.chars().count()));
        }
    }

    #[test]
    fn words_without_common_letters_are_as_far_as_their_length() {
        assert_eq!(
            [min_distance("abc", "xyz"), min_distance("abc", "cab"), min_distance("", "abc")],
            [3, 0, 3]
        );
        assert_eq!([lowercase("Schedule.K"), lowercase("Ä.b")], ["schedule.k", "ä.b"]);
    }
}
