//! Custom parts: parts from outside this library, passed the same way to a simulation, a sweep and a
//! server of real nodes.

use super::chosen::{Recipe, Resolved, resolve};
use super::{Chosen, ConfigError, Kind, PartConfig, Scope, check_keys, check_own_keys, find};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toml::{Table, Value};

/// Makes a fresh part for a run, from its own table.
pub type Factory<T> =
    Arc<dyn Fn(&Table, &Scope, &<T as Kind>::Material) -> Result<Box<T>, ConfigError> + Send + Sync>;

/// Reads the own table of a part.
type Reader<T> = Arc<dyn Fn(&Table, &Scope) -> Resolved<T> + Send + Sync>;

/// Custom parts by the names under which a configuration chooses them.
///
/// A part is made anew for every run. Its name goes into labels, configuration and records like that of
/// any other part, and `[custom]` of the configuration records its origin.
///
/// ```
/// use fedlink::prelude::*;
/// use fedlink::schedule::policy::Random;
/// let mut config = Config::default();
/// config.schedule.policy = "mine".into();
/// let parts = Parts::default().policy("mine", "an example", |_, _| Ok(Box::new(Random {})));
/// let spec = config.resolve(&parts).unwrap();
/// assert_eq!(spec.custom["mine"], "an example");
/// ```
#[derive(Clone, Default)]
pub struct Parts(BTreeMap<(&'static str, String), Custom>);

/// The origin of a custom part, its [`Reader`], and its declarations.
#[derive(Clone)]
struct Custom {
    origin: String,
    /// The table of its kind.
    table: &'static str,
    read: Arc<dyn Any + Send + Sync>,
    provenance: Provenance,
}

/// The declarations of a program about a custom part that is made by a function.
///
/// The library has only the origin of such a part: of a part written in Python the origin contains a digest
/// of `texts`, and `texts` shows the difference if the part has changed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Provenance {
    /// The keys of its own table; none: it takes any.
    pub keys: Option<Vec<String>>,
    /// The defaults of its keys, which recorded configurations show.
    pub defaults: Table,
    /// The texts that determine its behavior, by the names of files: sources and arguments. A folder of
    /// results stores them.
    pub texts: BTreeMap<String, String>,
    /// Whether all seeds of a curve get the same from it: a channel that is not drawn.
    pub ignores_seed: bool,
}

impl Parts {
    /// Adds the part that `C` configures, with its keys and facts like those of a built-in part. `origin`
    /// says where it comes from.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "a part is added, nothing is summed")]
    pub fn add<C: PartConfig>(self, origin: impl Into<String>) -> Self {
        let read = |own: &Table, scope: &Scope| {
            let table = format!("{}.{}", C::Part::TABLE, C::NAME);
            check_keys(&table, C::NAME, C::KEYS, own)?;
            resolve::<C>(own, scope).map_err(|error| error.within_table(&table))
        };
        self.insert::<C::Part>(C::NAME.into(), origin.into(), Arc::new(read), Provenance::default())
    }

    /// Adds a part of the kind `T`; `make` makes it from its own table.
    #[must_use]
    pub fn with<T: ?Sized + Kind>(
        self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope, &T::Material) -> Result<Box<T>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        let make: Factory<T> = Arc::new(make);
        let read = move |own: &Table, _: &Scope| -> Resolved<T> {
            Ok(Arc::new(Made { own: own.clone(), make: Arc::clone(&make), first: Mutex::new(None) }))
        };
        self.insert::<T>(name.into(), origin.into(), Arc::new(read), Provenance::default())
    }

    /// Declares more about the parts called `name`: their keys with defaults, and the texts that determine
    /// their behavior.
    ///
    /// ```
    /// use fedlink::parts::{Parts, Provenance};
    /// use fedlink::schedule::policy::Random;
    /// use fedlink::spec::Config;
    /// let mut stated = Provenance::default();
    /// stated.keys = Some(vec!["beta".into()]);
    /// let parts = Parts::default().policy("mine", "an example", |_, _| Ok(Box::new(Random {})));
    /// let parts = parts.stating("mine", &stated);
    /// let mut config = Config::from_toml("[custom]\nmine = \"an example\"").unwrap();
    /// config.set("schedule.policy", "mine").unwrap();
    /// config.set("schedule.mine.betta", 1.0).unwrap();
    /// let error = config.resolve(&parts).unwrap_err().to_string();
    /// assert_eq!(error, "schedule.mine.betta: is not a key; did you mean schedule.mine.beta?");
    /// ```
    #[must_use]
    pub fn stating(mut self, name: &str, provenance: &Provenance) -> Self {
        for ((_, part), custom) in &mut self.0 {
            if part == name {
                custom.provenance = provenance.clone();
            }
        }
        self
    }

    /// Adds a part as it was chosen.
    pub(crate) fn chosen<T: ?Sized + Kind>(self, chosen: &Chosen<T>) -> Self {
        let origin = chosen.origin().unwrap_or("a type of the program").to_owned();
        let recipe = chosen.recipe();
        let path = chosen.path();
        let read = move |own: &Table, scope: &Scope| {
            let resolved = recipe.resolved(own, scope).unwrap_or_else(|| Ok(Arc::clone(&recipe)));
            resolved.map_err(|error| error.within_table(&path))
        };
        let provenance = Provenance { defaults: chosen.defaults().clone(), ..Provenance::default() };
        self.insert::<T>(chosen.name().into(), origin, Arc::new(read), provenance)
    }

    fn insert<T: ?Sized + Kind>(
        mut self,
        name: String,
        origin: String,
        read: Reader<T>,
        provenance: Provenance,
    ) -> Self {
        let custom = Custom { origin, table: T::TABLE, read: Arc::new(read), provenance };
        self.0.insert((T::KEY, name), custom);
        self
    }

    /// The custom part `name` of the kind `T` with its own table, if there is one.
    pub fn choose<T: ?Sized + Kind>(
        &self,
        name: &str,
        own: &Table,
        scope: &Scope,
    ) -> Result<Option<Chosen<T>>, ConfigError> {
        let Some(custom) = self.0.get(&(T::KEY, name.to_owned())) else { return Ok(None) };
        if find::<T>(name).is_ok() {
            let problem =
                format!("is \"{name}\", a custom part with the name of a built-in one; give it another");
            return Err(ConfigError::new(T::KEY, problem));
        }
        let Provenance { keys, defaults, .. } = &custom.provenance;
        if let Some(keys) = keys {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            check_own_keys(&format!("{}.{name}", T::TABLE), name, &keys, own)?;
        }
        let read: &Reader<T> = custom.read.downcast_ref().expect("the key names the kind");
        let chosen = Chosen::new(name, read(own, scope)?).with_defaults(defaults.clone());
        Ok(Some(chosen.from_origin(&custom.origin)))
    }

    /// Whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every part: the key that chooses it, its name and its origin.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str, &str)> {
        self.0.iter().map(|((key, name), custom)| (*key, name.as_str(), custom.origin.as_str()))
    }

    /// Whether the parts called `name` give all seeds the same.
    pub fn ignores_seed(&self, name: &str) -> bool {
        self.0.iter().any(|((_, part), custom)| part == name && custom.provenance.ignores_seed)
    }

    /// Adds a value that the key `key` of `[data]` names and that is no part: a data set.
    pub(crate) fn value<T: Any + Send + Sync>(
        mut self,
        key: &'static str,
        (name, origin): (String, String),
        value: Arc<T>,
    ) -> Self {
        let provenance = Provenance { keys: Some(Vec::new()), ..Provenance::default() };
        let custom = Custom { origin, table: "data", read: value, provenance };
        self.0.insert((key, name), custom);
        self
    }

    /// The value that the key `key` names, if it was added.
    pub(crate) fn value_of<T: Any + Send + Sync>(&self, key: &'static str, name: &str) -> Option<Arc<T>> {
        let custom = self.0.get(&(key, name.to_owned()))?;
        Arc::clone(&custom.read).downcast().ok()
    }

    /// The texts that determine the behavior of the parts called `name`, by the names of files.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let found = self.0.iter().find(|((_, part), _)| part == name);
        let texts = found.map(|(_, custom)| &custom.provenance.texts);
        texts.into_iter().flatten().map(|(file, text)| (file.as_str(), text.as_str()))
    }

    /// The stated defaults of the keys of all parts, as `section.name.key`.
    pub fn defaults(&self) -> impl Iterator<Item = (String, &Value)> {
        self.0.iter().flat_map(|((_, name), custom)| {
            let defaults = custom.provenance.defaults.iter();
            defaults.map(move |(key, value)| (format!("{}.{name}.{key}", custom.table), value))
        })
    }

    /// Names and origins of all parts.
    pub fn origins(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().map(|(_, name, origin)| (name, origin))
    }

    /// The names of all parts, each with the key that chooses it.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.all().map(|(key, name, _)| (key, name))
    }
}

