//! Every pluggable part: its name, its meaning, its keys, and its construction.
//!
//! A kind of part (policies, fading laws, compressors …) is a trait. [`Kind`] names the key of a
//! configuration that chooses among its parts, and the place of their own tables: `schedule.policy =
//! "bc-bn2"` reads `[schedule.bc-bn2]`. A part is one file with a [`PartConfig`], listed by one line of
//! the kind's [`register!`](crate::register) list. Lists, help, the reference page, hints for misspelled
//! names, Python and the contract tests all iterate these lists.

pub(crate) mod chosen;
pub mod count;
mod custom;
mod hint;
mod range;
mod units;

pub use chosen::{Chosen, Recipe, Resolved, own};
pub use custom::{Factory, Parts, Provenance};
pub use fedlink_derive::keys;
pub use hint::nearest;
pub use range::{Range, Ranged, number, within};
#[doc(hidden)]
pub use serde;
pub(crate) use units::other_unit;
use units::text_for_number;

use crate::shown::bounded;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use toml::{Table, Value};

/// One key of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// `section.name`, or the bare name for a key of a part's own table.
    pub name: &'static str,
    /// The quantity that it sets, with its unit.
    pub meaning: &'static str,
    /// The values that it takes.
    pub allowed: &'static str,
    /// Whether it is the path of a file that the run reads, so that the results depend on the content.
    pub is_file: bool,
    /// Whether it chooses among the parts of a kind.
    pub is_part: bool,
}

impl Key {
    /// A key as the attribute [`keys`](macro@keys) states it, in any crate.
    #[doc(hidden)]
    pub const fn of(
        name: &'static str,
        meaning: &'static str,
        allowed: &'static str,
        is_file: bool,
        is_part: bool,
    ) -> Self {
        Self { name, meaning, allowed, is_file, is_part }
    }
}

/// The keys of a section or of a part's own table.
///
/// The attribute [`keys`](macro@keys) implements it, with `Default` and the traits of serde: each field
/// states its key once. The doc comment is the meaning. `#[key(…)]` takes `default = VALUE` (else that of the
/// type), `range = "> 0 and ≤ 1"` for a number (checked) or `allowed = "…"` in words for other values, `max =
/// NUMBER` for an upper bound that the reference does not state, `unset = VALUE` or `unset_words = "…"` for
/// the value of an `Option` that is left out, `derived = "…"` for a default that depends on the run or on
/// other keys (in words), and `file` for the path of a file that the run reads.
///
/// A derived key has the type of its values, so that a configuration in Rust is `BcBn2 { kc: 20 }`. While it
/// is not set it is 0 or empty, and [`PartConfig::derive`] fills it in. A file in which it is written as 0 or
/// empty is not one in which it is left out: its value is then outside its range.
///
/// ```
/// use fedlink::parts::{Keys, keys};
///
/// /// `[schedule.mine]`.
/// #[keys]
/// #[derive(Clone, Debug)]
/// pub struct Mine {
///     /// β, weight of the age
///     #[key(default = 0.5, range = "0 ..= 1")]
///     pub beta: f64,
/// }
///
/// assert_eq!((Mine::default().beta, Mine::KEYS[0].meaning), (0.5, "β, weight of the age"));
/// let error = Mine { beta: 2.0 }.check().unwrap_err();
/// assert_eq!(error.to_string(), "beta: is 2, but must be in 0..=1");
/// ```
pub trait Keys {
    /// The keys in the order of the fields.
    const KEYS: &'static [Key];

    /// The names of the derived keys.
    const DERIVED: &'static [&'static str];

    /// Checks every value against its range.
    fn check(&self) -> Result<(), ConfigError>;
}

/// A text for a message. It may hold values of a file.
fn brief(text: &str) -> String {
    const LINE: usize = 2000;
    bounded(text, LINE, 2 * LINE)
}

/// The error of a configuration that cannot be run: the key, the problem, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", brief(key), brief(problem))]
pub struct ConfigError {
    /// The key that is wrong, as `section.name` or `section.part.name`.
    pub key: String,
    /// The problem, and the values that are allowed.
    pub problem: String,
}

impl ConfigError {
    /// An error of `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }

    /// The same error of the key `table.key`, if it names a key of a part's own table (one without a dot).
    fn within_table(mut self, table: &str) -> Self {
        if !self.key.contains('.') {
            self.key = format!("{table}.{}", self.key);
        }
        self
    }
}

