//! The part that a configuration chooses, as its typed configuration.

use super::{ConfigError, Kind, PartConfig, Scope, read, writes_unset};
use std::sync::{Arc, Mutex, PoisonError};
use toml::Table;

/// A resolved recipe, or the error of a key.
pub type Resolved<T> = Result<Arc<dyn Recipe<T>>, ConfigError>;

/// Makes parts for runs: the typed configuration of a part, a factory of custom parts, or one object.
pub trait Recipe<T: ?Sized + Kind>: Send + Sync {
    /// The own table with every default written out.
    fn table(&self) -> Table;

    /// The recipe of the same part with the keys of `own`, checked and resolved for a run; none if the part
    /// has no keys.
    fn resolved(&self, _own: &Table, _scope: &Scope) -> Option<Resolved<T>> {
        None
    }

    /// The facts that the part declares.
    fn facts(&self, scope: &Scope) -> Result<T::Facts, ConfigError>;

    /// Refuses a run in which the part cannot be used.
    fn fits(&self, scope: &Scope) -> Result<(), ConfigError>;

    /// A part for a run.
    fn build(&self, scope: &Scope, material: &T::Material) -> Result<Box<T>, ConfigError>;
}

/// The part that a key chooses, resolved: its name and its typed configuration.
pub struct Chosen<T: ?Sized + Kind> {
    name: String,
    origin: Option<String>,
    /// The defaults of keys that the recipe does not know.
    defaults: Table,
    recipe: Arc<dyn Recipe<T>>,
}

impl<T: ?Sized + Kind> Clone for Chosen<T> {
    fn clone(&self) -> Self {
        let (defaults, recipe) = (self.defaults.clone(), Arc::clone(&self.recipe));
        Self { name: self.name.clone(), origin: self.origin.clone(), defaults, recipe }
    }
}

impl<T: ?Sized + Kind> Chosen<T> {
    /// The part of this recipe under a name.
    pub fn new(name: impl Into<String>, recipe: Arc<dyn Recipe<T>>) -> Self {
        Self { name: name.into(), origin: None, defaults: Table::new(), recipe }
    }

    /// The same with defaults of its own table that the recipe does not know.
    #[must_use]
    pub(super) fn with_defaults(self, defaults: Table) -> Self {
        Self { defaults, ..self }
    }

    /// The defaults that the recipe does not know.
    pub(super) fn defaults(&self) -> &Table {
        &self.defaults
    }

    /// The same as a custom part with its origin.
    #[must_use]
    pub fn from_origin(self, origin: impl Into<String>) -> Self {
        Self { origin: Some(origin.into()), ..self }
    }

    /// The name by which a configuration chooses the part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The own table of the part with every default written out.
    pub fn table(&self) -> Table {
        let mut table = self.defaults.clone();
        table.extend(self.recipe.table());
        table
    }

    /// `section.name`, the heading of the own table.
    pub fn path(&self) -> String {
        format!("{}.{}", T::TABLE, self.name)
    }

    /// The facts that the part declares.
    pub fn facts(&self, scope: &Scope) -> Result<T::Facts, ConfigError> {
        self.recipe.facts(scope).map_err(|error| error.within_table(&self.path()))
    }

    /// The origin of the part if it is a custom one.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The recipe of the part.
    pub(crate) fn recipe(&self) -> Arc<dyn Recipe<T>> {
        Arc::clone(&self.recipe)
    }

    /// Whether the part is a custom one.
    pub fn is_custom(&self) -> bool {
        self.origin().is_some()
    }

    /// Refuses a run in which the part cannot be used.
    pub fn fits(&self, scope: &Scope) -> Result<(), ConfigError> {
        self.recipe.fits(scope).map_err(|error| error.within_table(&self.path()))
    }

    /// A part for a run.
    pub fn build(&self, scope: &Scope, material: &T::Material) -> Result<Box<T>, ConfigError> {
        self.recipe.build(scope, material).map_err(|error| error.within_table(&self.path()))
    }
}

impl<C: PartConfig> From<C> for Chosen<C::Part> {
    fn from(config: C) -> Self {
        Self::new(C::NAME, Arc::new(Typed(config)))
    }
}

/// The recipe of a typed configuration.
struct Typed<C>(C);

