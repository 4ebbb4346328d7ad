//! `[claims]` of a file: the text of each claim by its name, and the correction for many comparisons.

use super::{Claim, Correction, Measured, Pair, Subject, Verdict, error};
use fedlink::spec::ConfigError;
use std::fmt::Write;
use toml::{Table, Value};

/// The key of the section that is not the name of a claim.
const CORRECTION: &str = "correction";

/// All claims of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Claims {
    /// The claims.
    pub list: Vec<Claim>,
    /// The correction for the number of comparisons of a claim.
    pub correction: Correction,
}

impl Claims {
    /// Reads the table. A claim may name a goal of `goals` instead of writing it.
    pub(crate) fn parse(mut table: Table, goals: &Table) -> Result<Self, ConfigError> {
        let correction = match table.remove(CORRECTION) {
            None => Correction::None,
            Some(Value::String(name)) if name == "none" => Correction::None,
            Some(Value::String(name)) if name == "holm" => Correction::Holm,
            Some(other) => {
                let problem = format!("is {other}, but must be \"none\" or \"holm\"; it is no claim's name");
                return Err(ConfigError::new("claims.correction", problem));
            }
        };
        let list = table.into_iter().map(|(name, value)| claim(&name, &value, goals));
        Ok(Self { list: list.collect::<Result<_, _>>()?, correction })
    }

    /// The verdict on each claim; the comparisons of all of them are one family.
    pub(crate) fn verdicts(
        &self,
        subject: Subject,
        measured: &[Measured],
    ) -> Result<Vec<Verdict>, ConfigError> {
        let judged = self.list.iter().map(|claim| claim.judge(subject, measured));
        let mut verdicts: Vec<Verdict> = judged.collect::<Result<_, _>>()?;
        let mut pairs: Vec<&mut Pair> = verdicts.iter_mut().flat_map(|verdict| &mut verdict.pairs).collect();
        self.correction.apply(&mut pairs);
        verdicts.iter_mut().for_each(Verdict::conclude);
        Ok(verdicts)
    }

    /// The section of a file; empty without claims.
    pub(crate) fn to_toml(&self) -> String {
        if self.list.is_empty() {
            return String::new();
        }
        let mut text = "\n[claims]\n".to_owned();
        if self.correction == Correction::Holm {
            text += "correction = \"holm\"\n";
        }
        for claim in &self.list {
            let [name, statement] = [&claim.name, &claim.text].map(|text| Value::from(text.as_str()));
            let _ = match &claim.goal {
                None => writeln!(text, "{name} = {statement}"),
                Some(goal) => {
                    let goal = Value::from(goal.as_str());
                    writeln!(text, "{name} = {{ goal = {goal}, claim = {statement} }}")
                }
            };
        }
        text
    }
}

/// One line of the section: a text, or a table of a goal and a text.
fn claim(name: &str, value: &Value, goals: &Table) -> Result<Claim, ConfigError> {
    let form = "must be text, such as \"bn2-c@k=1 final > bc@k=1 final\", or { goal = \"seconds until \
                accuracy >= 0.85\", claim = \"bn2-c@k=1 < bc@k=1\" }";
    match value {
        Value::String(text) => Claim::parse(name, text),
        Value::Table(table) => {
            let text = |key: &str| table.get(key).and_then(Value::as_str);
            let (Some(goal), Some(statement), 2) = (text("goal"), text("claim"), table.len()) else {
                return Err(error(name, form.into()));
            };
            let goal = goals.get(goal).and_then(Value::as_str).unwrap_or(goal);
            Claim::with_goal(name, statement, goal)
        }
        _ => Err(error(name, form.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Claims, ConfigError> {
        Claims::parse(toml::from_str(text).unwrap(), &Table::new())
    }

    #[test]
    fn the_correction_is_a_key_among_the_claims_and_is_written_back() {
        let claims = parse("a = \"bc final > 0.5\"\ncorrection = \"holm\"\n").unwrap();
        assert_eq!((claims.list.len(), claims.correction), (1, Correction::Holm));
        let text = claims.to_toml();
        assert_eq!(parse(text.trim_start().trim_start_matches("[claims]\n")).unwrap(), claims);
        assert_eq!(parse("correction = \"none\"").unwrap(), Claims::default());
        let error = parse("correction = \"bonferroni\"").unwrap_err().to_string();
        assert!(error.contains("must be \"none\" or \"holm\""), "{error}");
        assert!(parse("a = 5").unwrap_err().to_string().contains("must be text"));
    }

    #[test]
    fn a_claim_may_have_a_goal_or_the_name_of_one() {
        let text = "a = { goal = \"bits until accuracy >= 0.8\", claim = \"bc < others\" }";
        let claims = parse(text).unwrap();
        let [claim] = &claims.list[..] else { panic!("one claim") };
        assert_eq!(claim.goal.as_deref(), Some("bits until accuracy >= 0.8"));
        let written = claims.to_toml();
        assert_eq!(parse(written.trim_start().trim_start_matches("[claims]\n")).unwrap(), claims);
        let goals: Table = toml::from_str("cheap = \"bits until accuracy >= 0.8\"").unwrap();
        let named = "a = { goal = \"cheap\", claim = \"bc < others\" }";
        assert_eq!(Claims::parse(toml::from_str(named).unwrap(), &goals).unwrap(), claims);
        for (wrong, part) in [
            ("a = { goal = \"bits until\", claim = \"bc < bn2\" }", "goal \"bits until\" ends too soon"),
            ("a = { goal = \"bits until accuracy >= 0.8\" }", "must be text"),
            ("a = { goal = \"final\", claim = \"bc final > 0.5\" }", "leave final out of the claim"),
            ("a = { goal = \"rounds-to-0.8\", claim = \"bc < 0\" }", "must be above 0"),
            ("a = { goal = \"final\", claim = \"bc\" }", "with a goal, write a claim as"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with("claims.\"a\"") && error.contains(part), "{wrong}: {error}");
        }
    }
}
