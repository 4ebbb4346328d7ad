//! Every pluggable part by name: what it is called, what it means, which keys it has, and how it is built.
//!
//! A kind of part (policies, fading laws, compressors …) is a trait; [`Kind`] names which key of a
//! configuration chooses among its parts and where their own tables stand: `schedule.policy = "bc-bn2"` reads
//! `[schedule.bc-bn2]`. A part is one file with a [`PartConfig`], listed by one line of the kind's
//! [`register!`](crate::register) list. Lists, help, the reference page, hints for misspelled names, Python
//! and the contract tests all iterate these lists.

pub mod count;
mod hint;
mod limits;

pub use hint::nearest;
pub use limits::{number, within};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// One key of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// `section.name`, or the bare name for a key of a part's own table.
    pub name: &'static str,
    /// What it sets, with its unit.
    pub meaning: &'static str,
    /// Which values it takes.
    pub allowed: &'static str,
    /// Whether it is the path of a file that the run reads, on whose content the results then depend.
    pub is_file: bool,
}

/// A [`Key`] as a constant, for the lists of parts.
pub const fn key(name: &'static str, meaning: &'static str, allowed: &'static str) -> Key {
    Key { name, meaning, allowed, is_file: false }
}

/// As [`key`], for the path of a file that the run reads.
pub const fn file_key(name: &'static str, meaning: &'static str, allowed: &'static str) -> Key {
    Key { name, meaning, allowed, is_file: true }
}

/// A configuration that cannot be run: which key, what is wrong, what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key at fault, as `section.name` or `section.part.name`.
    pub key: String,
    /// What is wrong with it and which values are allowed.
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

/// What every part may know of the run that it is built for.
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

/// A kind of part, implemented by the trait object that its parts become.
pub trait Kind: 'static {
    /// What a part is built from besides its own table: a data set, or nothing.
    type Material: ?Sized;
    /// The plural by which lists know the kind.
    const PLURAL: &'static str;
    /// The key that chooses among the parts.
    const KEY: &'static str;
    /// The own table of a part is `[TABLE.NAME]`.
    const TABLE: &'static str;

    /// All parts of this kind.
    fn entries() -> &'static [Entry<Self>];

    /// What a part declares of itself, with the defaults of its keys: one line for lists and the reference.
    /// Empty: parts of this kind declare nothing.
    fn declared(_entry: &Entry<Self>) -> String {
        String::new()
    }
}

/// A part's own table: its keys with their defaults, and how the part is built from them.
pub trait PartConfig: Default + Serialize + DeserializeOwned + 'static {
    /// What is built.
    type Part: ?Sized + Kind;
    /// How the part is called in a configuration.
    const NAME: &'static str;
    /// What it is, in one line.
    const MEANING: &'static str;
    /// Its keys: the fields of the table.
    const KEYS: &'static [Key] = &[];
    /// What it goes by, in one word; plots color the parts of a family alike. Empty: of none.
    const FAMILY: &'static str = "";

    /// Refuses a run that the part cannot be in, though each of its keys is allowed; `self` is resolved.
    fn fits(&self, _scope: &Scope) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Fills in what is left to a rule and checks the rest; keys of the own table are named bare.
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
type Resolve = fn(&Table, &Scope) -> Result<Table, ConfigError>;
type Build<T> = fn(&Table, &Scope, &<T as Kind>::Material) -> Result<Box<T>, ConfigError>;

/// A part in its list.
pub struct Entry<T: ?Sized + Kind> {
    /// How the part is called in a configuration.
    pub name: &'static str,
    /// What it is, in one line.
    pub meaning: &'static str,
    /// The keys of its own table.
    pub keys: &'static [Key],
    /// What it goes by, in one word; empty: of no family.
    pub family: &'static str,
    check: Check,
    fits: Resolve,
    resolve: Resolve,
    build: Build<T>,
}

impl<T: ?Sized + Kind> Entry<T> {
    /// The entry of the part that `C` configures.
    pub const fn of<C: PartConfig<Part = T>>() -> Self {
        Self {
            name: C::NAME,
            meaning: C::MEANING,
            keys: C::KEYS,
            family: C::FAMILY,
            check: check::<C>,
            fits: fits::<C>,
            resolve: resolve::<C>,
            build: build::<C>,
        }
    }

    /// The own table with every default written out; an error if a key is unknown or its value not allowed.
    pub fn resolve(&self, own: &Table, scope: &Scope) -> Result<Table, ConfigError> {
        self.check_keys(own)?;
        (self.resolve)(own, scope).map_err(|error| error.within_table(&self.table()))
    }

    /// As [`Entry::resolve`]; an error too for a run that the part cannot be in.
    pub fn fits(&self, own: &Table, scope: &Scope) -> Result<Table, ConfigError> {
        self.check_keys(own)?;
        (self.fits)(own, scope).map_err(|error| error.within_table(&self.table()))
    }

    /// The part.
    pub fn build(&self, own: &Table, scope: &Scope, material: &T::Material) -> Result<Box<T>, ConfigError> {
        self.check_keys(own)?;
        (self.build)(own, scope, material).map_err(|error| error.within_table(&self.table()))
    }

    /// `section.name`, the heading of its own table.
    pub fn table(&self) -> String {
        format!("{}.{}", T::TABLE, self.name)
    }

    fn check_keys(&self, own: &Table) -> Result<(), ConfigError> {
        check_keys(&self.table(), self.name, self.keys, own)
    }
}

