use super::*;
use crate::base::units::{Airtime, Bits, Power, Symbols};
use crate::clock::compute::{Compute, Load};
use crate::clock::downlink::ideal::Ideal;
use crate::clock::jitter::steady::Steady;
use crate::clock::spread::equal::Equal;
use crate::parts::Parts;
use crate::radio::access::{Band, Grant};
use crate::schedule::{Ask, Weight};
use crate::spec::Config;
use proptest::prelude::*;

/// Seconds of the training of each device.
struct Given(Vec<f64>);

impl Compute for Given {
    fn seconds(&self, device: DeviceId, _: &Load) -> f64 {
        self.0[device.index()]
    }
}

fn parts(seconds: &[f64]) -> ClockParts {
    ClockParts {
        devices: seconds.len(),
        symbol_s: 1e-3,
        report_symbol_s: 1e-3,
        uplink_s: Some(2.0),
        compute: Box::new(Given(seconds.to_vec())),
        spread: Box::new(Equal {}),
        jitter: Box::new(Steady {}),
        downlink: Box::new(Ideal {}),
        report_bits: 0.0,
        report_efficiency: 0.5,
        deadline_s: None,
        together: false,
        pipeline: false,
        power: PowerDraw { compute_w: 2.0, circuit_w: 0.5, pa_efficiency: 0.25, receive_w: 0.0, idle_w: 0.1 },
        speeds: Vec::new(),
        batteries_j: Vec::new(),
        work: Arc::new(|_| Load::default()),
        dim: 10,
    }
}

fn call(candidates: &[u32], asks: &[Ask]) -> Call {
    Call {
        t: 0,
        k: candidates.len(),
        candidates: candidates.iter().map(|&m| DeviceId(m)).collect(),
        asks: asks.to_vec(),
        alone: vec![Bits(1.0); candidates.len()],
        report_symbols: Vec::new(),
        acknowledged: Vec::new(),
    }
}

/// Links of devices that send with 1 W.
fn known(devices: usize) -> Known {
    Known::new(vec![1.0; devices], vec![1.0; devices], Power(1.0))
}

/// A device that sends for this number of symbols with 3 W.
fn sends(device: u32, symbols: f64) -> (Scheduled, Carried) {
    let grant = Grant {
        symbols: Symbols(symbols),
        power: Power(3.0),
        airtime: Airtime(symbols),
        budget: Bits(1.0),
        block_snr: 0.0,
    };
    let scheduled = Scheduled {
        device: DeviceId(device),
        grant,
        capacity: 1.0,
        bit_weight: 1.0,
        weight: Weight::Rule,
        band: Band { symbols: 5000 },
    };
    (scheduled, Carried { delivered: true, airtime: grant.airtime })
}

/// A radio without an effect.
fn radio() -> Radio {
    crate::system::build::radio(&Config::default().resolve(&Parts::default()).unwrap(), 10).unwrap()
}

struct Round {
    cost: Cost,
    late: Vec<bool>,
    carried: Vec<Carried>,
}

fn round(parts: ClockParts, call: &Call, trained: &[u32], sent: &[(Scheduled, Carried)]) -> Round {
    round_after(0.0, parts, call, trained, sent)
}

/// A round of devices that have each spent this energy before.
fn round_after(
    spent: f64,
    parts: ClockParts,
    call: &Call,
    trained: &[u32],
    sent: &[(Scheduled, Carried)],
) -> Round {
    let devices = parts.devices;
    let clock = Clock::new(parts);
    let trained: Vec<DeviceId> = trained.iter().map(|&m| DeviceId(m)).collect();
    let timing = clock.begin(0, &trained, &radio());
    let (scheduled, mut carried): (Vec<Scheduled>, Vec<Carried>) = sent.iter().copied().unzip();
    let (powers, spent_j) = (vec![4.0; devices], |_| spent);
    let uploads = Uploads::new(call, &trained, &scheduled, &powers, &spent_j);
    let (cost, late) = clock.finish(&timing, &Present::default(), &uploads, &mut carried);
    Round { cost: cost.unwrap(), late, carried }
}

