//! The contract tests of a custom part by its name.

use crate::compress::{self, Compressor};
use crate::parts::{Kind, Parts, Scope};
use crate::radio::fading::{self, Fading, Propagation};
use crate::schedule::{self, Policy};
use crate::spec::ConfigError;
use toml::Table;

/// The kinds of parts that have contract tests for others than the library.
const TESTED: [&str; 3] =
    [<dyn Policy as Kind>::KEY, <dyn Compressor as Kind>::KEY, <dyn Fading as Kind>::KEY];

/// Plays the part `name` among `parts`, with its own table, against its contract and the facts that it
/// declares; each finding names the fact. It is an error if there is no such part or no contract test of its
/// kind.
///
/// ```
/// use fedlink::prelude::*;
/// let parts = Parts::default().policy("mine", "an example", |_, _| Ok(Box::new(Bc {})));
/// assert_eq!(fedlink::spec::findings(&parts, "mine", &Default::default()).unwrap(), [""; 0]);
/// ```
pub fn findings(parts: &Parts, name: &str, own: &Table) -> Result<Vec<String>, ConfigError> {
    let keys: Vec<&str> = parts.named().filter(|(_, part)| *part == name).map(|(key, _)| key).collect();
    let Some(key) = keys.iter().find(|key| TESTED.contains(key)) else {
        let problem = format!("there is no contract test of \"{name}\": of parts of {}", TESTED.join(", "));
        return Err(ConfigError::new("check", problem));
    };
    if *key == <dyn Policy as Kind>::KEY {
        let make = |scope: &Scope| made::<dyn Policy>(parts, name, own, scope, &());
        make(&Scope::default())?;
        return Ok(schedule::contract::findings(|scope| make(scope).ok()));
    }
    if *key == <dyn Compressor as Kind>::KEY {
        let scheme = made::<dyn Compressor>(parts, name, own, &Scope::default(), &())?;
        return Ok(compress::contract::findings(&*scheme));
    }
    let propagation = Propagation::default();
    let make = || made::<dyn Fading>(parts, name, own, &Scope::default(), &propagation);
    make()?;
    Ok(fading::contract::findings(|| make().ok()))
}

/// A new part called `name`.
fn made<T: ?Sized + Kind>(
    parts: &Parts,
    name: &str,
    own: &Table,
    scope: &Scope,
    material: &T::Material,
) -> Result<Box<T>, ConfigError> {
    let chosen = parts.choose::<T>(name, own, scope)?;
    let absent = || ConfigError::new(T::KEY, format!("there is no custom part \"{name}\""));
    chosen.ok_or_else(absent)?.build(scope, material)
}