impl<C: PartConfig> Recipe<C::Part> for Typed<C> {
    fn table(&self) -> Table {
        Table::try_from(&self.0).expect("the configuration of a part is a table")
    }

    fn resolved(&self, own: &Table, scope: &Scope) -> Option<Resolved<C::Part>> {
        Some(resolve::<C>(own, scope))
    }

    fn facts(&self, scope: &Scope) -> Result<<C::Part as Kind>::Facts, ConfigError> {
        match C::Part::PROBE {
            Some(material) => {
                // The part is built for its facts, for at most 1000 devices, to save time.
                let devices = scope.devices.min(1000);
                let few = Scope { devices, k: scope.k.min(devices), ..*scope };
                Ok(C::Part::facts_of(&*self.build(&few, material)?))
            }
            None => Ok(self.0.facts()),
        }
    }

    fn fits(&self, scope: &Scope) -> Result<(), ConfigError> {
        self.0.fits(scope)
    }

    fn build(
        &self,
        scope: &Scope,
        material: &<C::Part as Kind>::Material,
    ) -> Result<Box<C::Part>, ConfigError> {
        self.0.clone().build(scope, material)
    }
}

/// The own table read as `C`, checked against its ranges and resolved.
fn typed<C: PartConfig>(own: &Table, scope: &Scope) -> Result<Typed<C>, ConfigError> {
    let mut config: C = read(own)?;
    // A derived key that is written as 0 stays 0, and the checks refuse it.
    if !writes_unset::<C>(own) {
        config.derive(scope);
    }
    config.check()?;
    config.resolve(scope)?;
    Ok(Typed(config))
}

pub(super) fn resolve<C: PartConfig>(own: &Table, scope: &Scope) -> Resolved<C::Part> {
    Ok(Arc::new(typed::<C>(own, scope)?))
}

pub(super) fn table<C: PartConfig>(own: &Table, scope: &Scope) -> Result<Table, ConfigError> {
    Ok(typed::<C>(own, scope)?.table())
}

/// One object as a part: `own("mine", policy)`. One run can use it.
///
/// A part that several runs use has a [`PartConfig`], or is a factory of [`Parts`](super::Parts).
pub fn own<T: ?Sized + Kind>(name: impl Into<String>, part: Box<T>) -> Chosen<T> {
    Chosen::new(name, Arc::new(Object(Mutex::new(Some(part))))).from_origin("an object")
}

struct Object<T: ?Sized>(Mutex<Option<Box<T>>>);

impl<T: ?Sized + Kind> Recipe<T> for Object<T> {
    fn table(&self) -> Table {
        Table::new()
    }

    fn facts(&self, _: &Scope) -> Result<T::Facts, ConfigError> {
        let part = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        part.as_deref().map(T::facts_of).ok_or_else(used::<T>)
    }

    fn fits(&self, _: &Scope) -> Result<(), ConfigError> {
        Ok(())
    }

    fn build(&self, _: &Scope, _: &T::Material) -> Result<Box<T>, ConfigError> {
        let part = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        part.ok_or_else(used::<T>)
    }
}

/// A custom part that a configuration names and that was not given.
pub(crate) fn absent<T: ?Sized + Kind>(name: &str, origin: &str, own: &Table) -> Chosen<T> {
    Chosen::new(name, Arc::new(Absent { name: name.into(), origin: origin.into(), own: own.clone() }))
        .from_origin(origin)
}

struct Absent {
    name: String,
    origin: String,
    own: Table,
}

impl<T: ?Sized + Kind> Recipe<T> for Absent {
    fn table(&self) -> Table {
        self.own.clone()
    }

    fn facts(&self, _: &Scope) -> Result<T::Facts, ConfigError> {
        Ok(T::Facts::default())
    }

    fn fits(&self, _: &Scope) -> Result<(), ConfigError> {
        Ok(())
    }

    fn build(&self, _: &Scope, _: &T::Material) -> Result<Box<T>, ConfigError> {
        let Self { name, origin, .. } = self;
        let problem = format!("is \"{name}\", a custom part ({origin}) that was not given to this run");
        Err(ConfigError::new(T::KEY, problem))
    }
}

fn used<T: ?Sized + Kind>() -> ConfigError {
    let problem =
        "is one object, and another run uses it already; write a configuration for the part, or a factory";
    ConfigError::new(T::KEY, problem)
}
