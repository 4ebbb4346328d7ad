//! Rayleigh and Rician fading with antennas, correlation over rounds and delays.

use super::estimate::complex_normal;
use super::profile::MAX_TAPS;
use super::scatter::Scatter;
use super::{Fading, Memory, Propagation};
use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Scope};

/// A line of sight and scatter over N antennas and L taps:
///
/// h_{a,l} = \[l = 0\]·√(κ/(κ+1))·e^{jψ} + √(p_l/(κ+1))·s_{a,l},  s ~ CN(0, 1),  g = Σ_{a,l} |h_{a,l}|².
///
/// κ is the K-factor, 0 for Rayleigh fading; ψ is 0, or under Doppler the phase of the wave that arrives in
/// line of sight; s follows [`Memory`]. Without a profile there is one tap of power 1, and for independent
/// rounds without a line of sight g is the sum of N exponential draws of the device's one stream, of which
/// the first is the gain over one antenna.
///
/// With a profile, blocks have g_k = Σ_a |Σ_l h_{a,l}·e^(−j2πf_kτ_l)|² at their centers f_k, and the gain is
/// that of the band in use, g = (1/N)·Σ_k g_k. As delays go to 0 it goes to the gain without a profile; in a
/// band much wider than their inverse it goes to Σ_{a,l} |h_{a,l}|². Each g_k has the law of flat fading, and
/// without a line of sight the correlation of two blocks Δ apart is |Σ_l p_l·e^(j2πΔτ_l)|² for one antenna.
///
/// g is computed as Σ_a h_aᴴ·R·h_a with R_{l,l'} = (1/N)·Σ_k e^(j2πf_k(τ_l − τ_l')), which takes L²
/// operations in place of N·L.
///
/// Invariants, without a profile: g ~ Gamma(N, 1) for κ = 0, and 2(κ+1)·g is noncentral χ² with 2N degrees of
/// freedom and noncentrality 2Nκ; mean N; under Doppler nearly so (see [`Scatter`]).
///
/// ```
/// use fedlink::radio::fading::{Fading, Memory, Multipath, Propagation};
/// use fedlink::parts::Scope;
/// use fedlink::base::units::DeviceId;
/// let memory = Memory::GaussMarkov { correlation: 0.999_999 };
/// let propagation = Propagation { memory, ..Propagation::default() };
/// let fading = Multipath::new(0.0, &Scope::default(), &propagation).unwrap();
/// let (now, next) = (fading.gain(7, DeviceId(3)), fading.gain(8, DeviceId(3)));
/// assert!((now - next).abs() < 0.1);
/// ```
pub struct Multipath {
    seed: u64,
    antennas: usize,
    /// √(κ/(κ+1)).
    direct: f64,
    /// √(p_l/(κ+1)), by tap.
    deviations: Vec<f64>,
    scatter: Scatter,
    /// e^(−j2πf_kτ_l), block by block; empty without a profile.
    phasors: Vec<[f64; 2]>,
    /// R, row by row; empty without a profile.
    over_band: Vec<[f64; 2]>,
    /// Whether powers alone matter and rounds are independent.
    is_exponential: bool,
}

impl Multipath {
    /// Fading with K-factor `k_factor` (finite and ≥ 0), for as many devices as `scope` has.
    pub fn new(k_factor: f64, scope: &Scope, propagation: &Propagation) -> Result<Self, ConfigError> {
        propagation.check()?;
        let Propagation { antennas, memory, profile, blocks, .. } = propagation;
        let powers = profile.as_ref().map_or(&[1.0][..], |profile| profile.powers());
        let devices = usize::try_from(scope.devices).unwrap_or(usize::MAX);
        let phasors = profile.as_ref().map_or_else(Vec::new, |profile| profile.phasors(blocks));
        Ok(Self {
            seed: scope.seed,
            antennas: *antennas,
            direct: libm::sqrt(k_factor / (k_factor + 1.0)),
            deviations: powers.iter().map(|power| libm::sqrt(power / (k_factor + 1.0))).collect(),
            scatter: Scatter::new(scope.seed, *memory, antennas * powers.len(), devices),
            over_band: if phasors.is_empty() { Vec::new() } else { over_band(&phasors, powers.len()) },
            phasors,
            is_exponential: k_factor == 0.0 && profile.is_none() && *memory == Memory::Independent,
        })
    }

