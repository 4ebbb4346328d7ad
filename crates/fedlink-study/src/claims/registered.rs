//! The claims of a folder at its first run, and those that were added or changed later.

use super::{Claim, Claims, Correction};
use fedlink::record::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The claims of a folder by the time at which they were made. It is saved as `register.json`, and the
/// manifest holds it too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Register {
    /// The time of the first run (UTC); none if an earlier version began the folder.
    pub first_run: Option<String>,
    /// SHA-256 over the claims at the first run.
    pub sha256: String,
    /// The claims at the first run: SHA-256 of each, by name.
    pub claims: BTreeMap<String, String>,
    /// The claims that were added or changed later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Later>,
    /// The claims that were removed later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// A claim that was added or changed after the first run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Later {
    /// Its name.
    pub name: String,
    /// SHA-256 of it.
    pub sha256: String,
    /// The time at which it was first there (UTC).
    pub date: String,
    /// Whether a claim of this name was there at the first run.
    pub changed: bool,
}

/// The time at which a claim was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Registered {
    /// It was there at the first run.
    #[serde(rename = "before the results")]
    Before,
    /// It was not there at the first run.
    #[serde(rename = "added after the results")]
    Added,
    /// It had another text, goal or correction at the first run.
    #[serde(rename = "changed after the results")]
    Changed,
}

impl Registered {
    /// `, added after the results`; empty for a claim that was there at the first run.
    pub fn remark(&self) -> String {
        match self {
            Self::Before => "",
            Self::Added => ", added after the results",
            Self::Changed => ", changed after the results",
        }
        .to_owned()
    }
}

/// The digest of a claim: SHA-256 of its text and its goal.
fn digest(claim: &Claim) -> String {
    let goal = claim.goal.as_deref().unwrap_or_default();
    hexadecimal(&Sha256::digest(format!("{}\n{goal}", claim.text)))
}

/// Every claim with its digest. The correction is one of them: it changes every verdict.
fn entries(claims: &Claims) -> impl Iterator<Item = (String, String)> {
    let correction = match claims.correction {
        Correction::None => "none",
        Correction::Holm => "holm",
    };
    let correction = (CORRECTION.to_owned(), hexadecimal(&Sha256::digest(correction)));
    let of = |claim: &Claim| (claim.name.clone(), digest(claim));
    claims.list.iter().map(of).chain((!claims.list.is_empty()).then_some(correction))
}

/// The name of the correction among the claims.
const CORRECTION: &str = "correction";

impl Register {
    /// The claims at the first run, at this time.
    pub(crate) fn new(claims: &Claims, first_run: Option<String>) -> Self {
        let claims: BTreeMap<String, String> = entries(claims).collect();
        let lines: Vec<String> = claims.iter().map(|(name, digest)| format!("{digest} {name}\n")).collect();
        let sha256 = hexadecimal(&Sha256::digest(lines.concat()));
        Self { first_run, sha256, claims, ..Self::default() }
    }

    /// Adds the claims that are new at this time, and notes those that are gone.
    pub(crate) fn update(&mut self, claims: &Claims, date: &str) {
        for (name, sha256) in entries(claims) {
            let first = self.claims.get(&name);
            let known = self.later.iter().any(|later| later.name == name && later.sha256 == sha256);
            // Without claims at the first run there was no correction to be changed.
            if first == Some(&sha256) || known || (name == CORRECTION && first.is_none()) {
                continue;
            }
            let changed = first.is_some();
            self.later.push(Later { name, sha256, date: date.to_owned(), changed });
        }
        self.removed = self.removed(claims);
    }

    /// Whether there never was a claim.
    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.later.is_empty()
    }

    /// The time at which a claim was made.
    pub(crate) fn of(&self, claim: &Claim) -> Registered {
        match self.claims.get(&claim.name) {
            None => Registered::Added,
            Some(first) if *first == digest(claim) => Registered::Before,
            Some(_) => Registered::Changed,
        }
    }

    /// Whether the correction is another one than at the first run.
    pub(crate) fn correction_changed(&self, claims: &Claims) -> bool {
        let now = entries(claims).find(|(name, _)| name == CORRECTION);
        let first = self.claims.get(CORRECTION);
        matches!((now, first), (Some((_, now)), Some(first)) if now != *first)
    }

    /// The claims at the first run that are not there any more.
    pub(crate) fn removed(&self, claims: &Claims) -> Vec<String> {
        let is_there = |name: &str| claims.list.iter().any(|claim| claim.name == name);
        self.claims.keys().filter(|name| *name != CORRECTION && !is_there(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> Claims {
        Claims::parse(toml::from_str(text).unwrap(), &toml::Table::new()).unwrap()
    }

    #[test]
    fn claims_that_were_added_changed_or_removed_later_are_distinguished() {
        let first = claims("a = \"bc final > 0.5\"\nb = \"bc final > 0.6\"");
        let mut register = Register::new(&first, Some("2026-01-01T00:00:00Z".into()));
        assert_eq!(register.claims.len(), 3);
        register.update(&first, "later");
        assert!(register.later.is_empty() && register.removed.is_empty());
        let now = claims(
            "correction = \"holm\"\na = \"bc final > 0.4\"\nc = { goal = \"final\", claim = \"bc > 0.5\" }",
        );
        register.update(&now, "2026-02-02T00:00:00Z");
        register.update(&now, "2026-03-03T00:00:00Z");
        let later: Vec<_> = register
            .later
            .iter()
            .map(|later| (later.name.as_str(), later.changed, &later.date[..7]))
            .collect();
        assert_eq!(later, [("a", true, "2026-02"), ("c", false, "2026-02"), ("correction", true, "2026-02")]);
        assert_eq!(register.removed, ["b"]);
        assert!(register.correction_changed(&now) && !register.correction_changed(&first));
        let of = |claims: &Claims| claims.list.iter().map(|claim| register.of(claim)).collect::<Vec<_>>();
        assert_eq!(of(&now), [Registered::Changed, Registered::Added]);
        assert_eq!(of(&first), [Registered::Before; 2]);
        // A goal of its own is another claim.
        let goal = claims("a = { goal = \"final\", claim = \"bc > 0.5\" }");
        assert_eq!(of(&goal), [Registered::Changed]);
        let text = serde_json::to_string(&register).unwrap();
        assert_eq!(serde_json::from_str::<Register>(&text).unwrap(), register);
    }
}
