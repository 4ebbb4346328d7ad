//! `[claims]` of a file: the text of each claim by its name, and the correction for many comparisons.

use super::{Claim, Correction, Measured, Subject, Verdict, error};
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
    /// Reads the table.
    pub(crate) fn parse(mut table: Table) -> Result<Self, ConfigError> {
        let correction = match table.remove(CORRECTION) {
            None => Correction::None,
            Some(Value::String(name)) if name == "none" => Correction::None,
            Some(Value::String(name)) if name == "holm" => Correction::Holm,
            Some(other) => {
                let problem = format!("is {other}, but must be \"none\" or \"holm\"; it is no claim's name");
                return Err(ConfigError::new("claims.correction", problem));
            }
        };
        let read = |(name, value): (String, Value)| match value.as_str() {
            Some(text) => Claim::parse(&name, text),
            None => Err(error(&name, "must be text, such as \"bn2-c@k=1 final > bc@k=1 final\"".into())),
        };
        Ok(Self { list: table.into_iter().map(read).collect::<Result<_, _>>()?, correction })
    }

    /// The verdict on each claim.
    pub(crate) fn verdicts(
        &self,
        subject: Subject,
        measured: &[Measured],
    ) -> Result<Vec<Verdict>, ConfigError> {
        self.list.iter().map(|claim| claim.verdict(subject, measured, self.correction)).collect()
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
            let _ = writeln!(text, "{name} = {statement}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Claims, ConfigError> {
        Claims::parse(toml::from_str(text).unwrap())
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
}
