//! The memory that a run needs. A run that cannot fit the machine is refused before its first round.

use crate::parts::ConfigError;

/// Bytes that every run keeps per device: true and known gains, capacities, the device table and the counts
/// of the record. The number is a lower estimate.
const BYTES_PER_DEVICE: u64 = 64;

/// The memory of the machine in bytes; none if the operating system does not report it (only Linux does).
pub fn total() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// `MemTotal:       24652496 kB`, in bytes.
fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses a run whose tables over all devices and whose `vectors` vectors of `dim` numbers of four bytes
/// exceed the machine's whole memory.
pub(crate) fn check(devices: u64, dim: usize, vectors: usize) -> Result<(), ConfigError> {
    total().map_or(Ok(()), |total| check_against(total, (devices, BYTES_PER_DEVICE), dim, vectors))
}

/// Refuses to keep `bytes` for each of `devices` devices if the total exceeds the machine's whole memory.
pub fn check_devices(devices: u64, bytes: u64) -> Result<(), ConfigError> {
    total().map_or(Ok(()), |total| check_against(total, (devices, bytes), 0, 0))
}

fn check_against(
    total: u64,
    (devices, bytes): (u64, u64),
    dim: usize,
    vectors: usize,
) -> Result<(), ConfigError> {
    // In 128 bits: 2³² devices times 2³¹ numbers are beyond 64.
    let tables = u128::from(devices) * u128::from(bytes);
    let models = dim as u128 * vectors as u128 * 4;
    if tables + models <= u128::from(total) {
        return Ok(());
    }
    let gigabytes = |bytes: u128| format!("{:.1} GB", bytes as f64 / 1e9);
    let (needed, there) = (gigabytes(tables + models), gigabytes(total.into()));
    let lot = format!("at least {needed} of memory, and this machine has {there}");
    Err(if tables > models {
        ConfigError::new("data.devices", format!("is {devices}, which takes {lot}; write a smaller number"))
    } else {
        let problem = format!(
            "{vectors} vectors of d = {dim} numbers take {lot}; choose a smaller model, fewer devices \
             (data.devices is {devices}), or parts that keep no state on the devices (learn.state = \
             \"reset\", and compress.feedback and learn.correction at their defaults)"
        );
        ConfigError::new("learn.model", problem)
    })
}

/// The most bytes of updates that are kept so that none is computed twice.
const KEPT: u128 = 1 << 28;

/// Whether `updates` updates of `dim` numbers may be kept until selection, though K of them would do.
pub(crate) fn holds_updates(updates: usize, dim: usize) -> bool {
    updates as u128 * dim as u128 * 4 <= KEPT
}

/// Refuses a policy whose state of `numbers` numbers of four bytes over all devices exceeds the machine's
/// whole memory.
pub(crate) fn check_policy(name: &str, numbers: u128, devices: u64, dim: usize) -> Result<(), ConfigError> {
    let bytes = numbers.saturating_mul(4);
    total().map_or(Ok(()), |total| check_policy_against(total, name, bytes, (devices, dim)))
}

fn check_policy_against(
    total: u64,
    name: &str,
    bytes: u128,
    (devices, dim): (u64, usize),
) -> Result<(), ConfigError> {
    if bytes <= u128::from(total) {
        return Ok(());
    }
    let problem = format!(
        "is \"{name}\", which keeps up to {:.1} GB for M = {devices} devices and d = {dim} entries, \
         and this machine has {:.1} GB; choose fewer devices, a smaller model or another policy",
        bytes as f64 / 1e9,
        total as f64 / 1e9
    );
    Err(ConfigError::new("schedule.policy", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_parsed_from_meminfo() {
        assert_eq!(parse("MemFree: 1 kB\nMemTotal:       24652496 kB\n"), Some(24_652_496 * 1024));
        for text in ["", "MemTotal: many kB", "MemTotal: 18446744073709551615 kB", "MemTotal: 5"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_policy_whose_state_is_too_large_is_refused_by_name() {
        assert_eq!(check_policy_against(100, "divfl", 100, (5, 5)), Ok(()));
        let error =
            check_policy_against(1_000_000_000, "divfl", 81_412_000_000, (100_000, 203_530)).unwrap_err();
        let start = "schedule.policy: is \"divfl\", which keeps up to 81.4 GB for M = 100000 devices";
        assert!(error.to_string().starts_with(start), "{error}");
    }

    #[test]
    fn a_run_that_is_clearly_too_large_is_refused_with_both_numbers() {
        let gigabyte = 1_000_000_000;
        assert_eq!(check_against(gigabyte, (1000, BYTES_PER_DEVICE), 203_530, 100), Ok(()));
        let error =
            check_against(gigabyte, (u64::from(u32::MAX), BYTES_PER_DEVICE), 10, 1).unwrap_err().to_string();
        assert!(error.starts_with("data.devices: is 4294967295, which takes at least 274.9 GB"), "{error}");
        let error = check_against(gigabyte, (1_000_000, BYTES_PER_DEVICE), 203_530, 2_000_000)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("learn.model: 2000000 vectors of d = 203530 numbers take"), "{error}");
        assert!(error.contains("1628.3 GB of memory, and this machine has 1.0 GB"), "{error}");
        assert!(
            check_against(u64::MAX, (u64::from(u32::MAX), BYTES_PER_DEVICE), 1 << 31, usize::MAX).is_err()
        );
    }
}