/// The recipe of a factory.
struct Made<T: ?Sized + Kind> {
    own: Table,
    make: Factory<T>,
    /// The part that was made for its facts. The first run with the same scope uses it, since a factory
    /// may have one object only.
    first: Mutex<Option<(Scope, Box<T>)>>,
}

impl<T: ?Sized + Kind> Recipe<T> for Made<T> {
    fn table(&self) -> Table {
        self.own.clone()
    }

    fn facts(&self, scope: &Scope) -> Result<T::Facts, ConfigError> {
        match T::PROBE {
            Some(material) => {
                let part = (self.make)(&self.own, scope, material)?;
                let facts = T::facts_of(&*part);
                *self.first() = Some((*scope, part));
                Ok(facts)
            }
            None => Ok(T::Facts::default()),
        }
    }

    fn fits(&self, _: &Scope) -> Result<(), ConfigError> {
        Ok(())
    }

    fn build(&self, scope: &Scope, material: &T::Material) -> Result<Box<T>, ConfigError> {
        match self.first().take_if(|(made_for, _)| made_for == scope) {
            Some((_, part)) => Ok(part),
            None => (self.make)(&self.own, scope, material),
        }
    }
}

impl<T: ?Sized + Kind> Made<T> {
    fn first(&self) -> MutexGuard<'_, Option<(Scope, Box<T>)>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
