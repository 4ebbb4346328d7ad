//! The link budget: power, noise and symbols in one unit, and the seconds of a symbol where there are any.

use super::Snrs;
use crate::base::units::{DeviceId, dbm_to_watt, from_db};

/// Power and noise of the uplink. With a bandwidth they are watts and a symbol has a duration; without one
/// they are in a unit of their own, the noise variance's, and there are no seconds. The rest of the radio
/// does not depend on the units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkBudget {
    /// P̄.
    pub average: f64,
    /// The largest power of a device; none: no limit.
    pub max: Option<f64>,
    /// σ², with the interference.
    pub noise: f64,
    /// n, symbols in a round.
    pub symbols: u64,
    /// W in hertz; none: no units.
    pub bandwidth_hz: Option<f64>,
    /// Seconds of a round's uplink; none: no units, or payloads of fixed size.
    pub uplink_s: Option<f64>,
    /// The share of time that pilots and control take.
    pub overhead: f64,
}

/// The values of a physical link budget; each has the name of its key in `[radio]`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the keys of the configuration document them")]
pub struct PhysicalBudget {
    pub bandwidth_hz: f64,
    pub uplink_s: f64,
    pub overhead: f64,
    pub power_dbm: f64,
    pub power_max_dbm: f64,
    pub noise_dbm_hz: f64,
    pub noise_figure_db: f64,
    pub interference_w: f64,
}

impl Default for PhysicalBudget {
    /// 1 MHz for 5 ms at 7.8 dBm on average and 23 dBm at most, −174 dBm/Hz and a noise figure of 5 dB.
    fn default() -> Self {
        Self {
            bandwidth_hz: 1e6,
            uplink_s: 0.005,
            overhead: 0.0,
            power_dbm: 7.8,
            power_max_dbm: 23.0,
            noise_dbm_hz: -174.0,
            noise_figure_db: 5.0,
            interference_w: 0.0,
        }
    }
}

impl PhysicalBudget {
    /// σ² + I = 10^((N₀ + NF − 30)/10)·W + I, watts.
    ///
    /// ```
    /// let noise = fedlink::radio::budget::PhysicalBudget::default().noise_w();
    /// assert!((noise - 1.2589e-14).abs() < 1e-18);
    /// ```
    pub fn noise_w(&self) -> f64 {
        dbm_to_watt(self.noise_dbm_hz + self.noise_figure_db) * self.bandwidth_hz + self.interference_w
    }

    /// n = (1 − overhead)·W·T complex symbols, rounded to a whole number.
    pub fn symbols(&self) -> u64 {
        libm::round((1.0 - self.overhead) * self.bandwidth_hz * self.uplink_s) as u64
    }
}

impl From<PhysicalBudget> for LinkBudget {
    fn from(physical: PhysicalBudget) -> Self {
        Self {
            average: dbm_to_watt(physical.power_dbm),
            max: Some(dbm_to_watt(physical.power_max_dbm)),
            noise: physical.noise_w(),
            symbols: physical.symbols(),
            bandwidth_hz: Some(physical.bandwidth_hz),
            uplink_s: Some(physical.uplink_s),
            overhead: physical.overhead,
        }
    }
}

impl LinkBudget {
    /// T_s = 1/(W·(1 − overhead)), seconds of a symbol that carries an upload, with its part of the overhead,
    /// for which a device sends too; none without a bandwidth.
    pub fn symbol_s(&self) -> Option<f64> {
        self.bandwidth_hz.map(|hertz| 1.0 / (hertz * (1.0 - self.overhead)))
    }
}

/// The mean gain of each device for which its SNR at `power` and `noise` is that of its group, mean over the
/// fading of one antenna.
///
/// Groups are of one size (the first ones one larger where they do not divide M), or of the given `sizes`,
/// from device 0 on.
pub fn gains_of_snrs(snrs: &Snrs, sizes: Option<&[u64]>, devices: usize, power: f64, noise: f64) -> Vec<f64> {
    let gain = |group: usize| from_db(snrs.levels()[group]) * noise / power;
    let levels = snrs.levels().len();
    // One level is that of all groups.
    let group = |device| if levels == 1 { 0 } else { group_of(device, levels, sizes, devices) };
    DeviceId::all(devices).map(|device| gain(group(device))).collect()
}

/// The group of a device, from 0.
pub fn group_of(device: DeviceId, groups: usize, sizes: Option<&[u64]>, devices: usize) -> usize {
    let mut before = 0;
    for group in 0..groups {
        let size = match sizes {
            Some(sizes) => sizes[group] as usize,
            None => devices / groups + usize::from(group < devices % groups),
        };
        before += size;
        if device.index() < before {
            return group;
        }
    }
    groups.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_figure_is_a_cell_edge_phone() {
        // 500 m by 128.1 + 37.6·log10(0.5) = 116.78 dB: P̄/σ² is 1 at 7.8 dBm, and n = 5000.
        let budget = LinkBudget::from(PhysicalBudget::default());
        let loss_db = 128.1 + 37.6 * 0.5f64.log10();
        let snr = budget.average * 10f64.powf(-loss_db / 10.0) / budget.noise;
        assert!((snr - 1.0).abs() < 0.01, "{snr}");
        assert_eq!((budget.symbols, budget.symbol_s()), (5000, Some(1e-6)));
    }

    #[test]
    fn overhead_takes_symbols_and_interference_adds_to_the_noise() {
        let physical = PhysicalBudget { overhead: 0.25, interference_w: 1e-12, ..PhysicalBudget::default() };
        assert_eq!(physical.symbols(), 3750);
        assert!((physical.noise_w() - 1.0e-12 - 1.258_925_411_794_167_3e-14).abs() < 1e-26);
    }

    #[test]
    fn groups_are_even_or_of_the_given_sizes() {
        let groups = |sizes: Option<&[u64]>, groups, devices| -> Vec<usize> {
            DeviceId::all(devices).map(|device| group_of(device, groups, sizes, devices)).collect()
        };
        assert_eq!(groups(None, 2, 5), [0, 0, 0, 1, 1]);
        assert_eq!(groups(Some(&[1, 3]), 2, 4), [0, 1, 1, 1]);
        let gains = gains_of_snrs(&Snrs::Groups(vec![20.0, 0.0]), None, 4, 2.0, 0.5);
        assert_eq!(gains, [25.0, 25.0, 0.25, 0.25]);
    }
}
