//! Settings that are allowed and seldom meant.

use super::Draft;
use crate::base::units::{from_db, to_db};
use crate::compress::Compressor;
use crate::parts::{Entry, Kind, Scope};
use crate::radio::PayloadMode;
use crate::radio::fading::{Blocks, Profile};
use crate::schedule::Bias;
use crate::spec::Config;
use crate::spec::choices::{Choices, Facts};

/// Each caution as a whole sentence.
pub(in crate::spec) fn cautions(config: &Config, parts: &Choices, facts: &Facts) -> Vec<String> {
    Draft { config, parts, facts, rate: 0.0 }.cautions()
}

impl Draft<'_> {
    fn cautions(self) -> Vec<String> {
        let Config { radio, clock, data, schedule, learn, .. } = self.config;
        let facts = self.facts;
        let mut cautions = Vec::new();
        if self.config.energy.receive_w > 0.0 && !facts.downlink.takes_time {
            cautions.push(format!(
                "energy.receive_w is {} and has no effect: clock.downlink = \"{}\" takes no time",
                self.config.energy.receive_w, clock.downlink
            ));
        }
        if facts.server_optimizer.divides_by_size && learn.server_rate >= 1.0 {
            cautions.push(format!(
                "learn.server_rate is {} and learn.server_optimizer \"{}\", which divides the step by its \
                 own size: a weight moves by about that rate per round; 0.01 is a start",
                learn.server_rate, learn.server_optimizer
            ));
        }
        if radio.csi_delay_s > 0.0 && radio.backoff_db == 0.0 {
            cautions.push(
                "radio.csi_delay_s is above 0 and radio.backoff_db 0: about half of the uploads will be \
                 lost, since every second estimate is too good; a back-off helps"
                    .into(),
            );
        }
        if let Some((spread_s, width_hz)) = self.wide_blocks() {
            cautions.push(format!(
                "resource blocks of {:.0} kHz are not flat over a delay spread of {:.0} ns; more blocks in \
                 radio.ofdma.resource_blocks are narrower",
                width_hz / 1e3,
                spread_s * 1e9
            ));
        }
        if radio.csi_error > 0.0 && radio.backoff_db == 0.0 {
            let lost = 0.5 * (1.0 - libm::sqrt(radio.csi_error / (4.0 - 3.0 * radio.csi_error)));
            cautions.push(format!(
                "radio.csi_error is {} and radio.backoff_db 0: about {:.0} % of the uploads will be lost, \
                 since every second estimate is too good; a back-off helps",
                radio.csi_error,
                100.0 * lost
            ));
        }
        if radio.mode == PayloadMode::Payload
            && clock.deadline_s.is_none()
            && !facts.policy.selection.by_channel
            && facts.fading.deep_fades
            && radio.antennas == 1
        {
            cautions.push(
                "radio.mode is \"payload\" without clock.deadline_s, and the policy does not pick by the \
                 channel: the time of an upload has no finite mean over a channel with deep fades, so that \
                 means of seconds do not settle"
                    .into(),
            );
        }
        if facts.downlink.by_worst_channel && radio.antennas == 1 && facts.fading.deep_fades {
            cautions.push(format!(
                "clock.downlink = \"{0}\" has the rate of the worst device: over fading with one antenna \
                     that time has no finite mean, so that means of down_s do not settle; compare medians, \
                     or set clock.{0}.quantile below 1",
                clock.downlink
            ));
        }
        if radio.bandwidth_hz.is_some() && facts.power.shares_power && radio.snr_db.is_none() {
            let sent = radio.power_dbm.unwrap_or(7.8)
                + crate::base::units::to_db(data.devices as f64 / schedule.k as f64);
            let max = radio.power_max_dbm();
            if sent > max {
                cautions.push(format!(
                    "a scheduled device would send with M·P̄/K = {sent:.1} dBm, but radio.power_max_dbm is \
                     {max}: it sends with that"
                ));
            }
        }
        if facts.feedback.keeps_rest && facts.scheme.may_expand {
            cautions.push(format!(
                "compress.feedback = \"{}\" adds the unsent part to later updates, and compress.scheme = \
                 \"{}\" may lengthen an update, so that the rest may grow without bound; choose a projection",
                self.config.compress.feedback,
                self.parts.scheme.name()
            ));
        }
        cautions.extend(self.absurd_snr());
        cautions.extend(self.outside_of_the_law());
        if self.weighs_without_bias() && !facts.scheme.unbiased {
            cautions.push(format!(
                "schedule.policy = \"{}\" weighs updates so that their mean is unbiased, but compress.scheme \
                 = \"{}\" is not: the sum is biased all the same; unbiased schemes are {}",
                schedule.policy,
                self.parts.scheme.name(),
                unbiased_schemes().join(", ")
            ));
        }
        cautions
    }

    /// A mean SNR that no radio has.
    fn absurd_snr(&self) -> Option<String> {
        let radio = &self.config.radio;
        let bandwidth = radio.bandwidth_hz?;
        if let Some(snrs) = &radio.snr_db {
            let highest = snrs.levels().iter().copied().fold(f64::NEG_INFINITY, f64::max);
            return (highest > HIGHEST_SNR_DB).then(|| {
                format!(
                    "radio.snr_db has {highest} dB, which is {:.1} bits per symbol; no receiver has such \
                     an SNR",
                    bits_a_symbol(highest)
                )
            });
        }
        if self.facts.pathloss.has_loss || !radio.mean_gains.is_empty() || self.facts.fading.own_links {
            return None;
        }
        let noise_dbm = radio.noise_dbm_hz() + radio.noise_figure_db() + to_db(bandwidth);
        let snr_db = radio.power_dbm() - noise_dbm;
        (snr_db > HIGHEST_SNR_DB).then(|| {
            format!(
                "radio.bandwidth_hz is set, and there is no path loss: the mean SNR at radio.power_dbm is \
                 {snr_db:.0} dB, {:.0} bits per symbol; set radio.snr_db, cell.layout with cell.pathloss, \
                 or radio.mean_gains",
                bits_a_symbol(snr_db)
            )
        })
    }

    /// A cell for which the law of path loss was not stated.
    fn outside_of_the_law(&self) -> Vec<String> {
        let (cell, radio, law) = (&self.config.cell, &self.config.radio, &self.facts.pathloss);
        let (mut cautions, name) = (Vec::new(), &cell.pathloss);
        if !law.has_loss {
            return cautions;
        }
        if let Some(carrier) = law.carrier_hz
            && !(0.9 * carrier..=1.1 * carrier).contains(&radio.carrier_hz())
        {
            cautions.push(format!(
                "radio.carrier_hz is {} GHz, but cell.pathloss = \"{name}\" was stated for {} GHz and has no \
                 term of the frequency",
                radio.carrier_hz() / 1e9,
                carrier / 1e9
            ));
        }
        if let (Some(height), Some(stated)) = (cell.height_bs_m, law.height_bs_m)
            && height != stated
        {
            cautions.push(format!(
                "cell.height_bs_m is {height} m, but cell.pathloss = \"{name}\" was stated for {stated} m"
            ));
        }
        let nearest = cell.min_m.unwrap_or_else(|| law.min_m.min(0.5 * cell.radius_m()));
        if nearest < law.min_m {
            cautions.push(format!(
                "devices may be as near as {nearest} m (cell.min_m, or half of cell.radius_m = {}), but \
                 cell.pathloss = \"{name}\" holds from {} m on",
                cell.radius_m(),
                law.min_m
            ));
        }
        cautions
    }

    /// Delay spread and width of resource blocks over which the channel is not flat.
    fn wide_blocks(&self) -> Option<(f64, f64)> {
        let radio = &self.config.radio;
        let profile = Profile::named(&radio.profile, radio.delay_spread_s).ok()??;
        let count = self.facts.access.blocks? as usize;
        let spacing_hz = radio.bandwidth_hz? / count as f64;
        profile.not_flat_within(&Blocks { count, spacing_hz })?;
        Some((profile.rms_delay_s(), spacing_hz))
    }

    /// Whether the policy sets weights so that the mean of the updates is unbiased, over a link.
    fn weighs_without_bias(&self) -> bool {
        let policy = &self.facts.policy;
        policy.selection.bias == Bias::Unbiased && policy.selection.own_weights && policy.is_a_link
    }
}

/// The highest mean SNR without a caution, dB.
const HIGHEST_SNR_DB: f64 = 80.0;

/// log2(1 + γ).
fn bits_a_symbol(snr_db: f64) -> f64 {
    libm::log2(1.0 + from_db(snr_db))
}

/// The compression schemes that are unbiased by default.
fn unbiased_schemes() -> Vec<&'static str> {
    let is_unbiased = |entry: &&Entry<dyn Compressor>| {
        let built = entry.build(&toml::Table::new(), &Scope::default(), &());
        built.is_ok_and(|scheme| scheme.properties(2, 1).unbiased)
    };
    <dyn Compressor>::entries().iter().filter(is_unbiased).map(|entry| entry.name).collect()
}
