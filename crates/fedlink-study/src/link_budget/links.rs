//! The link of every device, as means over rounds.

use super::probe::CompressorProbe;
use super::{DeviceLink, LinkRow, rounds_there};
use fedlink::base::units::{DeviceId, Power, Symbols, from_db, to_db};
use fedlink::radio::access::Grant;
use fedlink::radio::{Known, PayloadMode, Radio};
use fedlink::spec::Spec;

/// The links to evaluate: rounds times devices.
const LINKS: usize = 80_000;
/// The most and the fewest rounds of means over fading.
const ROUNDS: (usize, usize) = (2000, 20);

/// Sums over rounds of one device.
#[derive(Clone, Default)]
struct Sums {
    power: f64,
    snr: f64,
    capacity: f64,
    shared: f64,
    silent: f64,
    lost: f64,
    uploads: Vec<f64>,
    /// The capacity and the grant of the round before.
    last: Option<(f64, Grant)>,
}

/// The link of every device, and the number of rounds of the means.
pub(super) fn device_links(
    spec: &Spec,
    radio: &Radio,
    smallest: Option<f64>,
    rounds: Option<u64>,
) -> (Vec<DeviceLink>, usize) {
    let (devices, k) = (radio.devices(), radio.k());
    let payload = spec.radio.mode == PayloadMode::Payload;
    // If devices transmit at the same time, a payload is timed with K − 1 equal ones beside it.
    let copies = if payload && radio.sends_together() { k } else { 1 };
    let steady = spec.radio.fading == "static" && !spec.cell.drift;
    let work = devices * if steady { 1 } else { copies };
    let enough = (LINKS / work.max(1)).clamp(ROUNDS.1, ROUNDS.0);
    let there = enough.min(rounds_there(spec) as usize);
    let rounds = rounds.map_or(there, |rounds| rounds.max(1) as usize);
    let symbol_s = radio.budget().symbol_s();
    let mut sums = vec![Sums::default(); devices];
    for t in 0..rounds as u64 {
        let links = radio.links(t);
        for (device, sum) in DeviceId::all(devices).zip(&mut sums) {
            let m = device.index();
            let known = &links.known;
            sum.power += known.powers[m];
            sum.snr += links.gains[m] * known.powers[m] / radio.noise();
            let capacity = known.capacity(device);
            sum.capacity += capacity;
            let grant = match sum.last {
                Some((before, grant)) if steady && before == capacity => grant,
                _ => share(radio, device, known, payload, copies),
            };
            sum.last = Some((capacity, grant));
            sum.shared += grant.budget.0;
            let silent = smallest.is_none_or(|smallest| grant.budget.0 < smallest);
            sum.silent += f64::from(u8::from(silent));
            let carried = radio.carry(t, device, &grant, &links);
            sum.lost += f64::from(u8::from(!carried.delivered));
            if payload {
                // A link that never carries the payload takes forever.
                let seconds = grant.airtime.0 * symbol_s.unwrap_or(1.0);
                sum.uploads.push(if grant.budget.0 > 0.0 { seconds } else { f64::INFINITY });
            }
        }
    }
    let link = |(device, mut sum): (DeviceId, Sums)| {
        let mean = |total: f64| total / rounds as f64;
        let alone = radio.budget().symbols as f64 * mean(sum.capacity);
        sum.uploads.sort_by(f64::total_cmp);
        let quantile = |share: f64| sum.uploads[((rounds - 1) as f64 * share) as usize];
        let place = radio.cell().map(|cell| (cell.position(0, device), cell.path(0, device)));
        DeviceLink {
            device: device.0,
            group: spec.group_of(device),
            x_m: place.map(|(position, _)| position.x_m),
            y_m: place.map(|(position, _)| position.y_m),
            distance_m: place.map(|(position, _)| position.distance_m()),
            loss_db: place.map(|(_, link)| link.loss_db),
            shadowing_db: place.map(|(_, link)| -link.shadowing_db),
            power: mean(sum.power),
            snr_db: to_db(mean(sum.snr)),
            bits_per_symbol: mean(sum.capacity),
            rate_bps: symbol_s.map(|symbol_s| mean(sum.capacity) / symbol_s),
            bits_alone: if payload { mean(sum.shared) } else { alone },
            bits_shared: mean(sum.shared),
            silent: mean(sum.silent),
            lost: mean(sum.lost),
            upload_s: payload.then(|| [quantile(0.5), quantile(0.9)]),
        }
    };
    (DeviceId::all(devices).zip(sums).map(link).collect(), rounds)
}

