//! Comparisons that a number of seeds cannot decide, known before the first run.

use super::correction::LEVEL;
use super::judge::fewest;
use super::{Claim, Claims, CurveKeys, Curves, Opponent, Subject};
use crate::goals::smallest_p;
use fedlink::spec::ConfigError;
use std::ops::Range;

/// A claim that the seeds of its curves cannot decide, with any results.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecidable {
    /// The claim's name.
    pub name: String,
    /// The reason, with the number of seeds that could decide it.
    pub reason: String,
}

impl Claims {
    /// The claims that cannot be decided with the seeds of their curves. Each curve has its keys and the
    /// range of its seeds.
    pub(crate) fn undecidable(
        &self,
        subject: Subject,
        planned: &[(CurveKeys, Range<u64>)],
    ) -> Result<Vec<Undecidable>, ConfigError> {
        let curves = Curves::new(subject, planned.iter().map(|(keys, _)| keys));
        let mut all = Vec::new();
        for claim in &self.list {
            let comparisons =
                claim.comparisons(subject, &curves).map_err(|problem| super::error(&claim.name, problem))?;
            let shared = comparisons.pairs.iter().map(|&(left, opponent)| shared(planned, left, opponent));
            all.push((claim, shared.collect::<Vec<usize>>()));
        }
        let tested = all.iter().map(|(_, seeds)| seeds.iter().filter(|&&seeds| seeds > 1).count());
        let family = self.correction.family(tested.sum());
        let judge = |(claim, seeds): &(&Claim, Vec<usize>)| {
            let fewest_shared = *seeds.iter().min()?;
            let reason = limit(claim, fewest_shared, family)?;
            Some(Undecidable { name: claim.name.clone(), reason })
        };
        Ok(all.iter().filter_map(judge).collect())
    }
}

/// The reason why this number of seeds cannot decide a claim, one of several comparisons that are corrected
/// together; none if they can.
fn limit(claim: &Claim, seeds: usize, family: usize) -> Option<String> {
    match seeds {
        0 => return Some("no seed is shared; 2 or more are needed".into()),
        1 => return Some("one shared seed decides nothing; 2 or more are needed".into()),
        _ => {}
    }
    let p = (family as f64 * smallest_p(seeds)).min(1.0);
    let is_cost = claim.goals().any(|goal| goal.metric().is_none());
    (is_cost && p > LEVEL).then(|| {
        let corrected = match family {
            1 => String::new(),
            family => format!(" after the correction for {family} comparisons"),
        };
        let needed = fewest(LEVEL / family as f64);
        format!(
            "with {seeds} seeds the smallest p-value of the exact test is {p:.3}{corrected}; {needed} seeds \
             could decide it"
        )
    })
}

/// The number of seeds that both sides have.
fn shared(planned: &[(CurveKeys, Range<u64>)], left: usize, opponent: Opponent) -> usize {
    let own = &planned[left].1;
    let (start, end) = match opponent {
        Opponent::Number(_) => (own.start, own.end),
        Opponent::Curve(right) => {
            let other = &planned[right].1;
            (own.start.max(other.start), own.end.min(other.end))
        }
    };
    usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(claims: &str, seeds: [Range<u64>; 2]) -> Vec<String> {
        let [one, ten] = seeds;
        let keys = |k: &str| vec![("schedule.k".to_owned(), k.to_owned())];
        let planned = [(keys("1"), one), (keys("10"), ten)];
        let claims = Claims::parse(toml::from_str(claims).unwrap(), &toml::Table::new()).unwrap();
        let found = claims.undecidable(Subject::Runs, &planned).unwrap();
        found.into_iter().map(|claim| format!("{}: {}", claim.name, claim.reason)).collect()
    }

    #[test]
    fn few_seeds_cannot_decide_a_cost() {
        let cost = "a = \"k=1 rounds-to-0.8 < k=10 rounds-to-0.8\"";
        assert_eq!(
            limits(cost, [0..5, 0..5]),
            ["a: with 5 seeds the smallest p-value of the exact test is 0.062; 6 seeds could decide it"]
        );
        assert_eq!(limits(cost, [0..6, 0..9]), [""; 0]);
        // Only the seeds that both have count.
        assert!(limits(cost, [0..9, 4..20])[0].contains("with 5 seeds"));
        assert_eq!(limits(cost, [0..1, 0..9]), ["a: one shared seed decides nothing; 2 or more are needed"]);
        assert_eq!(limits("a = \"k=1 final < k=10 final\"", [0..2, 0..2]), [""; 0]);
        assert_eq!(limits("a = \"k=1 final < k=10 final\"", [0..1, 0..2]).len(), 1);
    }

    #[test]
    fn the_correction_for_many_comparisons_needs_more_seeds() {
        // Three comparisons: 3/2^5 = 0.094; 3/2^6 = 0.047 with seven seeds.
        let three = "correction = \"holm\"\nb = \"k=1 final < k=10 final\"\nc = \"k=1 final > 0.5\"\n\
                     a = { goal = \"bits until accuracy >= 0.8\", claim = \"k=1 < k=10\" }";
        assert_eq!(
            limits(three, [0..6, 0..6]),
            ["a: with 6 seeds the smallest p-value of the exact test is 0.094 after the correction for 3 \
              comparisons; 7 seeds could decide it"]
        );
        assert_eq!(limits(three, [0..7, 0..7]), [""; 0]);
    }
}
