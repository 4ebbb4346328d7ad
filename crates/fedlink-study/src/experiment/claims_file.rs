//! `[claims]` and `[expected]` of a file on their own.

use super::source::Source;
use crate::claims::{Claims, Expected};
use crate::error::Error;
use fedlink::spec::{ConfigError, located, syntax_error};
use toml::{Table, Value};

/// `[claims]` and `[expected]` of a file, to be judged by the curves of another experiment. The other
/// sections of the file are ignored and need not be there.
#[derive(Clone, Debug)]
pub struct ClaimsFile {
    /// The preset or file, for messages.
    pub name: String,
    pub(crate) claims: Claims,
    pub(crate) expected: Vec<(String, Expected)>,
}

impl ClaimsFile {
    /// The claims of the preset called `name`, or otherwise of the file.
    pub fn open(name: &str) -> Result<Self, Error> {
        Ok(Self::parse(name, &Source::open(name)?.text)?)
    }

    /// Parses a file; messages call it `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut file: Table = toml::from_str(text).map_err(|error| syntax_error(name, text, &error))?;
        let mut section = |section: &str| match file.remove(section) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table),
            Some(_) => Err(ConfigError::new(section, format!("must be a section: write [{section}]"))),
        };
        let mut parse = || {
            let claims = Claims::parse(section("claims")?, &section("goals")?)?;
            let expected = Expected::parse_all(section("expected")?)?;
            if claims.list.is_empty() && expected.is_empty() {
                return Err(ConfigError::new("claims", "the file has neither claims nor expected values"));
            }
            Ok(Self { name: name.to_owned(), claims, expected })
        };
        parse().map_err(|error| located(name, text, error))
    }

    /// Whether it has published final accuracies, which only runs of the system have.
    pub fn expects(&self) -> bool {
        !self.expected.is_empty()
    }
}
