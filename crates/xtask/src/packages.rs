//! What is published: crates, their features, what they depend on, and the files of hosted CI.

use crate::{cargo, cargo_path, python, run, step};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// The crates that are published, each after those that it depends on.
const PUBLISHED: [&str; 5] = ["fedlink", "fedlink-theory", "fedlink-study", "fedlink-report", "fedlink-cli"];

/// Builds every published crate from what `cargo package` puts into it, and each feature without the others.
pub fn package(root: &Path) -> anyhow::Result<()> {
    features()?;
    step("crates as they are published");
    let names = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    let folder = root.join("target/package-check");
    run(Command::new(cargo_path())
        .args(["package", "--quiet", "--allow-dirty", "--target-dir"])
        .arg(&folder)
        .args(names))?;
    python::distributions(root)
}

/// The features of the library and of the command, each without the others.
pub fn features() -> anyhow::Result<()> {
    for features in ["", "threads", "files"] {
        let name = format!("library with features [{features}]");
        cargo(
            &name,
            &["check", "--quiet", "-p", "fedlink", "--no-default-features", "--features", features],
        )?;
    }
    cargo("command without download", &["check", "--quiet", "-p", "fedlink-cli", "--no-default-features"])
}

/// Licenses, advisories, duplicates and sources of the dependencies, by cargo-deny; see deny.toml. It is installed
/// under `target/` if there is none.
pub fn deny(root: &Path) -> anyhow::Result<()> {
    step("dependencies");
    let tools = root.join("target/tools");
    let program = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        let install = ["install", "--quiet", "--locked", "cargo-deny", "--root"];
        run(Command::new(cargo_path()).args(install).arg(&tools))?;
    }
    let deny = |checks: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--all-features", "check", "--hide-inclusion-graph"]).args(checks);
        command
    };
    run(&mut deny(&["licenses", "bans", "sources"]))?;
    run(&mut deny(&["advisories"])).context("advisories (their database is fetched from the network)")
}

/// Checks the code with the oldest compiler that it is promised to build with (`rust-version`).
pub fn msrv(root: &Path) -> anyhow::Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.context("Cargo.toml has no rust-version")?.trim_matches('"');
    step(&format!("Rust {version}"));
    let installed = Command::new("rustup").args(["toolchain", "list"]).output();
    let listed = installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.context("rustup, which has the older compilers, cannot be started")?;
    // A toolchain may be called after its channel ("stable-…"): what counts is the compiler that it holds.
    let holds = |name: &&str| {
        let compiler = Command::new("rustup").args(["run", name, "rustc", "--version"]).output();
        let compiler = compiler.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        compiler.is_ok_and(|text| text.starts_with(&format!("rustc {version}.")))
    };
    let mut names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let toolchain = names.find(holds).map(str::to_owned);
    let toolchain = if let Some(found) = toolchain {
        found
    } else {
        run(Command::new("rustup").args(["toolchain", "install", version, "--profile", "minimal"]))?;
        version.to_owned()
    };
    run(Command::new("rustup")
        .args(["run", &toolchain, "cargo", "check", "--workspace", "--quiet", "--target-dir"])
        .arg(root.join("target/msrv")))
}

/// Checks the files of hosted CI by their schema and by a linter.
pub fn workflows(root: &Path) -> anyhow::Result<()> {
    step("files of hosted CI");
    let python = python::lint_environment(root)?;
    let folder = root.join(".github/workflows");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    files.sort();
    if files.is_empty() {
        bail!("{} has no files", folder.display());
    }
    let bin = python.parent().context("an interpreter lies in a folder")?;
    run(Command::new(&python)
        .args(["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"])
        .args(&files))?;
    run(Command::new(bin.join("zizmor"))
        .args(["--offline", "--quiet", "--config", ".github/zizmor.yml"])
        .args(&files))
}