/// The grant of a device in a round that it shares with K − 1 others.
fn share(radio: &Radio, device: DeviceId, known: &Known, payload: bool, copies: usize) -> Grant {
    if payload {
        return radio.grant(&vec![device; copies], &vec![1.0; copies], known).swap_remove(0);
    }
    let mut whole = Grant::nothing(Power(0.0));
    whole.symbols = Symbols(radio.band().symbols as f64 / radio.k() as f64);
    whole.airtime.0 = if radio.sends_together() { radio.band().symbols as f64 } else { whole.symbols.0 };
    radio.transfer(&whole, device, known)
}

/// Groups, or devices by distance or otherwise by SNR.
pub(super) fn rows(spec: &Spec, links: &[DeviceLink], probe: &mut CompressorProbe) -> Vec<LinkRow> {
    let mut row = |label: String, of: &[&DeviceLink]| {
        let link = mean_link(of);
        let (level_alone, level_shared) = (probe.level(link.bits_alone), probe.level(link.bits_shared));
        let highest_level = probe.highest_level();
        LinkRow { label, devices: of.len(), link, level_alone, level_shared, highest_level }
    };
    let groups = links.iter().filter_map(|link| link.group).max();
    if let Some(last) = groups {
        let of = |group| links.iter().filter(|link| link.group == Some(group)).collect::<Vec<_>>();
        return (0..=last).map(|group| row(spec.group_name(group), &of(group))).collect();
    }
    let spread = |value: fn(&DeviceLink) -> f64| {
        let all = links.iter().map(value);
        all.clone().fold(f64::NEG_INFINITY, f64::max) - all.fold(f64::INFINITY, f64::min)
    };
    let distance = |link: &DeviceLink| link.distance_m.unwrap_or(0.0);
    let gain = |link: &DeviceLink| -link.shadowing_db.unwrap_or(0.0) - link.loss_db.unwrap_or(0.0);
    let by_distance = spread(distance) > 1e-9;
    // Means over fading differ from draw to draw; a decibel does not.
    if !by_distance && spread(gain) < 1e-9 && spread(|link| link.snr_db) < 1.0 {
        return vec![row("every device".into(), &links.iter().collect::<Vec<_>>())];
    }
    let mut sorted: Vec<&DeviceLink> = links.iter().collect();
    let key = |link: &DeviceLink| if by_distance { distance(link) } else { -link.snr_db };
    sorted.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let ends = if by_distance { ["nearest", "farthest"] } else { ["best", "worst"] };
    let at = |share: f64| ((sorted.len() - 1) as f64 * share + 0.5) as usize;
    let places = [(ends[0], 0.0), ("10 %", 0.1), ("median", 0.5), ("90 %", 0.9), (ends[1], 1.0)];
    places.into_iter().map(|(label, share)| row(label.into(), &[sorted[at(share)]])).collect()
}

/// The mean of several links; decibels are averaged as ratios.
fn mean_link(of: &[&DeviceLink]) -> DeviceLink {
    let count = of.len().max(1) as f64;
    let mean = |value: &dyn Fn(&DeviceLink) -> f64| of.iter().map(|link| value(link)).sum::<f64>() / count;
    let first = of.first().map_or_else(DeviceLink::default, |link| (*link).clone());
    DeviceLink {
        power: mean(&|link| link.power),
        snr_db: to_db(mean(&|link| from_db(link.snr_db))),
        bits_per_symbol: mean(&|link| link.bits_per_symbol),
        rate_bps: first.rate_bps.map(|_| mean(&|link| link.rate_bps.unwrap_or(0.0))),
        bits_alone: mean(&|link| link.bits_alone),
        bits_shared: mean(&|link| link.bits_shared),
        silent: mean(&|link| link.silent),
        lost: mean(&|link| link.lost),
        upload_s: first
            .upload_s
            .map(|_| [0, 1].map(|i| mean(&|link| link.upload_s.map_or(0.0, |seconds| seconds[i])))),
        ..first
    }
}
