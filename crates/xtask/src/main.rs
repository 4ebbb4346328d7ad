//! Development tasks: `cargo xtask test`, `cargo xtask bench`.

#![forbid(unsafe_code)]

mod background;
mod bench;
mod browser;
mod cycles;
mod fuzz;
mod packages;
mod part_names;
mod phrases;
mod python;
mod readme;
#[cfg(test)]
mod release;
mod setup;
mod wire;

use anyhow::{Context, bail};
use background::Background;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// Development tasks of fedlink.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
enum Task {
    /// Every check and test: format, module cycles, lints, Rust tests, documentation, the wire format, the
    /// README's commands, the Python package, the report, both Python distributions.
    Test,
    /// The part that needs nothing but Rust and the data: lints, features, Rust tests, documentation.
    Rust,
    /// List the needs of `test` and install the missing Debian packages, which `test` does too.
    Setup,
    /// Build every crate as it is published, each feature alone, and install both Python distributions.
    Package,
    /// Check the code with the oldest supported compiler.
    Msrv,
    /// Licenses, advisories and duplicates of the dependencies (installs cargo-deny under target/).
    Deny,
    /// The quick part of `test`: format, lints, modules that depend on each other, parts that other files
    /// name, unclear phrases.
    Lint,
    /// The README's commands, which `test` runs too.
    Readme,
    /// The report's tests in a real browser, which `test` runs too.
    Browser,
    /// The tests of the Python package, which `test` runs too.
    Python,
    /// Build the Python package as a wheel and as a source distribution, into dist/.
    Wheel,
    /// Every parser on inputs made by libFuzzer.
    Fuzz(fuzz::Request),
    /// Write the generated pages anew (docs/reference.md, the columns in docs/results.md, the table of
    /// docs/wire-format.md and its test vectors, the README's table of peers) and the list of defaults.
    Docs,
    /// The kernels' times and the ratios of docs/performance.md, or one of the comparisons.
    Bench {
        #[command(subcommand)]
        comparison: Option<bench::Comparison>,
    },
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Test => test(),
        Task::Lint => lint(),
        Task::Rust => rust(),
        Task::Setup => setup::setup(&root()),
        Task::Package => packages::package(&root()),
        Task::Msrv => packages::msrv(&root()),
        Task::Deny => packages::deny(&root()),
        Task::Readme => readme::run_commands(&root()),
        Task::Browser => browser::test(&root()),
        Task::Python => {
            build(&["--lib", "--examples"])?;
            let nodes = python::start_nodes(&root())?;
            let python = python::start_tests(&root())?;
            python::types(&root())?;
            python.finish()?;
            nodes.finish()
        }
        Task::Wheel => python::wheel(&root()),
        Task::Fuzz(request) => fuzz::fuzz(&request),
        Task::Bench { comparison } => bench::bench(&root(), comparison.as_ref()),
        Task::Docs => {
            build(&["--examples"])?;
            print!("{}", example("pages", &["write"])?);
            wire::write(&root())?;
            bench::write_readme(&root())
        }
    }
}

/// Every check that must pass before a change is merged.
fn test() -> anyhow::Result<()> {
    step("prerequisites");
    setup::list(&root())?;
    // Both run for long on at most one core, and share nothing with the steps beside them.
    let release = release_build()?;
    let environments = std::thread::spawn(|| {
        setup::install()?;
        python::environments(&root())
    });
    lint()?;
    build_for_tests()?;
    release.finish()?;
    environments.join().expect("it does not panic")?;
    packages::workflows(&root())?;
    let data = data_folder()?;
    // The tests with nodes mostly wait; the others and the browser use one core. They fill the cores that
    // the steps beside them leave idle.
    let nodes = python::start_nodes(&root())?;
    let python = python::start_tests(&root())?;
    rust_tests(&data)?;
    let browser = browser::start(&root())?;
    documentation()?;
    packages::features()?;
    wire::test()?;
    step("README commands");
    readme::run_commands(&root())?;
    python::types(&root())?;
    browser.finish()?;
    python.finish()?;
    nodes.finish()?;
    // After all users of the build, because it builds the package in its own way.
    python::distributions(&root())?;
    step("all passed");
    Ok(())
}

/// The part that needs nothing but Rust, for the platforms on which the rest is not tested.
fn rust() -> anyhow::Result<()> {
    let release = release_build()?;
    lint()?;
    build_for_tests()?;
    release.finish()?;
    rust_tests(&data_folder()?)?;
    documentation()?;
    packages::features()
}

/// Builds the command as its users do, in the background.
fn release_build() -> anyhow::Result<Background> {
    let mut command = Command::new(cargo_path());
    let command = command.args(["build", "--release", "--quiet"]).current_dir(root());
    Background::start("release build", command, root().join("target/release-build.log"))
}