/// The facts of the run that every part may know when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scope {
    /// M.
    pub devices: u64,
    /// K.
    pub k: u64,
    /// T.
    pub rounds: u64,
    /// B.
    pub samples_per_device: u64,
    /// The run's seed.
    pub seed: u64,
}

impl Default for Scope {
    fn default() -> Self {
        Self { devices: 40, k: 1, rounds: 500, samples_per_device: 1000, seed: 0 }
    }
}

/// A kind of part, implemented by the trait object of its parts.
pub trait Kind: Send + 'static {
    /// The material of a part besides its own table: a data set, or nothing.
    type Material: ?Sized + 'static;
    /// The facts that a part declares. Rules over the whole configuration follow from them. A custom part
    /// that declares nothing has the defaults.
    type Facts: Clone + Default + Debug + Send + Sync;
    /// The material of a part that is built only to read its facts; none for a kind whose parts declare
    /// facts in their configurations.
    const PROBE: Option<&'static Self::Material> = None;
    /// The plural of the kind in lists.
    const PLURAL: &'static str;
    /// The key that chooses among the parts.
    const KEY: &'static str;
    /// The own table of a part is `[TABLE.NAME]`.
    const TABLE: &'static str;

    /// All parts of this kind.
    fn entries() -> &'static [Entry<Self>];

    /// The facts that a part declares.
    fn facts_of(_part: &Self) -> Self::Facts {
        Self::Facts::default()
    }

    /// The declarations of a part with the defaults of its keys, in one line for lists and the reference;
    /// empty if parts of this kind declare nothing.
    fn declared(_entry: &Entry<Self>) -> String {
        String::new()
    }
}

/// The typed configuration of a part: its keys, and the construction of the part from them.
pub trait PartConfig: Keys + Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind of the part.
    type Part: ?Sized + Kind;
    /// The name of the part in a configuration.
    const NAME: &'static str;
    /// The part in one line.
    const MEANING: &'static str;
    /// The family of the part in one word; plots color the parts of a family alike. Empty: no family.
    const FAMILY: &'static str = "";
    /// The name that the part had in earlier versions; empty: it had no other. A configuration that has it is
    /// refused with the name of today, and one in a folder of results is read.
    const FORMER_NAME: &'static str = "";
    /// Raised when the part gives other results than before for the same configuration; the digest of a run
    /// that chooses the part then differs from an earlier one.
    const REVISION: u32 = 1;

    /// The facts of the part, for a kind whose parts declare them before they are built.
    fn facts(&self) -> <Self::Part as Kind>::Facts {
        Default::default()
    }

    /// Refuses a run in which the part cannot be used, though each of its keys is allowed; `self` is
    /// resolved.
    fn fits(&self, _scope: &Scope) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Fills in the derived keys that are not set: those that are 0 or empty.
    fn derive(&mut self, _scope: &Scope) {}

    /// Checks rules between keys; each key is in its range. It may fill in keys of type `Option`.
    fn resolve(&mut self, _scope: &Scope) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The part; `self` is resolved.
    fn build(
        self,
        scope: &Scope,
        material: &<Self::Part as Kind>::Material,
    ) -> Result<Box<Self::Part>, ConfigError>;
}

type Check = fn(&Table) -> Result<(), ConfigError>;
type Written = fn(&Table, &Scope) -> Result<Table, ConfigError>;
type Resolve<T> = fn(&Table, &Scope) -> Resolved<T>;

/// A part in its list.
pub struct Entry<T: ?Sized + Kind> {
    /// The name of the part in a configuration.
    pub name: &'static str,
    /// The part in one line.
    pub meaning: &'static str,
    /// The keys of its own table.
    pub keys: &'static [Key],
    /// The family of the part in one word; empty: no family.
    pub family: &'static str,
    former_name: &'static str,
    revision: u32,
    check: Check,
    recipe: Resolve<T>,
    written: Written,
}

impl<T: ?Sized + Kind> Entry<T> {
    /// The entry of the part that `C` configures.
    pub const fn of<C: PartConfig<Part = T>>() -> Self {
        Self {
            name: C::NAME,
            meaning: C::MEANING,
            keys: C::KEYS,
            family: C::FAMILY,
            former_name: C::FORMER_NAME,
            revision: C::REVISION,
            check: check::<C>,
            recipe: chosen::resolve::<C>,
            written: chosen::table::<C>,
        }
    }