    /// √(κ/(κ+1))·e^{jψ}.
    fn line_of_sight(&self, t: u64, delay_s: f64, device: DeviceId) -> [f64; 2] {
        if self.direct == 0.0 {
            return [0.0; 2];
        }
        self.scatter.line_of_sight(t, delay_s, device).map(|part| self.direct * part)
    }

    /// Gives tap, line of sight and scatter of every path to `each`, antenna by antenna.
    fn for_each(
        &self,
        t: u64,
        delay_s: f64,
        device: DeviceId,
        mut each: impl FnMut(usize, [f64; 2], [f64; 2]),
    ) {
        let direct = self.line_of_sight(t, delay_s, device);
        self.scatter.for_each(t, delay_s, device, |path, s| {
            let tap = path % self.deviations.len();
            let direct = if tap == 0 { direct } else { [0.0; 2] };
            each(tap, direct, s.map(|part| self.deviations[tap] * part));
        });
    }

    /// Gives the amplitudes of the taps of each antenna to `each`.
    fn for_each_antenna(&self, t: u64, device: DeviceId, mut each: impl FnMut(&[[f64; 2]])) {
        let taps = self.deviations.len();
        // Taps are at most MAX_TAPS by the invariant of a profile.
        let mut amplitudes = [[0.0; 2]; MAX_TAPS];
        self.for_each(t, 0.0, device, |tap, direct, s| {
            amplitudes[tap] = [direct[0] + s[0], direct[1] + s[1]];
            if tap + 1 == taps {
                each(&amplitudes[..taps]);
            }
        });
    }

    /// The amplitude of each resource block, given those of the taps.
    fn over_blocks<'a>(&'a self, amplitudes: &'a [[f64; 2]]) -> impl Iterator<Item = [f64; 2]> + 'a {
        self.phasors.chunks_exact(self.deviations.len()).map(move |phasors| {
            let [mut re, mut im] = [0.0; 2];
            for ([a, b], [c, d]) in amplitudes.iter().zip(phasors) {
                re += a * c - b * d;
                im += a * d + b * c;
            }
            [re, im]
        })
    }

    fn gain_before(&self, t: u64, delay_s: f64, device: DeviceId) -> f64 {
        if self.is_exponential {
            let mut rng = stream(self.seed, Purpose::Channel, t, u64::from(device.0));
            return (0..self.antennas).map(|_| rng.exponential()).sum();
        }
        let mut sum = BandGain::new(self);
        self.for_each(t, delay_s, device, |tap, direct, s| {
            sum.add(tap, [direct[0] + s[0], direct[1] + s[1]]);
        });
        sum.gain
    }
}

impl Fading for Multipath {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        self.gain_before(t, 0.0, device)
    }

    fn earlier(&self, t: u64, device: DeviceId, delay_s: f64) -> Option<f64> {
        self.scatter.is_continuous().then(|| self.gain_before(t, delay_s, device))
    }

    /// The line of sight is known; of the scatter s of every path the server has ŝ ~ CN((1−ε)s, ε(1−ε)·σ²)
    /// with σ² the mean power of the path.
    fn estimate(&self, t: u64, device: DeviceId, error: f64, rng: &mut Stream) -> f64 {
        if self.is_exponential || error == 0.0 {
            return super::estimate::gaussian(self.gain(t, device), self.antennas, error, rng);
        }
        let spread = libm::sqrt(error * (1.0 - error));
        let mut sum = BandGain::new(self);
        self.for_each(t, 0.0, device, |tap, direct, s| {
            let (w, deviation) = (complex_normal(rng), spread * self.deviations[tap]);
            let part = |i: usize| direct[i] + (1.0 - error) * s[i] + deviation * w[i];
            sum.add(tap, [part(0), part(1)]);
        });
        sum.gain
    }

    fn blocks(&self, t: u64, device: DeviceId, out: &mut [f64]) {
        if self.phasors.is_empty() {
            out.fill(self.gain(t, device));
            return;
        }
        let taps = self.deviations.len();
        assert_eq!(out.len() * taps, self.phasors.len(), "one gain for each block of the propagation");
        out.fill(0.0);
        self.for_each_antenna(t, device, |amplitudes| {
            for (gain, h) in out.iter_mut().zip(self.over_blocks(amplitudes)) {
                *gain += h[0] * h[0] + h[1] * h[1];
            }
        });
    }

    fn amplitudes(&self, t: u64, device: DeviceId) -> Vec<[f64; 2]> {
        let mut all = Vec::new();
        // Powers alone are drawn then.
        if self.is_exponential {
            return all;
        }
        self.for_each_antenna(t, device, |amplitudes| {
            if self.phasors.is_empty() {
                all.push(amplitudes[0]);
            } else {
                all.extend(self.over_blocks(amplitudes));
            }
        });
        all
    }

    fn fades_apart(&self) -> bool {
        !self.phasors.is_empty()
    }

    fn antennas(&self) -> usize {
        self.antennas
    }
}

