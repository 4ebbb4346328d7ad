//! Arithmetic over t, mu and tau, parsed from text.
//!
//! The parser is our own because the functions must come from `libm` (equal results on every machine),
//! and because a text from a command line must take time, memory and stack in proportion to its length
//! only.

use super::TheoryError;
use std::fmt;

/// The length of the longest accepted text, in characters.
const MAX_LENGTH: usize = 1000;
/// Deepest nesting of parentheses, signs and powers.
const MAX_DEPTH: usize = 50;

/// A formula such as `1000/(3*(t+1000))`: numbers, `t`, `mu`, `tau`, `+ - * / ^`, parentheses, and
/// `sqrt`, `exp`, `log`, `min`, `max`. A power binds tighter than a sign before it and groups from the
/// right: `-2^2 = -4`, `2^3^2 = 512`.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    /// In the order of a stack machine, so that evaluation needs no recursion.
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Number(f64),
    T,
    Mu,
    Tau,
    Negate,
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

impl Expression {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Self, TheoryError> {
        let mut parser = Parser { characters: text.chars().collect(), at: 0, depth: 0, steps: Vec::new() };
        let result = parser.whole();
        result.map_err(|(position, problem)| {
            let text = text.chars().take(MAX_LENGTH).collect();
            TheoryError::Expression { text, position: position + 1, problem }
        })?;
        Ok(Self { text: text.to_owned(), steps: parser.steps })
    }

    /// The value at round t. Division by zero and similar cases give an infinite or undefined number,
    /// never a panic.
    pub fn evaluate(&self, t: f64, mu: f64, tau: f64) -> f64 {
        let mut stack: Vec<f64> = Vec::with_capacity(16);
        for step in &self.steps {
            let value = match *step {
                Step::Number(value) => value,
                Step::T => t,
                Step::Mu => mu,
                Step::Tau => tau,
                Step::Negate => -stack.pop().unwrap_or(f64::NAN),
                Step::One(function) => function(stack.pop().unwrap_or(f64::NAN)),
                Step::Two(function) => {
                    let right = stack.pop().unwrap_or(f64::NAN);
                    function(stack.pop().unwrap_or(f64::NAN), right)
                }
            };
            stack.push(value);
        }
        stack.pop().unwrap_or(f64::NAN)
    }
}

/// Equality of formulas is equality of texts.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Parser {
    characters: Vec<char>,
    at: usize,
    depth: usize,
    steps: Vec<Step>,
}

/// The position and the message.
type Problem = (usize, String);

impl Parser {
    fn whole(&mut self) -> Result<(), Problem> {
        if self.characters.len() > MAX_LENGTH {
            return Err((
                MAX_LENGTH,
                format!("an expression may have {MAX_LENGTH} characters; this one is longer"),
            ));
        }
        self.sum()?;
        match self.peek() {
            None => Ok(()),
            Some(other) => Err((self.at, format!("expected an operator or the end, found '{other}'"))),
        }
    }

    fn sum(&mut self) -> Result<(), Problem> {
        self.product()?;
        while let Some(sign @ ('+' | '-')) = self.peek() {
            self.at += 1;
            self.product()?;
            self.steps.push(Step::Two(if sign == '+' { |a, b| a + b } else { |a, b| a - b }));
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), Problem> {
        self.signed()?;
        while let Some(sign @ ('*' | '/')) = self.peek() {
            self.at += 1;
            self.signed()?;
            self.steps.push(Step::Two(if sign == '*' { |a, b| a * b } else { |a, b| a / b }));
        }
        Ok(())
    }

    /// Every deeper level of nesting passes through this function.
    fn signed(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((self.at, format!("nested deeper than {MAX_DEPTH}")));
        }
        match self.peek() {
            Some(sign @ ('+' | '-')) => {
                self.at += 1;
                self.signed()?;
                if sign == '-' {
                    self.steps.push(Step::Negate);
                }
            }
            _ => self.power()?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn power(&mut self) -> Result<(), Problem> {
        self.atom()?;
        if self.peek() == Some('^') {
            self.at += 1;
            self.signed()?;
            self.steps.push(Step::Two(libm::pow));
        }
        Ok(())
    }

    fn atom(&mut self) -> Result<(), Problem> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.sum()?;
                self.expect(')')
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.name(),
            Some(other) => Err((self.at, format!("expected a number, t, mu, tau or '(', found '{other}'"))),
            None => Err((self.at, "expected a number, t, mu, tau or '(', found the end".into())),
        }
    }

