//! From the text of a claim to its parts.

use super::curves::Selector;
use super::decide::Order;
use super::{Claim, Right, Side};
use crate::goals::{Goal, Unit};

/// Longest claim that is read, in bytes.
const MAX_LENGTH: usize = 1000;
/// The word for all curves but the one on the left.
const OTHERS: &str = "others";

/// Reads a claim. With a `goal`, its sides are selectors without a metric.
pub(super) fn claim(name: &str, text: &str, goal: Option<&str>) -> Result<Claim, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("a claim may have {MAX_LENGTH} characters; this one has {}", text.len()));
    }
    let form = match goal {
        Some(_) => "with a goal, write a claim as \"bn2-c@k=1 < bc@k=1\" or \"k=10 < 30 for every policy\"",
        None => {
            "write a claim as \"bn2-c@k=1 final > bc@k=1 final\" or \"k=10 final < 0.9 for every policy\""
        }
    };
    let shared =
        goal.map(str::parse::<Goal>).transpose().map_err(|error| format!("goal {}", error.problem))?;
    let signs: Vec<usize> = text.match_indices(['<', '>']).map(|(index, _)| index).collect();
    let [sign] = signs[..] else {
        return Err(format!("{text:?} must have one > or <; {form}"));
    };
    let (left, rest) = (&text[..sign], &text[sign + 1..]);
    if rest.starts_with('=') {
        return Err(format!("{text:?}: write > or <; an interval cannot distinguish them from ≥ and ≤"));
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let end = words.iter().position(|word| *word == "for").unwrap_or(words.len());
    let every = match &words[end..] {
        [] => Vec::new(),
        ["for", "every", names @ ..] => names_of(&names.join(" "))?,
        _ => return Err(format!("{text:?}: after `for` comes `every`, then names of keys; {form}")),
    };
    let left = side(left, shared.as_ref())?;
    if left.others {
        return Err(format!(
            "{text:?}: `{OTHERS}` is allowed on the right only, for all curves but the left one"
        ));
    }
    let right = match words[..end] {
        [] => return Err(format!("{text:?} has nothing after the {}; {form}", &text[sign..=sign])),
        [word] if word.parse::<f64>().is_ok() => Right::Number(number(word, &left.goal)?),
        _ => Right::Side(side(&words[..end].join(" "), shared.as_ref())?),
    };
    if let Right::Side(right) = &right
        && right.goal.unit() != left.goal.unit()
    {
        return Err(format!("{} and {} cannot be compared: their units differ", left.goal, right.goal));
    }
    let order = if text[sign..].starts_with('>') { Order::Above } else { Order::Below };
    let goal = shared.map(|goal| goal.to_string());
    Ok(Claim { name: name.to_owned(), text: text.to_owned(), goal, left, order, right, every })
}

/// `1.1 * bc@k=1 others final`: the last word is the metric, the words before it are the selector. Without a
/// metric if the claim has a goal.
fn side(text: &str, shared: Option<&Goal>) -> Result<Side, String> {
    let (factor, rest) = factor(text)?;
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let goal = match (shared, words.pop_if(|_| shared.is_none())) {
        (Some(goal), _) => goal.clone(),
        (None, Some(word)) => Goal::parse_word(word)?,
        (None, None) => return Err("a side is a selector and a metric, such as bc@k=1 final".into()),
    };
    if let (Some(goal), Some(word)) = (shared, words.last())
        && words.len() > 1
        && *word != OTHERS
        && Goal::parse_word(word).is_ok()
    {
        return Err(format!("the goal is {goal}; leave {word} out of the claim"));
    }
    let others = words.pop_if(|word| *word == OTHERS).is_some();
    Ok(Side { factor, goal, others, selector: Selector::parse(&words.join(" "))? })
}

/// The number before a `*`, and the rest. A `*` after other text may be part of a value.
fn factor(text: &str) -> Result<(f64, &str), String> {
    let Some((number, rest)) = text.split_once('*') else { return Ok((1.0, text)) };
    match number.trim().parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok((factor, rest)),
        Ok(_) => Err(format!(
            "the factor {} must be a finite number above 0, as in 1.1 * k=5 bound",
            number.trim()
        )),
        Err(_) => Ok((1.0, text)),
    }
}

fn number(word: &str, goal: &Goal) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(number) if goal.unit() == Unit::Share && number.abs() > 1.0 => {
            Err(format!("{goal} is a share from 0 to 1, {word} is not; for 90 % write 0.9"))
        }
        Ok(number) if goal.metric().is_none() && number <= 0.0 => {
            Err(format!("{goal} is a cost; {word} must be above 0"))
        }
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("{word:?} is not a finite number")),
    }
}

fn names_of(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    let twice = (1..names.len()).find(|&i| names[..i].contains(&names[i]));
    match twice {
        _ if names.iter().any(String::is_empty) => {
            Err("`for every` needs names of keys with commas between them, such as policy, k".into())
        }
        Some(i) => Err(format!("`for every` names {} twice", names[i])),
        None => Ok(names),
    }
}
