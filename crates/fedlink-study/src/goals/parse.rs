//! From the text of a goal to its parts; errors name the place and the remedy.

use super::goal::{COST_NAMES, Condition, Goal, Level, Quantity, RECORDED, Until};
use fedlink::spec::nearest;

/// The longest goal that is read, in bytes.
const MAX_LENGTH: usize = 1000;
/// The most evaluations for which conditions may have to hold.
const MAX_EVALUATIONS: u64 = 1_000_000;
/// The form of a goal, for messages.
const FORM: &str = "write a goal as \"seconds until accuracy >= 0.85 and worst-class >= 0.70 for 3 \
                    evaluations\" or as a metric such as \"final accuracy\"";

/// A word or a sign of a goal, with the number of characters before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Token<'a> {
    text: &'a str,
    before: usize,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let kind = |c: char| match c {
        c if c.is_whitespace() => 0,
        '<' | '>' | '=' => 1,
        ',' => 2,
        _ => 3,
    };
    let (mut tokens, mut begin, mut last) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        // A comma is a token of its own.
        if kind(c) != last || last == 2 {
            if last != 0 {
                tokens.push(Token { text: &text[begin..at], before: text[..begin].chars().count() });
            }
            (begin, last) = (at, kind(c));
        }
    }
    tokens
}

/// Reads a goal.
pub(super) fn parse(text: &str) -> Result<Goal, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("a goal may have {MAX_LENGTH} characters; this one has {}", text.len()));
    }
    let tokens = tokens(text);
    let Some(first) = tokens.first() else { return Err(format!("is empty; {FORM}")) };
    if !tokens.iter().any(|token| token.text == "until") {
        return plain(text, &tokens);
    }
    let parser = Parser { text };
    let cost = COST_NAMES.iter().find(|(name, _)| *name == first.text).map(|(_, cost)| *cost);
    let Some(cost) = cost else {
        let names = COST_NAMES.map(|(name, _)| name);
        return Err(parser.at(*first, &format!("is not a cost; {}", one_of(first.text, &names))));
    };
    let mut rest = match &tokens[1..] {
        [until, rest @ ..] if until.text == "until" => rest,
        [other, ..] => return Err(parser.at(*other, "is where `until` must be written, after the cost")),
        [] => return Err(parser.ends("`until` and a condition, such as accuracy >= 0.85")),
    };
    let mut conditions: Vec<Condition> = Vec::new();
    let evaluations = loop {
        let condition;
        (condition, rest) = parser.condition(rest)?;
        if conditions.iter().any(|other| other.quantity == condition.quantity) {
            return Err(format!("{text:?}: {} has two conditions; write one", condition.quantity));
        }
        conditions.push(condition);
        match rest {
            [] => break 1,
            [and, more @ ..] if and.text == "and" => rest = more,
            [word, more @ ..] if word.text == "for" => break parser.evaluations(more)?,
            [comma, ..] if comma.text == "," => {
                return Err(parser.at(*comma, "does not join conditions; write `and`"));
            }
            [other, ..] => {
                return Err(
                    parser.at(*other, "follows a condition; write `and` or `for 3 evaluations` there")
                );
            }
        }
    };
    Ok(Goal::Until(Until { cost, conditions, evaluations }))
}

struct Parser<'a> {
    text: &'a str,
}

