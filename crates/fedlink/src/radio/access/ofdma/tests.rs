use super::super::tests::{BAND, SHANNON, link};
use super::*;
use crate::base::rng::{Purpose, stream};
use crate::radio::access::Fdma;
use crate::radio::rate::{FiniteBlocklength, Rate};
use toml::Table;

fn ofdma(blocks: usize, assign: Assign) -> Ofdma {
    Ofdma { blocks, assign, ..Ofdma::default() }
}

/// Exponential gains of `blocks` blocks.
fn gains(blocks: usize, device: u64) -> Vec<f64> {
    let mut stream = stream(5, Purpose::Test, 0, device);
    (0..blocks).map(|_| stream.exponential()).collect()
}

#[test]
fn flat_gains_and_many_blocks_are_frequency_division_up_to_a_block_for_each_device() {
    let links = [0.3, 4.0, 40.0].map(link);
    let weights = [1.0, 2.0, 1.5];
    let truth = Fdma::default().grant(&weights, &links, &BAND);
    for blocks in [100, 1000, 5000] {
        let grants = ofdma(blocks, Assign::Greedy).grant(&weights, &links, &BAND);
        for (grant, truth) in grants.iter().zip(&truth) {
            // A device takes a block only while it is behind, so it is at most one ahead, and it lacks what
            // the others are ahead.
            let ahead = (grant.symbols.0 - truth.symbols.0) / 5000.0 * blocks as f64;
            assert!((-2.0..=1.0).contains(&ahead), "{blocks} blocks: {grant:?}, not {truth:?}");
            let bits = (grant.budget.0 / truth.budget.0 - 1.0).abs() * truth.symbols.0 / 5000.0;
            assert!(bits <= 1.0 / blocks as f64, "{blocks} blocks: {grant:?}, not {truth:?}");
        }
        assert!((grants.iter().map(|grant| grant.symbols.0).sum::<f64>() - 5000.0).abs() < 1e-6);
    }
}

#[test]
fn the_bits_of_a_device_are_the_sum_over_its_blocks() {
    let blocks = gains(12, 1);
    let link = Uplink { blocks: &blocks, ..link(3.0) };
    let chosen = [0, 3, 4, 11];
    let expected: f64 =
        chosen.iter().map(|&k| 5000.0 / 12.0 * SHANNON.bits(3.0 * blocks[k] * 12.0 / 4.0, 1.0)).sum();
    let bits = ofdma(12, Assign::Greedy).bits_in(&link, &chosen, BAND);
    assert!((bits / expected - 1.0).abs() < 1e-12, "{bits}, not {expected}");
}

#[test]
fn every_block_has_one_device_and_all_are_used() {
    let tables: Vec<Vec<f64>> = (0..5).map(|m| gains(24, m)).collect();
    let links: Vec<Uplink> = tables.iter().map(|blocks| Uplink { blocks, ..link(2.0) }).collect();
    for (assign, used) in [(Assign::Greedy, 24), (Assign::Hungarian, 5), (Assign::Contiguous, 24)] {
        let assigned = ofdma(24, assign).assigned(&[1.0, 2.0, 1.0, 0.5, 1.0], &links, BAND);
        let mut all: Vec<usize> = assigned.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), used, "{assign:?}");
        assert_eq!(assigned.concat().len(), used, "{assign:?}");
    }
}

#[test]
fn choosing_blocks_carries_more_than_taking_them_side_by_side() {
    let tables: Vec<Vec<f64>> = (0..4).map(|m| gains(64, m)).collect();
    let links: Vec<Uplink> = tables.iter().map(|blocks| Uplink { blocks, ..link(4.0) }).collect();
    let least = |assign| {
        let grants = ofdma(64, assign).grant(&[1.0; 4], &links, &BAND);
        grants.iter().map(|grant| grant.budget.0).fold(f64::MAX, f64::min)
    };
    assert!(least(Assign::Greedy) > 1.1 * least(Assign::Contiguous));
}

#[test]
fn one_block_each_carries_the_most_in_all() {
    let tables: Vec<Vec<f64>> = (0..3).map(|m| gains(5, 10 + m)).collect();
    let links: Vec<Uplink> = tables.iter().map(|blocks| Uplink { blocks, ..link(1.5) }).collect();
    let scheme = ofdma(5, Assign::Hungarian);
    let total: f64 = scheme.grant(&[1.0; 3], &links, &BAND).iter().map(|grant| grant.budget.0).sum();
    let mut best = 0.0f64;
    for code in 0..125 {
        let [a, b, c] = [code % 5, code / 5 % 5, code / 25];
        if a != b && b != c && a != c {
            let bits = |(&block, link): (&usize, &Uplink)| scheme.bits_in(link, &[block], BAND);
            let sum = [a, b, c].iter().zip(&links).map(bits).sum();
            best = best.max(sum);
        }
    }
    assert!((total - best).abs() < 1e-9, "{total}, not {best}");
}