/// The gain over the band in use, summed up tap by tap and antenna by antenna.
struct BandGain<'a> {
    over_band: &'a [[f64; 2]],
    taps: usize,
    /// The taps of an antenna.
    amplitudes: [[f64; 2]; MAX_TAPS],
    gain: f64,
}

impl<'a> BandGain<'a> {
    fn new(law: &'a Multipath) -> Self {
        let (over_band, taps) = (&law.over_band[..], law.deviations.len());
        Self { over_band, taps, amplitudes: [[0.0; 2]; MAX_TAPS], gain: 0.0 }
    }

    /// Adds the amplitude h of a tap; the taps of an antenna follow one another.
    fn add(&mut self, tap: usize, [re, im]: [f64; 2]) {
        if self.over_band.is_empty() {
            self.gain += re * re + im * im;
            return;
        }
        // Taps are at most MAX_TAPS by the invariant of a profile.
        self.amplitudes[tap] = [re, im];
        if tap + 1 < self.taps {
            return;
        }
        // hᴴRh with R Hermitian: the diagonal is 1, and pairs count twice with their real part.
        for (l, [a, b]) in self.amplitudes[..self.taps].iter().enumerate() {
            self.gain += a * a + b * b;
            for ([c, d], [x, y]) in self.amplitudes[..l].iter().zip(&self.over_band[l * self.taps..]) {
                // Re(conj(h_l)·R_{l,l'}·h_l').
                self.gain += 2.0 * (x * (a * c + b * d) - y * (a * d - b * c));
            }
        }
        // Rounding may give a tiny negative number.
        self.gain = self.gain.max(0.0);
    }
}