impl Parser<'_> {
    fn at(&self, token: Token, problem: &str) -> String {
        format!("{:?}: {:?} (character {}) {problem}", self.text, token.text, token.before + 1)
    }

    fn ends(&self, missing: &str) -> String {
        format!("{:?} ends too soon; after it comes {missing}", self.text)
    }

    /// `accuracy >= 0.85`, and the tokens after it.
    fn condition<'b>(&self, tokens: &'b [Token<'b>]) -> Result<(Condition, &'b [Token<'b>]), String> {
        let [name, rest @ ..] = tokens else {
            return Err(self.ends("a condition, such as accuracy >= 0.85"));
        };
        let Some(quantity) = Quantity::parse(name.text) else { return Err(self.unknown(*name)) };
        let sign = if quantity.rises() { ">=" } else { "<=" };
        let example = if quantity.is_share() { "0.85" } else { "1.5" };
        let form = format!("{quantity} {sign} {example}");
        let [relation, rest @ ..] = rest else { return Err(self.ends(&format!("{sign}, as in {form}"))) };
        if relation.text != sign {
            let wrong_way = [">=", "<="].contains(&relation.text);
            let why = if !wrong_way {
                format!("is not {sign}; write {form}")
            } else if quantity.rises() {
                format!("is the wrong way round: {quantity} must rise to a level; write {form}")
            } else {
                format!("is the wrong way round: {quantity} must fall to a level; write {form}")
            };
            return Err(self.at(*relation, &why));
        }
        let [level, rest @ ..] = rest else { return Err(self.ends(&format!("a number, as in {form}"))) };
        let number = level.text.parse::<f64>();
        let level = match number {
            _ if level.text == "target" && quantity == Quantity::Accuracy => Level::Target,
            _ if level.text == "target" => {
                return Err(self.at(*level, &format!("is run.target, an accuracy; write {form}")));
            }
            Ok(number) if quantity.is_share() && !(0.0..=1.0).contains(&number) => {
                let hint = if (1.0..=100.0).contains(&number) {
                    format!("for {number} % write {}", (number * 1e6).round() / 1e8)
                } else {
                    format!("write {form}")
                };
                return Err(self.at(*level, &format!("is not a share from 0 to 1; {hint}")));
            }
            Ok(number) if number.is_finite() => Level::Number(number),
            _ => {
                let percent = level.text.strip_suffix('%').and_then(|text| text.parse::<f64>().ok());
                let hint = match percent.filter(|percent| (0.0..=100.0).contains(percent)) {
                    Some(percent) => format!("write {}", (percent * 1e6).round() / 1e8),
                    None => format!("write {form}"),
                };
                return Err(self.at(*level, &format!("is not a finite number; {hint}")));
            }
        };
        Ok((Condition { quantity, level }, rest))
    }

    /// `3 evaluations`, to the end.
    fn evaluations(&self, tokens: &[Token]) -> Result<u64, String> {
        let form = "a number of evaluations, as in `for 3 evaluations`";
        let [number, word, rest @ ..] = tokens else { return Err(self.ends(form)) };
        let count = number.text.parse::<u64>().ok().filter(|count| (1..=MAX_EVALUATIONS).contains(count));
        let Some(count) = count else {
            return Err(self.at(*number, &format!("is not a whole number from 1 to {MAX_EVALUATIONS}")));
        };
        if !["evaluation", "evaluations"].contains(&word.text) {
            let problem = "is not `evaluations`; conditions are checked at evaluations, every \
                           run.evaluate_every rounds";
            return Err(self.at(*word, problem));
        }
        match rest {
            [] => Ok(count),
            [more, ..] => Err(self.at(*more, "follows the end of the goal; remove it")),
        }
    }

    fn unknown(&self, token: Token) -> String {
        let names: Vec<&str> =
            ["accuracy", "loss"].into_iter().chain(RECORDED.iter().map(|recorded| recorded.name)).collect();
        let problem = match token.text {
            "devices" | "device" => {
                "is not a quantity; for every device write worst-device, for the worst tenth worst-tenth"
                    .to_owned()
            }
            "every" | "all" | "classes" | "class" => {
                "is not a quantity; for every class write worst-class, for \
                                                      one of them class-3"
                    .to_owned()
            }
            word => format!("is not a quantity of an evaluation; {}, or class-3", one_of(word, &names)),
        };
        self.at(token, &problem)
    }
}

/// `did you mean X?`, and all names.
fn one_of(word: &str, names: &[&str]) -> String {
    let hint = nearest(word, names.iter().copied())
        .map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("{hint}write one of {}", names.join(", "))
}