    /// The typed configuration that the own table states, with every default; an error if a key is
    /// unknown or its value is not allowed.
    pub fn choose(&self, own: &Table, scope: &Scope) -> Result<Chosen<T>, ConfigError> {
        check_keys(&self.table(), self.name, self.keys, own)?;
        let recipe = (self.recipe)(own, scope).map_err(|error| error.within_table(&self.table()))?;
        Ok(Chosen::new(self.name, recipe))
    }

    /// The own table with every default written out.
    pub fn resolve(&self, own: &Table, scope: &Scope) -> Result<Table, ConfigError> {
        Ok(self.choose(own, scope)?.table())
    }

    /// The part with all defaults but those in `own`.
    pub fn build(&self, own: &Table, scope: &Scope, material: &T::Material) -> Result<Box<T>, ConfigError> {
        self.choose(own, scope)?.build(scope, material)
    }

    /// `section.name`, the heading of its own table.
    pub fn table(&self) -> String {
        format!("{}.{}", T::TABLE, self.name)
    }
}

/// Checks that every key of `[table]`, the own table of the part `name`, is one of `keys`.
fn check_keys(table: &str, name: &str, keys: &[Key], own: &Table) -> Result<(), ConfigError> {
    check_own_keys(table, name, &keys.iter().map(|key| key.name).collect::<Vec<_>>(), own)
}

/// Checks the names of the keys of `own` against the known ones.
fn check_own_keys(table: &str, name: &str, known: &[&str], own: &Table) -> Result<(), ConfigError> {
    let Some(unknown) = own.keys().find(|key| known.iter().all(|known| known != key)) else {
        return Ok(());
    };
    if let Some(hint) = other_unit(unknown, own.get(unknown), &known.iter().copied()) {
        let hint = hint.replacen("write ", &format!("write {table}."), 1);
        return Err(ConfigError::new(format!("{table}.{unknown}"), format!("is not a key; {hint}")));
    }
    let hint = match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("did you mean {table}.{near}?"),
        None if known.is_empty() => format!("\"{name}\" has no keys of its own"),
        None => format!("\"{name}\" has {}", known.join(", ")),
    };
    Err(ConfigError::new(format!("{table}.{unknown}"), format!("is not a key; {hint}")))
}

/// Whether a derived key is not set.
#[doc(hidden)]
pub fn is_not_set<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whether a derived key of `C` is written as the value of a key that is not set.
fn writes_unset<C: Keys>(own: &Table) -> bool {
    let is_unset = |value: &Value| match value {
        Value::Integer(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::Array(values) => values.is_empty(),
        _ => false,
    };
    C::DERIVED.iter().any(|key| own.get(*key).is_some_and(is_unset))
}

/// The parts of a kind whose facts satisfy `wanted`, for messages: `radio.fading = "a", "b" or "c"`.
pub(crate) fn parts_with<T: ?Sized + Kind>(wanted: impl Fn(&T::Facts) -> bool) -> String {
    let has = |entry: &&Entry<T>| {
        let scope = Scope::default();
        let chosen = entry.choose(&Table::new(), &scope);
        chosen.and_then(|chosen| chosen.facts(&scope)).is_ok_and(|facts| wanted(&facts))
    };
    let names: Vec<String> =
        T::entries().iter().filter(has).map(|entry| format!("\"{}\"", entry.name)).collect();
    let list = match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "a custom part".into(),
    };
    format!("{} = {list}", T::KEY)
}

/// The entry called `name`.
pub fn find<T: ?Sized + Kind>(name: &str) -> Result<&'static Entry<T>, ConfigError> {
    let entries = T::entries();
    entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<[&str; 2]> = entries.iter().map(|entry| [entry.name, entry.former_name]).collect();
        no_such(T::KEY, T::PLURAL, name, &names)
    })
}

/// The error of a name that is not one of the parts among which `key` chooses: `names` has those of today,
/// each with the former one.
fn no_such(key: &str, plural: &str, name: &str, names: &[[&str; 2]]) -> ConfigError {
    if let Some([now, _]) = names.iter().find(|[_, former]| !name.is_empty() && *former == name) {
        return ConfigError::new(key, format!("is \"{name}\", which is now called \"{now}\""));
    }
    let names: Vec<&str> = names.iter().map(|[now, _]| *now).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {}", names.join(", ")),
    };
    ConfigError::new(key, format!("is \"{name}\", which is not one of the {plural}; {hint}"))
}

/// The own table read as `C`.
fn read<C: PartConfig>(own: &Table) -> Result<C, ConfigError> {
    own.clone().try_into().map_err(|error| wrong_type::<C>(own, &error))
}