#[test]
fn a_round_by_hand() {
    // Three of four train, two report a number of 5 bits at 0.5 bit/symbol, one sends for 500 symbols of 1
    // ms.
    let made = ClockParts { report_bits: 5.0, ..parts(&[1.0, 3.0, 9.0, 2.0]) };
    let call = call(&[0, 1], &[Ask::Norm]);
    let Round { cost, late, .. } = round(made, &call, &[0, 1, 3], &[sends(1, 500.0)]);
    // The server waits for its candidates alone; a report takes 10 symbols.
    assert_eq!(cost.phases, Phases { down_s: 0.0, train_s: 3.0, report_s: 0.02, up_s: 2.0 });
    assert_eq!(late, [false]);
    let of = |m: u32| cost.devices.iter().find(|(device, _)| device.0 == m).unwrap().1;
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    near(of(0).compute_j, 2.0);
    near(of(1).compute_j, 6.0);
    // (P/η + P_c)·t: 4 W for a report, 3 W for the upload.
    near(of(0).report_j, (4.0 / 0.25 + 0.5) * 0.01);
    near(of(1).transmit_j, (3.0 / 0.25 + 0.5) * 0.5);
    near(of(1).idle_j, 0.1 * (5.02 - 3.0 - 0.01 - 0.5));
    near(of(2).idle_j, 0.1 * 5.02);
    assert_eq!(of(2).compute_j, 0.0);
    near(of(3).compute_j, 4.0);
}

#[test]
fn a_late_device_has_trained_and_sends_nothing_and_the_round_ends_at_the_deadline() {
    let made = ClockParts { deadline_s: Some(5.0), ..parts(&[1.0, 4.0]) };
    let sent = [sends(0, 100.0), sends(1, 100.0)];
    let Round { cost, late, carried } = round(made, &call(&[0, 1], &[]), &[0, 1], &sent);
    // 4 s of training and 2 s of uplink are too long, 1 + 2 are not.
    assert_eq!(late, [false, true]);
    // The server waits for 3 s, so that the uplink of 2 s ends at the deadline.
    assert_eq!(cost.phases, Phases { down_s: 0.0, train_s: 3.0, report_s: 0.0, up_s: 2.0 });
    assert!(cost.devices[0].1.transmit_j > 0.0);
    assert!(cost.devices[1].1.compute_j > 0.0 && cost.devices[1].1.transmit_j == 0.0);
    assert_eq!([carried[0].airtime, carried[1].airtime], [Airtime(100.0), Airtime(0.0)]);
}

/// Phases that are possible together, whichever devices are late: with reports and without.
#[test]
fn every_used_upload_has_an_uplink_and_the_phases_add_up_to_the_deadline() {
    let everyone: Vec<DeviceId> = DeviceId::all(3).collect();
    for (seconds, asks, used, phases) in [
        ([1.0, 2.0, 2.5], vec![Ask::Norm], 3, [2.5, 0.06, 2.0]),
        ([1.0, 2.0, 9.0], vec![Ask::Norm], 2, [2.94, 0.06, 2.0]),
        ([8.0, 7.0, 9.0], vec![Ask::Norm], 0, [5.0, 0.0, 0.0]),
        ([1.0, 2.0, 2.5], vec![], 3, [2.5, 0.0, 2.0]),
        ([1.0, 2.0, 9.0], vec![], 2, [3.0, 0.0, 2.0]),
        ([8.0, 7.0, 9.0], vec![], 0, [5.0, 0.0, 0.0]),
    ] {
        let made = ClockParts { deadline_s: Some(5.0), report_bits: 10.0, ..parts(&seconds) };
        let clock = Clock::new(made);
        let call = call(&[0, 1, 2], &asks);
        let mut timing = clock.begin(0, &everyone, &radio());
        let reports = Reports::new(everyone.clone(), asks.len(), vec![1.0; 3 * asks.len()]);
        let reports = clock.in_time(&mut timing, &call, reports);
        let (scheduled, mut carried): (Vec<Scheduled>, Vec<Carried>) =
            reports.devices.iter().map(|device| sends(device.0, 100.0)).unzip();
        let powers = [1.0; 3];
        let uploads = Uploads::new(&call, &everyone, &scheduled, &powers, &|_| 0.0);
        let (cost, late) = clock.finish(&timing, &Present::default(), &uploads, &mut carried);
        let cost = cost.unwrap();
        let Phases { train_s, report_s, up_s, .. } = cost.phases;
        let off =
            [train_s, report_s, up_s].iter().zip(phases).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "{seconds:?} {asks:?}: {:?}", cost.phases);
        let count = |is_late| late.iter().filter(|late| **late == is_late).count() as u64;
        assert_eq!(count(false), used, "{seconds:?} {asks:?}");
        // Late devices are counted alike, whether their report or their upload was due.
        assert_eq!(count(true) + cost.unreported, 3 - used, "{seconds:?} {asks:?}");
        let sending = cost.devices.iter().filter(|(_, spent)| spent.transmit_j > 0.0).count() as u64;
        let reporting = cost.devices.iter().filter(|(_, spent)| spent.report_j > 0.0).count() as u64;
        assert_eq!((sending, reporting), (used, if asks.is_empty() { 0 } else { used }), "{seconds:?}");
    }
}