/// R_{l,l'} = (1/N)·Σ_k conj(φ_{k,l})·φ_{k,l'} of the phasors φ_{k,l} = e^(−j2πf_kτ_l), row by row.
fn over_band(phasors: &[[f64; 2]], taps: usize) -> Vec<[f64; 2]> {
    let blocks = (phasors.len() / taps) as f64;
    let mut mean = vec![[0.0; 2]; taps * taps];
    for own in phasors.chunks_exact(taps) {
        for (row, [a, b]) in mean.chunks_exact_mut(taps).zip(own) {
            for (entry, [c, d]) in row.iter_mut().zip(own) {
                entry[0] += (a * c + b * d) / blocks;
                entry[1] += (a * d - b * c) / blocks;
            }
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::super::tests::{gains, kolmogorov, near_mean};
    use super::super::{Blocks, Profile, Rayleigh, Rician};
    use super::*;
    use crate::base::units::Power;
    use crate::radio::link::capacity;
    use std::f64::consts::TAU;

    const DEVICES: u32 = 20_000;

    fn fading(k_factor: f64, propagation: &Propagation) -> Multipath {
        let scope = Scope { seed: 4, devices: u64::from(DEVICES), ..Scope::default() };
        Multipath::new(k_factor, &scope, propagation).unwrap()
    }

    fn with(antennas: usize, memory: Memory) -> Propagation {
        Propagation { antennas, memory, ..Propagation::default() }
    }

    const MARKOV: Memory = Memory::GaussMarkov { correlation: 0.9 };
    const DOPPLER: Memory = Memory::Doppler { hertz: 5.56, period_s: 0.01 };

    fn sample(fading: &Multipath, t: u64) -> Vec<f64> {
        gains(fading, t, DEVICES as usize)
    }

    /// P(Gamma(n, 1) ≤ x) for whole n.
    fn gamma_cdf(n: usize, x: f64) -> f64 {
        let term = |sum: (f64, f64), k: usize| (sum.0 + sum.1, sum.1 * x / k as f64);
        1.0 - (-x).exp() * (1..=n).fold((0.0, 1.0), term).0
    }

    /// P(g ≤ x) over n antennas: a Poisson(nκ) mixture of Gamma(n + j, 1) laws at (κ+1)·x.
    fn rician_cdf(n: usize, k: f64, x: f64) -> f64 {
        let (mean, y) = (n as f64 * k, (k + 1.0) * x);
        let (mut poisson, mut cdf, mut total) = ((-mean).exp(), gamma_cdf(n, y), 0.0);
        // The difference of the distributions of Gamma(n, 1) and Gamma(n + 1, 1) at y: e^(−y)·yⁿ/n!.
        let mut less = (1..=n).fold((-y).exp(), |term, i| term * y / i as f64);
        for j in 1..100 {
            total += poisson * cdf;
            poisson *= mean / f64::from(j);
            cdf -= less;
            less *= y / (n as f64 + f64::from(j));
        }
        total
    }

    #[test]
    fn the_first_antenna_sees_the_same_as_a_single_antenna() {
        let one = fading(0.0, &with(1, Memory::Independent));
        assert_eq!(gains(&one, 3, 50), gains(&Rayleigh { seed: 4 }, 3, 50));
        let two = fading(0.0, &with(2, Memory::Independent));
        assert!(gains(&two, 3, 50).iter().zip(gains(&one, 3, 50)).all(|(both, one)| *both > one));
        let rician = fading(2.0, &with(1, Memory::Independent));
        for (got, truth) in gains(&rician, 3, 50).iter().zip(gains(&Rician { seed: 4, k_factor: 2.0 }, 3, 50))
        {
            assert!((got - truth).abs() < 1e-13, "{got}, {truth}");
        }
    }

    #[test]
    fn gains_of_several_antennas_follow_gamma_and_noncentral_chi_squared_laws() {
        for antennas in [1, 2, 4] {
            for memory in [Memory::Independent, MARKOV] {
                let gains = sample(&fading(0.0, &with(antennas, memory)), 5);
                let distance = kolmogorov(gains, |g| gamma_cdf(antennas, g));
                assert!(distance < 2.23, "{antennas}, {memory:?}: √N·D = {distance}");
                for k in [0.3, 3.0] {
                    let gains = sample(&fading(k, &with(antennas, memory)), 5);
                    let distance = kolmogorov(gains, |g| rician_cdf(antennas, k, g));
                    assert!(distance < 2.23, "{antennas}, {memory:?}, κ = {k}: √N·D = {distance}");
                }
            }
        }
    }

    #[test]
    fn moments_are_those_of_the_laws() {
        for (antennas, k, memory) in
            [(1, 0.0, DOPPLER), (4, 0.0, Memory::Independent), (3, 2.0, MARKOV), (2, 5.0, DOPPLER)]
        {
            let n = antennas as f64;
            let gains = sample(&fading(k, &with(antennas, memory)), 9);
            near_mean(gains.iter().copied(), n, "mean");
            // Var g = N(1+2κ)/(1+κ)²; with 32 sinusoids the fourth moment of the scatter is 1/32 less.
            let waves = if memory == DOPPLER { n / 32.0 / (1.0 + k).powi(2) } else { 0.0 };
            let variance = n * (1.0 + 2.0 * k) / (1.0 + k).powi(2) - waves;
            near_mean(gains.iter().map(|g| (g - n).powi(2)), variance, "variance");
        }
    }

    #[test]
    fn ergodic_capacities_are_the_closed_forms() {
        // log2(e)·e^(1/γ)·Σ_{k≤N} E_k(1/γ) with scipy's expn, and scipy's quadrature over the Rician density.
        let frozen = [
            (1.0, 1, 0.0, 0.860_347_382_270_886_8),
            (4.0, 1, 0.0, 1.934_488_781_658_442_6),
            (40.0, 1, 0.0, 4.639_576_675_289_273),
            (1.0, 2, 0.0, 1.442_695_040_888_963_8),
            (4.0, 4, 0.0, 3.925_801_437_625_955),
            (10.0, 8, 0.0, 6.250_324_487_245_345),
            (4.0, 1, 1.0, 2.000_459_777_346_714_3),
            (4.0, 1, 3.0, 2.118_918_894_329_657_7),
            (4.0, 1, 10.0, 2.240_229_001_950_272_6),
        ];
        for (snr, antennas, k, truth) in frozen {
            for memory in [Memory::Independent, MARKOV] {
                let capacities = |t| {
                    let gains = sample(&fading(k, &with(antennas, memory)), t);
                    gains.into_iter().map(|gain| capacity(gain, Power(snr), 1.0))
                };
                let what = format!("γ = {snr}, N = {antennas}, κ = {k}, {memory:?}");
                near_mean(capacities(3), truth, &what);
            }
        }
    }

    #[test]
    fn the_line_of_sight_of_a_moving_device_turns_against_its_scatter() {
        // Cov(g(0), g(τ)) = (J₀² + 2κ·E[cos(ω·τ·cos θ)·…])/(κ+1)²: at κ → ∞ the gain does not fade at all.
        let fixed = fading(1e12, &with(1, DOPPLER));
        assert!(gains(&fixed, 8, 100).iter().all(|g| (g - 1.0).abs() < 1e-4));
        // E[h(τ)·h*(0)] = J₀ for line of sight and scatter alike, so Cov(g, g′) = ((1+2κ)·J₀² − J₀²/N)/(κ+1)²
        // if N is large, since E over θ₀ and the scatter's angles is a product of two J₀.
        let (k, lag) = (2.0, 2);
        let fading = fading(k, &with(1, DOPPLER));
        let (now, later) = (sample(&fading, 1), sample(&fading, 1 + lag));
        let j0 = libm::j0(TAU * 5.56 * 0.01 * lag as f64);
        let truth = (1.0 + 2.0 * k) * j0 * j0 / (k + 1.0).powi(2);
        let products: Vec<f64> = now.iter().zip(&later).map(|(a, b)| (a - 1.0) * (b - 1.0)).collect();
        // The finite number of waves makes at most 1/32 of the scatter's own part.
        let mean = products.iter().sum::<f64>() / products.len() as f64;
        let deviation = products.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / products.len() as f64;
        let slack = 4.0 * (deviation / products.len() as f64).sqrt() + 1.0 / 32.0 / (k + 1.0).powi(2);
        assert!((mean - truth).abs() < slack, "{mean} is not within {slack} of {truth}");
    }

    #[test]
    fn an_outdated_gain_loses_as_often_as_in_the_closed_form() {
        // P(g < b·ĝ) = ½(1 − (1−b)/√((1−b)² + 4b(1−ρ²))) with ĝ of correlation ρ = J₀(2πf·δ).
        let (hertz, frozen) =
            (10.0, [(0.9, 0.5, 0.185_029_605_825_643_93), (0.99, 0.8, 0.189_435_003_125_029_37)]);
        for (rho, back_off, outage) in frozen {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..60 {
                let middle = f64::midpoint(low, high);
                if libm::j0(middle) > rho { low = middle } else { high = middle }
            }
            let fading = fading(0.0, &with(1, Memory::Doppler { hertz, period_s: 1.0 }));
            let delay = low / (TAU * hertz);
            let is_lost = |m: &u32| {
                let device = DeviceId(*m);
                fading.gain(4, device) < back_off * fading.earlier(4, device, delay).unwrap()
            };
            let rate = (0..DEVICES).filter(is_lost).count() as f64 / f64::from(DEVICES);
            let slack = 4.0 * (outage * (1.0 - outage) / f64::from(DEVICES)).sqrt();
            assert!((rate - outage).abs() < slack, "ρ = {rho}, b = {back_off}: {rate}, not {outage}");
        }
        let rounds = fading(0.0, &with(1, MARKOV));
        assert_eq!(rounds.earlier(4, DeviceId(0), 0.1), None, "rounds alone have no time between them");
    }

    #[test]
    fn estimates_do_not_move_the_truth_and_have_the_moments_of_the_weaker_scatter() {
        let error = 0.2;
        for (antennas, k, memory) in [(1, 0.0, MARKOV), (2, 3.0, Memory::Independent), (2, 1.0, DOPPLER)] {
            let fading = fading(k, &with(antennas, memory));
            let seen = |m| {
                let mut rng = stream(1, Purpose::CsiError, 6, u64::from(m));
                fading.estimate(6, DeviceId(m), error, &mut rng)
            };
            // E ĝ = N·(κ + 1 − ε)/(κ + 1).
            let mean = antennas as f64 * (k + 1.0 - error) / (k + 1.0);
            near_mean((0..DEVICES).map(seen), mean, &format!("{antennas}, {k}, {memory:?}"));
            let mut rng = stream(1, Purpose::CsiError, 0, 0);
            assert_eq!(fading.estimate(6, DeviceId(1), 0.0, &mut rng), fading.gain(6, DeviceId(1)));
        }
        // Without a line of sight the closed form of the outage holds for correlated rounds too.
        let fading = fading(0.0, &with(1, MARKOV));
        let is_lost = |m: &u32| {
            let mut rng = stream(2, Purpose::CsiError, 6, u64::from(*m));
            fading.gain(6, DeviceId(*m)) < 0.5 * fading.estimate(6, DeviceId(*m), 0.1, &mut rng)
        };
        let (rate, outage) =
            ((0..DEVICES).filter(is_lost).count() as f64 / f64::from(DEVICES), 0.104_101_337_088_218);
        let slack = 4.0 * (outage * (1.0 - outage) / f64::from(DEVICES)).sqrt();
        assert!((rate - outage).abs() < slack, "{rate}, not {outage}");
    }

    #[test]
    fn blocks_of_a_delay_profile_are_exponential_and_correlated_by_their_distance() {
        let blocks = Blocks { count: 4, spacing_hz: 720e3 };
        let profile = Profile::named("tdl-c300", None).unwrap().unwrap();
        for memory in [Memory::Independent, MARKOV] {
            let propagation =
                Propagation { memory, profile: Some(profile.clone()), blocks, ..Propagation::default() };
            let fading = fading(0.0, &propagation);
            let table: Vec<[f64; 4]> = DeviceId::all(DEVICES as usize)
                .map(|device| {
                    let mut out = [f64::NAN; 4];
                    fading.blocks(2, device, &mut out);
                    out
                })
                .collect();
            for k in 0..4 {
                let distance = kolmogorov(table.iter().map(|row| row[k]).collect(), |g| 1.0 - f64::exp(-g));
                assert!(distance < 2.23, "block {k}: √N·D = {distance}");
                let angle = |delay: f64| TAU * k as f64 * blocks.spacing_hz * delay;
                let taps = || profile.powers().iter().zip(profile.delays_s());
                let re: f64 = taps().map(|(power, delay)| power * angle(*delay).cos()).sum();
                let im: f64 = taps().map(|(power, delay)| power * angle(*delay).sin()).sum();
                let products = table.iter().map(|row| (row[0] - 1.0) * (row[k] - 1.0));
                near_mean(products, re * re + im * im, &format!("{k} blocks apart"));
            }
            // The band in use: the mean of its blocks, to rounding.
            for (gain, row) in sample(&fading, 2).iter().zip(&table) {
                let mean = row.iter().sum::<f64>() / 4.0;
                assert!((gain - mean).abs() < 1e-12 * mean.max(1e-3), "{gain}, not {mean}");
            }
        }
    }

    #[test]
    fn the_gain_goes_to_that_of_flat_fading_and_of_the_wide_band_as_delays_go_to_their_limits() {
        let gains_at = |spread_s: f64, blocks: Blocks| {
            let profile = Profile::exponential(spread_s).ok();
            let fading = fading(2.0, &Propagation { antennas: 2, profile, blocks, ..Propagation::default() });
            let wide = |device| {
                let mut power = 0.0;
                let add = |_: usize, d: [f64; 2], s: [f64; 2]| {
                    power += (d[0] + s[0]).powi(2) + (d[1] + s[1]).powi(2);
                };
                fading.for_each(3, 0.0, device, add);
                power
            };
            let pairs = DeviceId::all(200).map(|device| (fading.gain(3, device), wide(device)));
            pairs.collect::<Vec<(f64, f64)>>()
        };
        // No delay: every block has the same gain |Σ_l h_l|², whatever the band.
        let narrow = Blocks { count: 5, spacing_hz: 1e5 };
        let flat = gains_at(0.0, narrow);
        let near = gains_at(1e-12, narrow);
        for ((flat, _), (near, _)) in flat.iter().zip(&near) {
            assert!((flat - near).abs() < 1e-4 * flat.max(0.01), "{flat}, {near}");
        }
        // A band of a thousand inverse delays: Σ|h_l|².
        let wide = gains_at(1e-6, Blocks { count: 4096, spacing_hz: 3.1e5 });
        let off = wide.iter().map(|(gain, wide)| (gain / wide - 1.0).abs()).sum::<f64>() / 200.0;
        assert!(off < 0.05, "{off}");
    }

    #[test]
    fn blocks_without_a_profile_are_equal_and_those_of_zero_delays_too() {
        let blocks = Blocks { count: 3, spacing_hz: 1e6 };
        let flat = fading(1.0, &Propagation { antennas: 2, blocks, ..Propagation::default() });
        let mut out = [0.0; 3];
        flat.blocks(1, DeviceId(5), &mut out);
        assert_eq!(out, [flat.gain(1, DeviceId(5)); 3]);
        let profile = Profile::exponential(0.0).ok();
        let zero = fading(1.0, &Propagation { antennas: 2, profile, blocks, ..Propagation::default() });
        zero.blocks(1, DeviceId(5), &mut out);
        assert!(out[0] == out[1] && out[1] == out[2] && out[0] > 0.0, "{out:?}");
    }
}