fn check<C: PartConfig>(own: &Table) -> Result<(), ConfigError> {
    read::<C>(own).map(|_| ())
}

/// The error of the first key that has an invalid value on its own.
fn wrong_type<C: PartConfig>(own: &Table, whole: &toml::de::Error) -> ConfigError {
    let alone = |(key, value): (&String, &Value)| {
        let table = Table::from_iter([(key.clone(), value.clone())]);
        let error = table.try_into::<C>().err()?;
        Some(ConfigError::new(key.clone(), wrong_value(key, value, error.message())))
    };
    own.iter().find_map(alone).unwrap_or_else(|| ConfigError::new(C::NAME, one_line(whole.message())))
}

/// The problem of a value that cannot be read; `message` is the parser's.
pub(crate) fn wrong_value(key: &str, value: &Value, message: &str) -> String {
    let message = one_line(message);
    text_for_number(key, value, &message).unwrap_or(message)
}

/// A parser's message on one line.
pub(crate) fn one_line(message: &str) -> String {
    message.trim().replace('\n', " ")
}

/// A part as in lists.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// Its name in a configuration.
    pub name: &'static str,
    /// The part in one line.
    pub meaning: &'static str,
    /// The keys of its own table.
    #[serde(skip)]
    pub keys: &'static [Key],
    /// Its family in one word; empty: no family.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub family: &'static str,
    /// The name that it had in earlier versions; empty: it had no other.
    #[serde(skip)]
    pub former_name: &'static str,
    #[serde(skip)]
    pub(crate) revision: u32,
    /// Its declarations in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared: String,
}

/// The parts among which one key chooses.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The plural in lists.
    pub plural: &'static str,
    /// The key that chooses.
    pub key: &'static str,
    /// Own tables are `[table.NAME]`.
    pub table: &'static str,
    /// The parts.
    pub parts: Vec<Listed>,
    checks: Vec<Check>,
    tables: Vec<Written>,
}

impl Listing {
    /// The parts of the kind `T`.
    pub fn of<T: ?Sized + Kind>() -> Self {
        let listed = |entry: &Entry<T>| Listed {
            name: entry.name,
            meaning: entry.meaning,
            keys: entry.keys,
            family: entry.family,
            former_name: entry.former_name,
            revision: entry.revision,
            declared: T::declared(entry),
        };
        Self {
            plural: T::PLURAL,
            key: T::KEY,
            table: T::TABLE,
            parts: T::entries().iter().map(listed).collect(),
            checks: T::entries().iter().map(|entry| entry.check).collect(),
            tables: T::entries().iter().map(|entry| entry.written).collect(),
        }
    }

    /// Checks that one of the parts is called `name`.
    pub fn check_name(&self, name: &str) -> Result<(), ConfigError> {
        let names: Vec<[&str; 2]> = self.parts.iter().map(|part| [part.name, part.former_name]).collect();
        if names.iter().any(|[now, _]| *now == name) {
            Ok(())
        } else {
            Err(no_such(self.key, self.plural, name, &names))
        }
    }

    /// Checks the names and the types of the keys of `own` as the own table of part `name`, at any values;
    /// none if there is no such part.
    pub fn check_table(&self, name: &str, own: &Table) -> Option<Result<(), ConfigError>> {
        let index = self.parts.iter().position(|part| part.name == name)?;
        let table = format!("{}.{name}", self.table);
        let named = check_keys(&table, name, self.parts[index].keys, own);
        Some(named.and_then(|()| (self.checks[index])(own).map_err(|error| error.within_table(&table))))
    }

    /// The own table of part `name` with every default written out in `scope`; none if there is no such part.
    pub fn defaults(&self, name: &str, scope: &Scope) -> Option<Table> {
        let index = self.parts.iter().position(|part| part.name == name)?;
        (self.tables[index])(&Table::new(), scope).ok()
    }
}

/// Declares the parts of a kind, one module each: a part is one file and one line of such a list.
///
/// The module of each line must have a constant `ENTRY`.
#[macro_export]
macro_rules! register {
    ($(#[$doc:meta])* $list:ident: $kind:ty; $($(#[$part:meta])* $module:ident,)*) => {
        $($(#[$part])* pub mod $module;)*

        $(#[$doc])*
        pub static $list: &[$crate::parts::Entry<$kind>] = &[$($module::ENTRY,)*];
    };
}

#[cfg(test)]
mod tests;
