//! "did you mean".

/// Names longer than this, in bytes, have no hint: a distance takes time and memory of the product of both lengths.
const MAX_LENGTH: usize = 200;

/// The known name that `name` was most likely meant to be, if any is near: the same but for case, almost the
/// same, or the same or almost the same last part under another section.
///
/// ```
/// use fedlink::registry::nearest;
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
    let name = name.to_lowercase();
    let far = |a: &str, b: &str| strsim::damerau_levenshtein(a, b);
    let rank = |candidate: &str| {
        let lower = candidate.to_lowercase();
        let (part, own) = (last(&name), last(&lower));
        // Where the last part agrees, the section is what is misspelled or left out.
        if part == own {
            return Some((0, far(&name, &lower)));
        }
        // Words are at least as far from each other as their lengths are, which is seen much sooner.
        let within = |a: &str, b: &str, max: usize| {
            a.chars().count().abs_diff(b.chars().count()) <= max && far(a, b) <= max
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
