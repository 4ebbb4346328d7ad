//! The report and the live page in a real browser: `tests/browser`, driven by Node and Debian's Chromium.

use crate::background::Background;
use crate::{build, cargo_path, run, step};
use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// The files of `tests/browser`; they are run from a copy under `target/`, beside their packages.
const FILES: [&str; 5] =
    ["package.json", "package-lock.json", "report.test.mjs", "live.test.mjs", "contrast.mjs"];

/// Runs the tests of `tests/browser` on the example pages and the report of a small run.
pub fn test(root: &Path) -> anyhow::Result<()> {
    start(root)?.finish()
}

/// Writes those pages, and starts the tests in the background.
pub fn start(root: &Path) -> anyhow::Result<Background> {
    step("pages for the browser");
    let folder = root.join("target/browser");
    let pages = folder.join("pages");
    if pages.exists() {
        std::fs::remove_dir_all(&pages)?;
    }
    std::fs::create_dir_all(&pages)?;
    let lock = folder.join("node_modules/.fedlink-lock.json");
    let wanted = std::fs::read(root.join("tests/browser/package-lock.json"))?;
    for file in FILES {
        std::fs::copy(root.join("tests/browser").join(file), folder.join(file))
            .with_context(|| format!("cannot copy tests/browser/{file}"))?;
    }
    if std::fs::read(&lock).ok().as_ref() != Some(&wanted) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        run(&mut npm)?;
        std::fs::write(&lock, wanted)?;
    }
    // Of the whole workspace: a single package would be built again, with fewer features of its
    // dependencies.
    run(Command::new(cargo_path())
        .args(["test", "--quiet", "--workspace", "--tests", "--", "--exact"])
        .arg("report::tests::the_example_pages_are_well_formed_and_always_the_same")
        .env("FEDLINK_EXAMPLE_PAGES", &pages))?;
    write_real_pages(root, &folder, &pages)?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"])
        .args([folder.join("report.test.mjs"), folder.join("live.test.mjs")])
        .env("FEDLINK_PAGES", &pages)
        .env("FEDLINK", root.join("target/debug/fedlink"))
        .env("FEDLINK_LIVE_FOLDER", folder.join("run-units"));
    Background::start("report in the browser", &mut node, folder.join("tests.log"))
}

/// The reports of two real runs, one of them in physical units, small enough to take a second each, with
/// their `summary.json` for comparison.
fn write_real_pages(root: &Path, folder: &Path, pages: &Path) -> anyhow::Result<()> {
    const SETTINGS: [&str; 6] = [
        "learn.model=softmax",
        "data.devices=8",
        "data.samples_per_device=50",
        "learn.batch=16",
        "run.rounds=6",
        "run.evaluate_every=1",
    ];
    const RUNS: [(&str, &[&str]); 2] = [
        ("run", &["radio.symbols=500"]),
        (
            "run-units",
            &[
                "radio.bandwidth_hz=1e5",
                "cell.layout=disc",
                "cell.pathloss=3gpp-macro",
                "clock.compute=flops",
            ],
        ),
    ];
    build(&["--bins", "--examples"])?;
    for (name, settings) in RUNS {
        let results = folder.join(name);
        let mut fedlink = Command::new(root.join("target/debug/fedlink"));
        fedlink.args(["run", "--quiet", "--seeds", "3"]);
        fedlink.args(SETTINGS.iter().chain(settings).flat_map(|setting| ["--set", setting]));
        run(fedlink.args(["--force", "--out"]).arg(&results))?;
        for (from, to) in [("report.html", "html"), ("summary.json", "summary.json")] {
            std::fs::copy(results.join(from), pages.join(format!("{name}.{to}")))
                .with_context(|| format!("the run left no {from}"))?;
        }
    }
    Ok(())
}