    fn number(&mut self) -> Result<(), Problem> {
        let start = self.at;
        self.skip(|c| c.is_ascii_digit() || c == '.');
        if matches!(self.characters.get(self.at), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.characters.get(self.at), Some('+' | '-')) {
                self.at += 1;
            }
            self.skip(|c| c.is_ascii_digit());
        }
        let text: String = self.characters[start..self.at].iter().collect();
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => self.steps.push(Step::Number(value)),
            _ => return Err((start, format!("{text:?} is not a finite number"))),
        }
        Ok(())
    }

    fn name(&mut self) -> Result<(), Problem> {
        let start = self.at;
        self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
        let name: String = self.characters[start..self.at].iter().collect();
        let (arguments, step) = match name.as_str() {
            "t" => (0, Step::T),
            "mu" => (0, Step::Mu),
            "tau" => (0, Step::Tau),
            "sqrt" => (1, Step::One(libm::sqrt)),
            "exp" => (1, Step::One(libm::exp)),
            "log" => (1, Step::One(libm::log)),
            "min" => (2, Step::Two(f64::min)),
            "max" => (2, Step::Two(f64::max)),
            _ => {
                let known = "t, mu, tau, sqrt(), exp(), log(), min(,) and max(,)";
                return Err((start, format!("{name:?} is not known; there are {known}")));
            }
        };
        if arguments > 0 {
            self.expect('(')?;
            self.sum()?;
            if arguments == 2 {
                self.expect(',')?;
                self.sum()?;
            }
            self.expect(')')?;
        }
        self.steps.push(step);
        Ok(())
    }

    fn expect(&mut self, wanted: char) -> Result<(), Problem> {
        match self.peek() {
            Some(found) if found == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(found) => Err((self.at, format!("expected '{wanted}', found '{found}'"))),
            None => Err((self.at, format!("expected '{wanted}', found the end"))),
        }
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.skip(char::is_whitespace);
        self.characters.get(self.at).copied()
    }

    fn skip(&mut self, belongs: impl Fn(char) -> bool) {
        while self.characters.get(self.at).is_some_and(|&c| belongs(c)) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> f64 {
        Expression::parse(text).unwrap().evaluate(7.0, 0.5, 3.0)
    }

    fn problem(text: &str) -> String {
        Expression::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn arithmetic_follows_the_standard_rules() {
        let cases = [
            ("1000/(3*(t+1000))", 1000.0 / (3.0 * 1007.0)),
            ("1000/(mu*tau*(t+1000))", 1000.0 / (1.5 * 1007.0)),
            ("1-2-3", -4.0),
            ("24/4/2", 3.0),
            ("2+3*4", 14.0),
            ("-2^2", -4.0),
            ("2^-1", 0.5),
            ("2^3^2", 512.0),
            ("(2^3)^2", 64.0),
            ("--3", 3.0),
            (" 1.5e2 + .5 ", 150.5),
            ("min(t, 2*tau) + max(1,mu)", 7.0),
            ("sqrt(9)+log(exp(2))", 5.0),
            ("2*-t", -14.0),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn an_undefined_value_is_not_finite_and_does_not_panic() {
        for text in ["1/0", "log(-1)", "sqrt(0-1)", "1/(t-7)", "9^9^9"] {
            assert!(!value(text).is_finite(), "{text}");
        }
    }

    #[test]
    fn errors_state_the_problem_and_its_position() {
        let cases = [
            ("", "expected a number, t, mu, tau or '(', found the end at character 1"),
            ("1+", "found the end at character 3"),
            ("(1", "expected ')', found the end at character 3"),
            ("1)", "expected an operator or the end, found ')' at character 2"),
            ("2 t", "expected an operator or the end, found 't' at character 3"),
            ("3*eta", "\"eta\" is not known; there are t, mu, tau"),
            ("min(1)", "expected ',', found ')' at character 6"),
            ("sqrt 4", "expected '(', found '4' at character 6"),
            ("1.2.3", "\"1.2.3\" is not a finite number at character 1"),
            ("1e999", "\"1e999\" is not a finite number"),
            ("1e", "\"1e\" is not a finite number"),
            ("η", "found 'η' at character 1"),
        ];
        for (text, part) in cases {
            assert!(problem(text).contains(part), "{text:?}: {}", problem(text));
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        assert!(problem(&format!("{}1{}", "(".repeat(400), ")".repeat(400))).contains("nested deeper"));
        assert!(problem(&"-".repeat(900)).contains("nested deeper"));
        assert!(problem(&format!("1{}", "^1".repeat(400))).contains("nested deeper"));
        assert!(problem(&"1+".repeat(2_000_000)).contains("1000 characters"));
        assert_eq!(value(&format!("1{}", "+1".repeat(499))), 500.0);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[ -~η0-9t+*/^().,]{0,60}") {
            if let Ok(expression) = Expression::parse(&text) {
                let _ = expression.evaluate(1.0, 1.0, 1.0);
            }
        }

        #[test]
        fn numbers_read_as_rust_reads_them(number in 0.0..1e300f64) {
            prop_assert_eq!(value(&format!("{number:e}")), number);
            prop_assert_eq!(value(&format!("{number}")), number);
        }
    }
}
