//! Refused requests: one message, exit code 2, nothing left behind.

use crate::{entries, refused};
use tempfile::TempDir;

#[test]
fn bad_requests_are_refused_with_the_flag_to_change() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("bad.txt"), "0.1 x").unwrap();
    std::fs::write(folder.path().join("short.txt"), "0.1 0.1").unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[bound]\nroundz = 3\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["bound", "--k", "101"], "--k: is 101, but must be in 1..=100"),
        (&["bound", "--k", "0"], "--k: is 0"),
        (&["bound", "--k", "x"], "--k"),
        (&["bound", "--tau", "0"], "--tau: is 0"),
        (&["bound", "--mu", "6", "--eta", "0.01"], "--l: is 5, but must be at least mu = 6"),
        (&["bound", "--gamma", "-1"], "--gamma: is -1"),
        (&["bound", "--g", "nan"], "--g: is NaN"),
        (&["bound", "--d0", "-3"], "--d0: is -3"),
        (&["bound", "--symbols", "1"], "--symbols: n = 1 carries"),
        (&["bound", "--symbols", "1.5"], "--symbols"),
        (&["bound", "--noise", "0"], "--noise: is 0"),
        (&["bound", "--rounds", "0"], "--rounds: is 0"),
        (&["bound", "--draws", "0"], "--draws: is 0"),
        (&["bound", "--channels", "worst"], "--channels"),
        (&["bound", "--eta", "1/(t+"], "--eta: expected a number"),
        (&["bound", "--eta", "400/(t+1000)"], "--eta: η(0) is 0.4"),
        (&["bound", "--eta", "0.3*(t-3)^2/100+0.001"], "--eta: η(14)"),
        (&["bound", "--eta", "@missing.txt"], "--eta: cannot read missing.txt"),
        (&["bound", "--eta", "@bad.txt"], "--eta: value 2 of bad.txt is \"x\""),
        (&["bound", "--eta", "@short.txt"], "--eta: has 2 values, but 1000 rounds are required"),
        (&["bound", "--eta", "@."], "--eta: cannot read ."),
        (&["bound", "--rho", "2"], "--rho: is 2, but must be in 0..=1"),
        (&["bound", "--rho", "x"], "--rho: \"x\" is neither a number"),
        (&["bound", "--rho", "@short.txt"], "--rho: has 2 values, but 1000 rounds are required"),
        (&["bound", "--rho", "0.1", "--symbols", "5"], "--symbols"),
        (&["bound", "--rho", "0.1", "--rounds", "1e15"], "--rounds: is 1000000000000000"),
        (&["bound", "--rounds", "1e15"], "--rounds: is 1000000000000000"),
        (&["bound", "--draws", "1e15"], "--draws: is 1000000000000000"),
        (&["bound", "--devices", "1e15"], "--devices: is 1000000000000000"),
        (&["bound", "--dim", "1e15"], "--dim: is 1000000000000000"),
        (&["plan", "--gamma", "2", "--g", "3"], "is now called fedlink bound plan"),
        (&["plan", "--measure=demo"], "is now called fedlink bound plan"),
        (&["bound", "plan", "--k", "5..3"], "--k"),
        (&["bound", "plan", "--k", "1..101"], "--k: is 101"),
        (&["bound", "plan", "--tau", "0..3"], "--tau: is 0"),
        (&["bound", "plan", "--target", "1"], "--target: no K and tau reach"),
        (&["bound", "plan", "--samples", "0"], "--samples"),
        (&["bound", "plan", "--lambda", "1"], "--measure"),
        (&["bound", "plan", "--measure", "no-such"], "no-such is neither a preset"),
        (&["bound", "plan", "--measure", "demo", "--gamma", "1"], "--gamma"),
        (&["bound", "plan", "--measure", "demo", "--lambda", "0"], "--lambda: is 0"),
        (&["run", "fig3", "--set", "bound.k=200"], "k: is 200"),
        (&["run", "fig3", "--resume"], "--resume is for simulations; fig3 is computed in one step"),
        (&["run", "theorem", "--quick"], "--quick is for simulations"),
        (&["run", "fig3", "--set", "schedule.k=2"], "bound.rounds"),
        (&["run", "fig3", "--set", "bound.round=20"], "did you mean rounds?"),
        (&["run", "fig3", "--set", "bound.eta=1/(t"], "--set bound.eta=1/(t"),
        (&["run", "theorem", "--seeds", "0"], "seeds: is 0"),
        (&["run", "theorem", "--set", "theorem.rounds=1e15"], "rounds: is 1000000000000000"),
        (&["run", "theorem", "--set", "quadratic.mu=9"], "l: is 4, but must be at least mu = 9"),
        (&["run", "bad.toml"], "line 2"),
        (&["run", "bad.toml"], "did you mean rounds?"),
    ];
    for (words, part) in cases {
        let message = refused(&folder, words);
        assert!(message.contains(part), "{words:?}: {message:?} lacks {part:?}");
        assert!(!message.contains("panicked"), "{message}");
    }
    assert_eq!(entries(folder.path()), ["bad.toml", "bad.txt", "short.txt"], "nothing is left behind");
}
