//! `[[claim]]`, the form that claims about the bound had before `[claims]`: refused, with the new form of
//! each.

use std::fmt::Write;
use toml::{Table, Value};

/// Why a file with `[[claim]]` is not read, and what to write instead; none for a file without it.
pub(super) fn refusal(text: &str) -> Option<String> {
    let claims = match toml::from_str::<Table>(text).ok()?.remove("claim")? {
        Value::Array(claims) => claims,
        claim => vec![claim],
    };
    let mut message =
        "claims stand in [claims], as texts by name, and no longer in [[claim]]; write\n\n[claims]"
            .to_owned();
    for claim in &claims {
        let lines = claim.as_table().and_then(rewritten).unwrap_or_else(|| {
            vec![("K = 3 ends far below K = 1".into(), "1.1 * uneven@k=3 bound < uneven@k=1 bound".into())]
        });
        for (name, text) in lines {
            let [name, text] = [name, text].map(Value::from);
            let _ = write!(message, "\n{name} = {text}");
        }
    }
    Some(message)
}

/// Names and texts of the same meaning. One claim becomes several where the curves on the right differ from
/// each other in more than one key. None if the table lacks something.
fn rewritten(claim: &Table) -> Option<Vec<(String, String)>> {
    let text = |key: &str| claim.get(key)?.as_str();
    let (panel, statement) = (text("panel")?, text("says")?);
    let metric = match (claim.get("rounds_to"), claim.get("at")) {
        (Some(level), _) => format!("rounds-to-bound-{}", number(level)?),
        (None, Some(rounds)) => format!("bound-at-{}", number(rounds)?),
        (None, None) => "bound".to_owned(),
    };
    let factor = match claim.get("factor") {
        Some(factor) => format!("{} * ", number(factor)?),
        None => String::new(),
    };
    let better = terms(claim.get("better")?)?;
    let left = format!("{factor}{} {metric} <", selector(panel, &better));
    let than = claim.get("than").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let than: Vec<Vec<(&str, String)>> = than.iter().map(terms).collect::<Option<_>>()?;
    let rights = match &than[..] {
        [] => vec![format!("{panel} others")],
        than if than.iter().all(|terms| matches!(&terms[..], [(key, _)] if *key == than[0][0].0)) => {
            let values: Vec<&str> = than.iter().map(|terms| terms[0].1.as_str()).collect();
            vec![selector(panel, &[(than[0][0].0, values.join("|"))])]
        }
        than => than.iter().map(|terms| selector(panel, terms)).collect(),
    };
    let name = |i: usize| match rights.len() {
        1 => format!("{panel}: {statement}"),
        _ => format!("{panel}: {statement} ({})", i + 1),
    };
    let line = |(i, right): (usize, &String)| (name(i), format!("{left} {right} {metric}"));
    Some(rights.iter().enumerate().map(line).collect())
}

/// `{ k = 1, tau = 3 }` as keys and values.
fn terms(selector: &Value) -> Option<Vec<(&str, String)>> {
    selector.as_table()?.iter().map(|(key, value)| Some((key.as_str(), number(value)?))).collect()
}

fn selector(panel: &str, terms: &[(&str, String)]) -> String {
    terms.iter().fold(panel.to_owned(), |text, (key, value)| format!("{text}@{key}={value}"))
}

fn number(value: &Value) -> Option<String> {
    let whole = value.as_integer().map(|number| number.to_string());
    whole.or_else(|| value.as_float().map(|number| number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::BoundExperiment;

    const FORMER: &str = r#"
        [bound]
        k = [1, 3]
        tau = [1, 3]
        eta = "inverse-time:3"
        [[panel]]
        name = "even"
        [[claim]]
        panel = "even"
        says = "a"
        better = { k = 1, tau = 3 }
        [[claim]]
        panel = "even"
        says = "b"
        better = { k = 3, tau = 1 }
        than = [{ k = 1, tau = 1 }]
        at = 200.0
        factor = 1.1
        [[claim]]
        panel = "even"
        says = "c \"d\""
        better = { k = 3, tau = 1 }
        than = [{ k = 1, tau = 1 }, { k = 1, tau = 3 }]
        rounds_to = 9
    "#;

    #[test]
    fn every_claim_in_the_former_form_is_refused_with_its_new_form() {
        let message = BoundExperiment::parse("my.toml", FORMER).unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "[claims]",
                r#""even: a" = "even@k=1@tau=3 bound < even others bound""#,
                r#""even: b" = "1.1 * even@k=3@tau=1 bound-at-200 < even@k=1@tau=1 bound-at-200""#,
                r#"'even: c "d" (1)' = "even@k=3@tau=1 rounds-to-bound-9 < even@k=1@tau=1 rounds-to-bound-9""#,
                r#"'even: c "d" (2)' = "even@k=3@tau=1 rounds-to-bound-9 < even@k=1@tau=3 rounds-to-bound-9""#,
            ]
        );
        let (settings, _) = FORMER.split_once("[[claim]]").unwrap();
        let new = BoundExperiment::parse("my.toml", &format!("{settings}\n{}", lines.join("\n"))).unwrap();
        assert_eq!(new.claims().len(), 4);
    }

    #[test]
    fn several_values_of_one_key_stay_one_claim() {
        let claim =
            "panel = \"p\"\nsays = \"x\"\nbetter = { tau = 5 }\nthan = [{ tau = 10 }, { tau = 15 }]\n";
        let lines = rewritten(&toml::from_str(claim).unwrap()).unwrap();
        assert_eq!(lines, [("p: x".to_owned(), "p@tau=5 bound < p@tau=10|15 bound".to_owned())]);
    }

    #[test]
    fn what_was_never_a_claim_is_met_with_an_example() {
        for text in ["[bound]\n[claim]\nx = 1\n", "[[claim]]\npanel = \"p\"\n", "claim = 3\n"] {
            let message = refusal(text).unwrap();
            assert!(message.contains("1.1 * uneven@k=3 bound < uneven@k=1 bound"), "{message}");
        }
        assert_eq!(refusal("[bound]\n[claims]\n"), None);
        assert_eq!(refusal("[bound"), None);
    }
}
