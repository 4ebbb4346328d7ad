//! Any bytes are a table of finite numbers for rounds, devices and blocks, or an error.

use fedlink::radio::trace::{Times, parse};

pub fn run(file: &[u8]) {
    let Ok(trace) = parse(file) else { return };
    assert!(trace.rows > 0 && trace.devices > 0 && trace.blocks > 0);
    assert_eq!(trace.values.len(), trace.rows * trace.devices * trace.blocks);
    assert!(trace.values.iter().all(|value| value.is_finite()));
    assert_eq!(trace.at(trace.rows - 1, trace.devices - 1).len(), trace.blocks);
    match &trace.times {
        Times::Rounds => {}
        Times::Step(seconds) => assert!(seconds.is_finite() && *seconds > 0.0),
        Times::At(times) => {
            assert_eq!(times.len(), trace.rows);
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