/// A plain metric, in one word or in several: `final accuracy`.
fn plain(text: &str, tokens: &[Token]) -> Result<Goal, String> {
    if let [word, ..] = tokens
        && COST_NAMES.iter().any(|(name, _)| *name == word.text && *name != "worst-device-joules")
    {
        return Err(format!(
            "{text:?}: {0} is a cost; write `{0} until accuracy >= 0.85`, or a metric such as total-{0}",
            word.text
        ));
    }
    let words: Vec<&str> = tokens.iter().map(|token| token.text).collect();
    let name = words.join("-");
    let name = match name.as_str() {
        "final-accuracy" => "final",
        "best-accuracy" => "best",
        "final-loss" => "loss",
        "final-worst-class" => "worst-class",
        "final-worst-tenth" => "worst-tenth",
        "final-worst-device" => "worst-device",
        other => other,
    };
    Goal::parse_word(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::{Cost, Metric};
    use proptest::prelude::*;

    fn problem(text: &str) -> String {
        text.parse::<Goal>().unwrap_err().to_string()
    }

    #[test]
    fn a_goal_is_a_cost_until_conditions_hold_for_some_evaluations() {
        let goal: Goal =
            "seconds until accuracy>=0.85 and worst-class >= 0.70 for 3 evaluations".parse().unwrap();
        let Goal::Until(until) = &goal else { panic!("{goal:?}") };
        assert_eq!((until.cost, until.evaluations, until.conditions.len()), (Cost::Seconds, 3, 2));
        assert_eq!(
            goal.to_string(),
            "seconds until accuracy >= 0.85 and worst-class >= 0.7 for 3 evaluations"
        );
        assert!(goal.needs_units());
        assert_eq!(goal.needs_fairness().as_deref(), Some("worst-class"));
        let one: Goal = "rounds until loss <= 0.5 for 1 evaluation".parse().unwrap();
        assert_eq!(one.to_string(), "rounds until loss <= 0.5");
        assert!(!one.needs_units() && one.needs_fairness().is_none());
    }

    #[test]
    fn metrics_are_goals_and_so_are_the_words_of_claims() {
        for (text, metric) in [
            ("final accuracy", Metric::Final),
            ("final", Metric::Final),
            ("final loss", Metric::Loss),
            ("final worst-class", Metric::WorstClass),
            ("total joules", Metric::TotalJoules),
            ("worst-device-joules", Metric::WorstDeviceJoules),
        ] {
            assert_eq!(text.parse::<Goal>().unwrap(), Goal::Plain(metric), "{text}");
        }
        for (text, same) in [
            ("rounds-to-0.9", "rounds until accuracy >= 0.9"),
            ("joules-to-target", "joules until accuracy >= target"),
        ] {
            assert_eq!(text.parse::<Goal>().unwrap(), same.parse().unwrap());
        }
    }

    #[test]
    fn errors_name_the_place_and_the_remedy() {
        for (text, parts) in [
            ("", &["is empty", "write a goal as"][..]),
            ("secondes until accuracy >= 0.8", &["\"secondes\" (character 1)", "did you mean seconds?"]),
            ("seconds until acuracy >= 0.8", &["\"acuracy\" (character 15)", "did you mean accuracy?"]),
            ("seconds accuracy until 0.8", &["\"accuracy\" (character 9)", "`until` must be written"]),
            ("seconds until", &["ends too soon", "such as accuracy >= 0.85"]),
            ("seconds until accuracy", &["ends too soon", ">=, as in accuracy >= 0.85"]),
            ("seconds until accuracy > 0.8", &["\">\" (character 24)", "write accuracy >= 0.85"]),
            ("seconds until accuracy <= 0.8", &["the wrong way round", "must rise"]),
            ("seconds until loss >= 0.8", &["the wrong way round", "must fall", "write loss <= 1.5"]),
            ("seconds until accuracy >= 85", &["is not a share from 0 to 1", "for 85 % write 0.85"]),
            ("seconds until accuracy >= 85%", &["is not a finite number; write 0.85"]),
            ("seconds until accuracy >= x", &["is not a finite number; write accuracy >= 0.85"]),
            ("seconds until loss <= inf", &["is not a finite number"]),
            ("seconds until worst-class >= target", &["run.target, an accuracy"]),
            ("seconds until device >= 0.5", &["write worst-device"]),
            ("seconds until every class >= 0.7", &["\"every\" (character 15)", "write worst-class"]),
            ("seconds until accuracy >= 0.8, loss <= 1", &["\",\" (character 30)", "write `and`"]),
            ("seconds until accuracy >= 0.8 or loss <= 1", &["\"or\" (character 31)", "write `and`"]),
            ("seconds until accuracy >= 0.8 and accuracy >= 0.9", &["accuracy has two conditions"]),
            ("seconds until accuracy >= 0.8 for 0 evaluations", &["is not a whole number from 1"]),
            ("seconds until accuracy >= 0.8 for 3", &["ends too soon", "for 3 evaluations"]),
            (
                "seconds until accuracy >= 0.8 for 3 rounds",
                &["\"rounds\" (character 37)", "run.evaluate_every"],
            ),
            ("seconds until accuracy >= 0.8 for 3 evaluations x", &["\"x\" (character 49)", "remove it"]),
            ("seconds", &["seconds is a cost", "seconds until accuracy >= 0.85"]),
            ("finale", &["\"finale\" is not a metric", "did you mean final?"]),
        ] {
            let message = problem(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{text:?}: {message}");
        }
        assert!(problem(&"x".repeat(2000)).contains("may have 1000 characters"));
    }

    fn goals() -> impl Strategy<Value = String> {
        let cost = proptest::sample::select(COST_NAMES.map(|(name, _)| name).to_vec());
        let level = 0.0..=1.0f64;
        (cost, level, proptest::option::of(0.0..1e6f64), 1u64..9).prop_map(
            |(cost, level, loss, evaluations)| {
                let loss = loss.map_or_else(String::new, |loss| format!(" and loss <= {loss}"));
                let held =
                    if evaluations > 1 { format!(" for {evaluations} evaluations") } else { String::new() };
                format!("{cost} until accuracy >= {level}{loss}{held}")
            },
        )
    }

    proptest! {
        #[test]
        fn a_goal_reads_back_from_its_text(text in goals()) {
            let goal: Goal = text.parse().unwrap();
            prop_assert_eq!(goal.to_string(), text);
        }

        #[test]
        fn no_text_makes_the_parser_panic(
            words in proptest::collection::vec(proptest::sample::select(vec![
                "seconds", "until", "accuracy", ">=", "<=", "0.8", "and", "for", "3", "evaluations", ",", "é",
                "class-", "class-99999999999", "worst-class", "85%", "-1", "nan", "target", "<",
            ]), 0..14),
            spaced: bool,
        ) {
            let text = words.join(if spaced { " " } else { "" });
            if let Ok(goal) = text.parse::<Goal>() {
                prop_assert_eq!(goal.to_string().parse::<Goal>().unwrap(), goal);
            }
        }
    }
}
