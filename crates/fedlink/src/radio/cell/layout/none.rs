//! No positions at all.

use super::{Area, Layout, LayoutFacts, Position};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<OriginConfig>();

/// `[cell.none]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct OriginConfig {}

impl PartConfig for OriginConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "none";
    const MEANING: &'static str = "devices have no position: all are where the server is";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts { places: false, ..LayoutFacts::default() }
    }

    fn build(self, _: &Scope, _: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        Ok(Box::new(Origin))
    }
}

/// Every device at the server: for links without distance.
#[derive(Clone, Copy, Debug)]
pub struct Origin;

impl Layout for Origin {
    fn position(&self, _: DeviceId) -> Position {
        Position::default()
    }
}