#[test]
fn a_fixed_payload_is_cut_off_at_the_deadline() {
    let made = ClockParts { uplink_s: None, deadline_s: Some(5.0), ..parts(&[1.0, 2.0]) };
    let sent = [sends(0, 2000.0), sends(1, 2000.0)];
    let Round { cost, late, carried } = round(made, &call(&[0, 1], &[]), &[0, 1], &sent);
    // From 2 s to 4 s, and from 4 s on for the second, which has one of its two seconds.
    assert_eq!(late, [false, true]);
    assert_eq!((cost.phases.train_s, cost.phases.up_s), (2.0, 3.0));
    assert!((carried[1].airtime.0 - 1000.0).abs() < 1e-9, "{carried:?}");
    assert!((cost.devices[1].1.transmit_j - (3.0 / 0.25 + 0.5)).abs() < 1e-12);
}

#[test]
fn no_device_spends_more_than_its_battery_has_and_an_upload_ends_with_it() {
    // 2 W for 1 s of training, 12.5 W for 1 s of sending, 0.1 W of waiting.
    let made = |battery_j: f64| ClockParts { batteries_j: vec![battery_j; 2], ..parts(&[1.0, 1.0]) };
    for (battery, spent, total, delivered) in
        [(20.0, 0.0, 14.6, true), (20.0, 5.5, 14.5, true), (20.0, 8.0, 12.0, false), (20.0, 19.0, 1.0, false)]
    {
        let sent = [sends(0, 1000.0)];
        let Round { cost, carried, .. } = round_after(spent, made(battery), &call(&[0], &[]), &[0], &sent);
        let own = cost.devices[0].1;
        assert!((own.total() - total).abs() < 1e-12, "{spent}: {own:?}");
        assert_eq!(carried[0].delivered, delivered, "{spent}");
        let air = (own.transmit_j / 12.5).min(1.0);
        assert!((carried[0].airtime.0 - 1000.0 * air).abs() < 1e-9, "{spent}: {carried:?}");
    }
}

#[test]
fn a_device_that_reports_after_the_deadline_cannot_be_selected() {
    let clock = Clock::new(ClockParts { deadline_s: Some(5.0), ..parts(&[1.0, 4.0, 2.5]) });
    let everyone: Vec<DeviceId> = DeviceId::all(3).collect();
    let mut timing = clock.begin(0, &everyone, &radio());
    let reports = Reports::new(everyone, 1, vec![7.0, 8.0, 9.0]);
    let asked = call(&[0, 1, 2], &[Ask::Norm]);
    let kept = clock.in_time(&mut timing, &asked, reports.clone());
    assert_eq!(kept, Reports::new(vec![DeviceId(0), DeviceId(2)], 1, vec![7.0, 9.0]));
    // Without reports the server waits for no device.
    let silent = Reports::new(reports.devices, 0, vec![]);
    assert_eq!(timing.unreported, [DeviceId(1)]);
    assert_eq!(clock.in_time(&mut timing, &call(&[0, 1, 2], &[]), silent.clone()), silent);
}

#[test]
fn payloads_go_one_after_another_or_side_by_side() {
    let times = |together| {
        let made = ClockParts { uplink_s: None, together, ..parts(&[1.0, 2.0]) };
        let sent = [sends(0, 3000.0), sends(1, 1000.0)];
        round(made, &call(&[0, 1], &[]), &[0, 1], &sent).cost.phases
    };
    assert_eq!(times(false).up_s, 4.0);
    assert_eq!(times(true).up_s, 3.0);
    assert_eq!(times(true).train_s, 2.0);
}