/// Checks that every key of `[table]`, the own table of the part `name`, is one of `keys`.
fn check_keys(table: &str, name: &str, keys: &[Key], own: &Table) -> Result<(), ConfigError> {
    let Some(unknown) = own.keys().find(|key| keys.iter().all(|known| known.name != *key)) else {
        return Ok(());
    };
    let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let hint = match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("did you mean {table}.{near}?"),
        None if known.is_empty() => format!("\"{name}\" has no keys of its own"),
        None => format!("\"{name}\" has {}", known.join(", ")),
    };
    Err(ConfigError::new(format!("{table}.{unknown}"), format!("is not a key; {hint}")))
}

/// The entry called `name`.
pub fn find<T: ?Sized + Kind>(name: &str) -> Result<&'static Entry<T>, ConfigError> {
    let entries = T::entries();
    entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        no_such(T::KEY, T::PLURAL, name, &names)
    })
}

/// The error of a name that none of the parts has which `key` chooses among.
fn no_such(key: &str, plural: &str, name: &str, names: &[&str]) -> ConfigError {
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

/// The own table read as `C` and resolved.
fn resolved<C: PartConfig>(own: &Table, scope: &Scope) -> Result<C, ConfigError> {
    let mut config: C = read(own)?;
    config.resolve(scope)?;
    Ok(config)
}

fn fits<C: PartConfig>(own: &Table, scope: &Scope) -> Result<Table, ConfigError> {
    let config = resolved::<C>(own, scope)?;
    config.fits(scope)?;
    written(&config)
}

fn resolve<C: PartConfig>(own: &Table, scope: &Scope) -> Result<Table, ConfigError> {
    written(&resolved::<C>(own, scope)?)
}

/// The own table of a part.
fn written<C: PartConfig>(config: &C) -> Result<Table, ConfigError> {
    Table::try_from(config).map_err(|error| ConfigError::new(C::NAME, error.to_string()))
}

fn build<C: PartConfig>(
    own: &Table,
    scope: &Scope,
    material: &<C::Part as Kind>::Material,
) -> Result<Box<C::Part>, ConfigError> {
    resolved::<C>(own, scope)?.build(scope, material)
}

/// The error of the first key whose value alone cannot be read.
fn wrong_type<C: PartConfig>(own: &Table, whole: &toml::de::Error) -> ConfigError {
    let alone = |(key, value): (&String, &Value)| {
        let table = Table::from_iter([(key.clone(), value.clone())]);
        let error = table.try_into::<C>().err()?;
        Some(ConfigError::new(key.clone(), one_line(error.message())))
    };
    own.iter().find_map(alone).unwrap_or_else(|| ConfigError::new(C::NAME, one_line(whole.message())))
}

/// A parser's message on one line.
pub(crate) fn one_line(message: &str) -> String {
    message.trim().replace('\n', " ")
}

/// A part as lists show it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// How it is written in a configuration.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// The keys of its own table.
    #[serde(skip)]
    pub keys: &'static [Key],
    /// What it goes by, in one word; empty: of no family.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub family: &'static str,
    /// What it declares of itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared: String,
}

/// The parts that one key chooses from.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The plural by which lists know them.
    pub plural: &'static str,
    /// The key that chooses.
    pub key: &'static str,
    /// Own tables are `[table.NAME]`.
    pub table: &'static str,
    /// What there is.
    pub parts: Vec<Listed>,
    checks: Vec<Check>,
    resolvers: Vec<Resolve>,
}

impl Listing {
    /// The parts of the kind `T`.
    pub fn of<T: ?Sized + Kind>() -> Self {
        let listed = |entry: &Entry<T>| Listed {
            name: entry.name,
            meaning: entry.meaning,
            keys: entry.keys,
            family: entry.family,
            declared: T::declared(entry),
        };
        Self {
            plural: T::PLURAL,
            key: T::KEY,
            table: T::TABLE,
            parts: T::entries().iter().map(listed).collect(),
            checks: T::entries().iter().map(|entry| entry.check).collect(),
            resolvers: T::entries().iter().map(|entry| entry.resolve).collect(),
        }
    }

    /// Checks that one of the parts is called `name`.
    pub fn check_name(&self, name: &str) -> Result<(), ConfigError> {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name).collect();
        if names.contains(&name) { Ok(()) } else { Err(no_such(self.key, self.plural, name, &names)) }
    }

    /// Checks the names and the types of the keys of `own` as the own table of part `name`, whatever their
    /// values; none if there is no such part.
    pub fn check_table(&self, name: &str, own: &Table) -> Option<Result<(), ConfigError>> {
        let index = self.parts.iter().position(|part| part.name == name)?;
        let table = format!("{}.{name}", self.table);
        let named = check_keys(&table, name, self.parts[index].keys, own);
        Some(named.and_then(|()| (self.checks[index])(own).map_err(|error| error.within_table(&table))))
    }

    /// The own table of part `name` with every default written out in `scope`; none if there is no such part.
    pub fn defaults(&self, name: &str, scope: &Scope) -> Option<Table> {
        let index = self.parts.iter().position(|part| part.name == name)?;
        (self.resolvers[index])(&Table::new(), scope).ok()
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
        pub static $list: &[$crate::registry::Entry<$kind>] = &[$($module::ENTRY,)*];
    };
}

#[cfg(test)]
mod tests;
