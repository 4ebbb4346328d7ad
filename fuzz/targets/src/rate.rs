//! Any text is a learning rate of the theory, which has a value in every round, or the schedule of a
//! run's rate, which has a factor in every round, and its printed form parses back; or it is an error.

use fedlink::learn::rate::RateSchedule;
use fedlink_theory::rate::Rate;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(schedule) = text.parse::<RateSchedule>() {
        assert_eq!(schedule.to_string().parse(), Ok(schedule));
        for (t, rounds) in [(0, 1), (1, 100), (99, 100), (u64::MAX, u64::MAX)] {
            assert!((0.0..=1.0).contains(&schedule.factor(t, rounds)));
        }
    }
    match text.parse::<Rate>() {
        Err(error) => assert!(error.to_string().len() < 16 * (text.len() + 100)),
        Ok(rate) => {
            let again: Rate = rate.to_string().parse().expect("a printed rate parses");
            for t in [0, 1, 1000, usize::MAX] {
                let [first, second] = [&rate, &again].map(|rate| rate.at(t, 0.5, 3).expect("no table"));
                assert!(first.to_bits() == second.to_bits() || first.is_nan() && second.is_nan());
            }
            if let Ok(rates) = rate.values(0.5, 3, 20) {
                assert!(rates.iter().all(|eta| *eta > 0.0 && *eta <= 2.0 / 3.0 * (1.0 + 1e-9)));
            }
        }
    }
}