#[test]
fn a_clock_without_units_counts_nothing() {
    let clock = Clock::default();
    let timing = clock.begin(0, &[DeviceId(0)], &radio());
    let (one, carried) = sends(0, 1.0);
    let (call, trained, scheduled) = (call(&[0], &[]), [DeviceId(0)], [one]);
    let uploads = Uploads::new(&call, &trained, &scheduled, &[1.0], &|_| 0.0);
    let (cost, late) = clock.finish(&timing, &Present::default(), &uploads, &mut [carried]);
    assert_eq!((cost, late), (None, vec![false]));
    assert!(clock.present(0, &radio(), |_| 1e9, &known(1)).contains(DeviceId(0)));
}

#[test]
fn a_battery_that_cannot_pay_a_round_keeps_its_device_out() {
    // 2 W for 1 s of training, and (1/0.25 + 0.5) W for 2 s of sending: 11 J.
    let clock = Clock::new(ClockParts { batteries_j: vec![30.0; 2], ..parts(&[1.0, 1.0]) });
    let present = clock.present(0, &radio(), |m| [18.9, 19.1][m], &known(2));
    assert!(present.contains(DeviceId(0)) && !present.contains(DeviceId(1)));
    assert_eq!(present.empty, 1);
}

/// The end of the last upload in the best of all orders.
fn best_order(ready: &[f64], air: &[f64], done: f64, left: &mut Vec<usize>) -> f64 {
    if left.is_empty() {
        return done;
    }
    let mut best = f64::INFINITY;
    for i in 0..left.len() {
        let one = left.remove(i);
        best = best.min(best_order(ready, air, done.max(ready[one]) + air[one], left));
        left.insert(i, one);
    }
    best
}

proptest! {
    #[test]
    fn earliest_ready_first_is_the_best_of_all_orders(
        devices in prop::collection::vec((0.0..5.0f64, 0.0..3.0f64), 1..6),
    ) {
        let (ready, air): (Vec<f64>, Vec<f64>) = devices.into_iter().unzip();
        let last = pipelined(&ready, &air).into_iter().fold(0.0, f64::max);
        let best = best_order(&ready, &air, 0.0, &mut (0..ready.len()).collect());
        prop_assert!((last - best).abs() < 1e-9, "{last} {best}");
        let (sum, slowest) = (air.iter().sum::<f64>(), ready.iter().copied().fold(0.0, f64::max));
        let own = ready.iter().zip(&air).map(|(t, u)| t + u).fold(0.0, f64::max);
        let first = ready.iter().copied().fold(f64::INFINITY, f64::min);
        prop_assert!(last >= own - 1e-9 && last <= slowest + sum + 1e-9 && last >= first + sum - 1e-9);
    }

    /// Sum over devices = sum over kinds = total, to the last digits.
    #[test]
    fn energies_balance(
        seconds in prop::collection::vec(0.0..9.0f64, 1..20),
        k in 1usize..5,
        bits in 0.0..9.0f64,
    ) {
        let devices = seconds.len();
        let k = k.min(devices);
        let made = ClockParts { report_bits: bits, ..parts(&seconds) };
        let everyone: Vec<u32> = (0..devices as u32).collect();
        let sent: Vec<(Scheduled, Carried)> = (0..k as u32).map(|m| sends(m, 100.0)).collect();
        let Round { cost, .. } = round(made, &call(&everyone, &[Ask::Norm]), &everyone, &sent);
        let by_device: f64 = cost.devices.iter().map(|(_, spent)| spent.total()).sum();
        let Energy { compute_j, report_j, transmit_j, receive_j, idle_j } = cost.energy;
        let by_kind = compute_j + report_j + transmit_j + receive_j + idle_j;
        prop_assert!((by_device - by_kind).abs() <= 1e-9 * by_kind.max(1.0));
        prop_assert!((cost.energy.total() - by_kind).abs() <= 1e-12 * by_kind.max(1.0));
        let trained: f64 = seconds.iter().map(|s| 2.0 * s).sum();
        prop_assert!((compute_j - trained).abs() <= 1e-9 * trained.max(1.0));
    }
}