/// Builds everything that the tests in Rust and in Python, the documentation and the report need, once.
fn build_for_tests() -> anyhow::Result<()> {
    step("build for the tests");
    build(&["--lib", "--bins", "--tests", "--examples"])
}

fn rust_tests(data: &Path) -> anyhow::Result<()> {
    step("tests");
    // The same cases in every run: random cases must not decide whether a change may be merged. `cargo
    // test` draws new ones.
    run(Command::new(cargo_path())
        .args(["test", "--workspace", "--quiet"])
        .envs([("FEDLINK_DATA", data.as_os_str()), ("PROPTEST_RNG_SEED", "1".as_ref())]))
}

fn documentation() -> anyhow::Result<()> {
    step("documentation");
    print!("{}", example("pages", &["check"])?);
    bench::check_readme(&root())?;
    run(Command::new(cargo_path())
        .args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings"))
}

/// The checks that do not need a full build.
fn lint() -> anyhow::Result<()> {
    step("format");
    // `cargo fmt` does not find modules that a macro declares (`register!`), so every file is named.
    let listed = Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()).output()?;
    let files = String::from_utf8(listed.stdout)?;
    let check = ["--check", "--edition", "2024"];
    let status = Command::new("rustfmt").args(check).args(files.lines()).current_dir(root()).status()?;
    if !status.success() {
        bail!("the files above are not formatted: run `cargo fmt --all`, and rustfmt on those of a part");
    }
    let listed = Command::new("git").args(["ls-files", "*.py", "*.pyi"]).current_dir(root()).output()?;
    let python = String::from_utf8(listed.stdout)?;
    check_width(files.lines().chain(python.lines()))?;
    step("modules");
    cycles::check(&root())?;
    part_names::check(&root())?;
    phrases::check_all()?;
    cargo("lints", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])
}

/// Checks the width of all lines, also of comments, strings and macro arguments, which rustfmt does not
/// change. Rows of tables in comments cannot be broken, and raw strings are exempt.
fn check_width<'a>(files: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    const MAX: usize = 110;
    let is_row = |line: &str| line.trim_start_matches([' ', '/', '!']).starts_with('|');
    let is_long = |line: &str| line.chars().count() > MAX && !is_row(line) && !line.contains("r#\"");
    let mut long = Vec::new();
    for file in files {
        let text =
            std::fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        let numbered = text.lines().enumerate().filter(|(_, line)| is_long(line));
        long.extend(numbered.map(|(i, _)| format!("{file}:{}", i + 1)));
    }
    if !long.is_empty() {
        bail!("lines of more than {MAX} characters: {}", long.join(", "));
    }
    Ok(())
}

/// The folder with real MNIST for the tests: `FEDLINK_DATA`, or one under `target/` that
/// `fedlink data get` fills.
fn data_folder() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("FEDLINK_DATA").filter(|folder| !folder.is_empty()) {
        return Ok(root().join(folder));
    }
    step("test data (set FEDLINK_DATA to a folder that holds mnist/ to use your own)");
    let folder = root().join("target/data");
    run(Command::new(root().join("target/release/fedlink"))
        .args(["data", "get", "mnist", "--data-dir"])
        .arg(&folder))?;
    Ok(folder)
}

/// Builds these kinds of targets of the whole workspace. For one package alone, or without a kind of
/// target that has dependencies of its own (tests, examples), cargo chooses other features of the
/// dependencies and would build everything again. So every step that runs a program of `target/debug`
/// builds it here, with one of the two kinds.
fn build(targets: &[&str]) -> anyhow::Result<()> {
    run(Command::new(cargo_path()).args(["build", "--workspace", "--quiet"]).args(targets))
}

/// The output of an example that was built by [`build`].
fn example(name: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let program = format!("target/debug/examples/{name}{}", std::env::consts::EXE_SUFFIX);
    let mut command = Command::new(root().join(program));
    let output = command.args(arguments).current_dir(root()).output();
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn cargo(name: &str, arguments: &[&str]) -> anyhow::Result<()> {
    step(name);
    run(Command::new(cargo_path()).args(arguments))
}

/// Announces the next step, and the time since the start.
fn step(name: &str) {
    static START: OnceLock<Instant> = OnceLock::new();
    let seconds = START.get_or_init(Instant::now).elapsed().as_secs();
    eprintln!("== {:2}:{:02} {name}", seconds / 60, seconds % 60);
}

/// Runs a command in the repository's root; its failure is an error.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.current_dir(root()).status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

fn cargo_path() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// The repository.
fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).expect("crates/xtask lies two folders down").into()
}
