//! Classes of devices.

use super::Spread;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Spread> = Entry::of::<Classes>();

/// Device m has factor number m mod (number of factors).
#[keys]
#[derive(Clone, Debug)]
pub struct Classes {
    /// factors of training times; device m has number m mod (how many there are)
    #[key(default = vec![1.0, 2.0, 4.0], allowed = "a list of numbers > 0")]
    pub factors: Vec<f64>,
}

impl PartConfig for Classes {
    type Part = dyn Spread;
    const NAME: &'static str = "classes";
    const MEANING: &'static str = "classes of devices, each with a factor of its training time";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        if !self.factors.is_empty() && self.factors.iter().all(|x| x.is_finite() && *x > 0.0) {
            return Ok(());
        }
        let problem = format!("is {:?}, but must be a list of finite numbers above 0", self.factors);
        Err(ConfigError::new("factors", problem))
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Spread>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Spread for Classes {
    fn factor(&self, device: DeviceId) -> f64 {
        self.factors[device.index() % self.factors.len()]
    }
}
