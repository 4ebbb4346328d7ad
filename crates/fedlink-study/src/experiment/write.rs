//! An experiment as the text of a file.

use super::Experiment;
use super::expand::{Combination, Curve, length};
use super::rule::{Override, toml_keys};
use crate::claims::Original;
use fedlink::spec::{Config, ConfigError, commented_toml, toml_key};
use std::fmt::Write;
use toml::Value;

impl Experiment {
    /// The experiment as a file: the configuration with every default written out, the sweep and its rules.
    /// `combinations` are all of the sweep, `curves` those that it makes.
    pub(super) fn to_toml(
        &self,
        combinations: &[Combination],
        curves: &[Curve],
    ) -> Result<String, ConfigError> {
        let (rounds, seeds) = length(curves.iter().map(|curve| curve.spec.config()));
        // With a sweep, each curve derives its own defaults.
        let base = match curves {
            [curve] if self.sweep.is_empty() => curve.spec.resolved(),
            _ => Config::from_table(self.table.clone())?,
        };
        let mut text = commented_toml(&base);
        if !self.sweep.is_empty() {
            text.push_str("\n[sweep]\n");
            for (key, values) in &self.sweep {
                let _ = writeln!(text, "{} = {}", toml_key(key), Value::Array(values.clone()));
            }
        }
        // The parser rejects a rule without a match and a `[quick]` that does not fit; `set` may have made
        // them so.
        for when in self.excluded.iter().filter(|when| when.matches_any(combinations)) {
            let _ = write!(text, "\n[[exclude]]\n{}", toml_keys(&when.keys, "\n"));
            text.push('\n');
        }
        for Override { when, set } in &self.overrides {
            if set.is_empty() || !when.matches_any(combinations) {
                continue;
            }
            let [when, set] = [&when.keys, set].map(|keys| toml_keys(keys, ", "));
            let _ = writeln!(text, "\n[[override]]\nwhen = {{ {when} }}\nset = {{ {set} }}");
        }
        if !self.expected.is_empty() {
            text.push_str("\n[expected]\n");
            self.expected.iter().for_each(|(curve, expected)| {
                let _ = writeln!(text, "{} = {}", toml_key(curve), Value::Float(expected.value));
            });
        }
        if !self.goals.is_empty() {
            text.push_str("\n[goals]\n");
            for (name, goal) in &self.goals {
                let [name, goal] = [name.clone(), goal.to_string()].map(Value::from);
                let _ = writeln!(text, "{name} = {goal}");
            }
        }
        text += &self.claims.to_toml();
        if self.original.shortened(rounds, seeds).is_some() {
            let Original { rounds, seeds, quick } = self.original;
            let _ = writeln!(
                text,
                "\n# The experiment was shortened: this is its own length.\n[original]\nrounds = {rounds}\n\
                 seeds = {seeds}\nquick = {quick}"
            );
        }
        if self.check_quick().is_ok() && self.has_quick() {
            let _ = writeln!(text, "\n[quick]\n{}", toml_keys(&self.quick, "\n"));
        }
        Ok(text)
    }
}

/// The text of a configuration with the lines of these keys as comments.
pub(super) fn comment_out(text: &str, keys: &[String]) -> String {
    let (mut section, mut out) = (String::new(), String::with_capacity(text.len()));
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        }
        let name = line.split(" = ").next().unwrap_or_default();
        if keys
            .iter()
            .any(|key| key.strip_prefix(&section).and_then(|key| key.strip_prefix('.')) == Some(name))
        {
            let _ = writeln!(out, "# {line}  # follows from other keys; write it to fix it");
        } else {
            out += line;
            out.push('\n');
        }
    }
    out
}