#[test]
fn a_fixed_payload_is_carried_in_the_airtime_of_the_grant() {
    let finite = FiniteBlocklength::new(1e-3);
    let tables: Vec<Vec<f64>> = (0..3).map(|m| gains(20, m)).collect();
    let rates: [&dyn Rate; 3] = [&SHANNON, &finite, &SHANNON];
    let links: Vec<Uplink> =
        tables.iter().zip(rates).map(|(blocks, rate)| Uplink { rate, blocks, ..link(4.0) }).collect();
    for assign in [Assign::Greedy, Assign::Hungarian, Assign::Contiguous] {
        let scheme = ofdma(20, assign);
        let bits = [3000.0, 500.0, 40.0];
        let grants = scheme.payload(&bits, &links, &[0.0; 3], &BAND);
        let assigned = scheme.assigned(&bits, &links, BAND);
        for ((grant, link), (blocks, bits)) in grants.iter().zip(&links).zip(assigned.iter().zip(bits)) {
            assert_eq!(grant.budget, Bits(bits));
            let share = blocks.len() as f64 / 20.0;
            assert!((grant.symbols.0 / (grant.airtime.0 * share) - 1.0).abs() < 1e-12);
            let snr = scheme.snr(link, blocks.len(), blocks.iter().map(|&k| gain(link, k)));
            assert!((link.rate.bits(snr, grant.symbols.0) / bits - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn waterfilling_over_blocks_carries_the_most_of_all_ways_to_share_the_power() {
    for (snr, blocks) in [(3.0, [0.2, 1.7, 1.1]), (0.02, [0.0, 2.0, 1.9]), (40.0, [0.01, 0.5, 3.0])] {
        let link = Uplink { blocks: &blocks, ..link(snr) };
        let scheme = Ofdma { power: BlockPower::Waterfilling, ..ofdma(3, Assign::Greedy) };
        let bits = scheme.bits_in(&link, &[0, 1, 2], BAND);
        let equal = ofdma(3, Assign::Greedy).bits_in(&link, &[0, 1, 2], BAND);
        let steps = 400;
        let mut best = 0.0f64;
        for i in 0..=steps {
            for j in 0..=steps - i {
                let parts = [i, j, steps - i - j].map(|part| f64::from(part) / f64::from(steps));
                let in_block = |(gain, part): (f64, f64)| (1.0 + snr * 3.0 * gain * part).log2();
                best = best.max(blocks.into_iter().zip(parts).map(in_block).sum::<f64>() * 5000.0 / 3.0);
            }
        }
        assert!(bits >= best * (1.0 - 1e-12) && bits <= best * 1.001, "{bits}, not {best}");
        assert!(bits >= equal, "{bits}, {equal}");
    }
    // Gains of zero carry no bits.
    let dead = [0.0; 3];
    let scheme = Ofdma { power: BlockPower::Waterfilling, ..ofdma(3, Assign::Greedy) };
    assert_eq!(scheme.bits_in(&Uplink { blocks: &dead, ..link(1.0) }, &[0, 1, 2], BAND), 0.0);
}

#[test]
fn the_exponential_effective_snr_is_the_snr_of_equal_blocks_and_at_most_the_mean() {
    let scheme = |beta| Ofdma { eesm_beta: Some(beta), ..ofdma(2, Assign::Greedy) };
    let snr = |beta, blocks: &[f64]| scheme(beta).snr_in(&Uplink { blocks, ..link(4.0) }, &[0, 1]);
    assert!((snr(1.5, &[1.0, 1.0]) - 4.0).abs() < 1e-12);
    // γ = 2 and 6: −β·ln((e^(−2/β) + e^(−6/β))/2).
    for beta in [0.5, 1.5, 7.0f64] {
        let truth = -beta * f64::midpoint((-2.0 / beta).exp(), (-6.0 / beta).exp()).ln();
        assert!((snr(beta, &[0.5, 1.5]) - truth).abs() < 1e-12 && truth < 4.0);
    }
    // Far above β the exponentials vanish; the result does not.
    let strong = scheme(1.0).snr_in(&Uplink { blocks: &[0.5, 1.5], ..link(1e6) }, &[0, 1]);
    assert!((strong - (5e5 + 2f64.ln())).abs() < 1e-6, "{strong}");
    let build = |text: &str| {
        let own: Table = text.parse().unwrap();
        let scope = Scope { k: 1, ..Scope::default() };
        ENTRY.build(&own, &scope, &SlotKind::Real).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(build("effective_snr = \"eesm\"\neesm_beta = 2"), Ok(()));
    assert!(build("eesm_beta = 2.0").unwrap_err().starts_with("radio.ofdma.eesm_beta: has no effect here"));
    let error = build("effective_snr = \"eesm\"\neesm_beta = 0.0").unwrap_err();
    assert!(error.starts_with("radio.ofdma.eesm_beta: is 0, but must be > 0"), "{error}");
}

#[test]
fn fewer_blocks_than_scheduled_devices_are_refused() {
    let build = |text: &str, k: u64| {
        let own: Table = text.parse().unwrap();
        let scope = Scope { k, ..Scope::default() };
        ENTRY.build(&own, &scope, &SlotKind::Real).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(build("resource_blocks = 5\nassign = \"hungarian\"", 5), Ok(()));
    let error = build("resource_blocks = 5", 6).unwrap_err();
    assert!(error.starts_with("radio.ofdma.resource_blocks: is 5, but must be in 6..=4096"), "{error}");
}
