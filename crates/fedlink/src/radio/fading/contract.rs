//! The contract of a fading law, for tests of laws, built-in or custom.

use super::Fading;
use crate::base::units::DeviceId;

/// Checks the invariants of [`Fading`]: each finding names one. `make` makes a new law of the same run.
///
/// ```
/// use fedlink::radio::fading::{Constant, contract};
/// assert_eq!(contract::findings(|| Some(Box::new(Constant {}))), [""; 0]);
/// ```
pub fn findings(make: impl Fn() -> Option<Box<dyn Fading>>) -> Vec<String> {
    check(make).err().into_iter().collect()
}

/// Checks that gains are finite and at least 0, and that each can be had alone.
fn check(make: impl Fn() -> Option<Box<dyn Fading>>) -> Result<(), String> {
    const ROUNDS: u64 = 60;
    const DEVICES: usize = 10;
    let Some(law) = make() else { return Err("it refuses the run that it could be tested in".into()) };
    let mut gains = Vec::new();
    for t in 0..ROUNDS {
        for device in DeviceId::all(DEVICES) {
            let gain = law.gain(t, device);
            law.failure().map_or(Ok(()), |problem| Err(format!("call: {problem}")))?;
            if !(gain.is_finite() && gain >= 0.0) {
                let problem = "must be finite and at least 0";
                return Err(format!("gain: that of device {device} in round {t} is {gain}, but {problem}"));
            }
            gains.push((t, device, gain));
        }
    }
    let Some(other) = make() else { return Ok(()) };
    // In another order, from a law that has computed nothing before.
    for (t, device, gain) in gains.iter().rev().step_by(7) {
        for again in [other.gain(*t, *device), law.gain(*t, *device)] {
            if again.to_bits() != gain.to_bits() {
                return Err(format!(
                    "random access: the gain of device {device} in round {t} is {gain} after earlier ones, \
                     and {again} alone or once more; it must depend on seed, round and device alone"
                ));
            }
        }
    }
    Ok(())
}
