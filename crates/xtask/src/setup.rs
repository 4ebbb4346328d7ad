//! What the tests need of the system: Debian packages. Everything else lies under `target/`.

use crate::run;
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the tests need, the Debian package that has it, and how to see that it is there.
struct Need {
    package: &'static str,
    why: &'static str,
    there: Check,
}

enum Check {
    /// A program on the path.
    Program(&'static str),
    /// Debian's Python runs this.
    Python(&'static str),
}

/// Debian's interpreter, which its PyTorch is for.
pub const DEBIAN_PYTHON: &str = "/usr/bin/python3";

static NEEDS: [Need; 7] = [
    Need { package: "python3", why: "the wire format, the package", there: Check::Program("python3") },
    Need {
        package: "python3-venv",
        why: "virtual environments under target/python",
        there: Check::Python("import ensurepip, venv"),
    },
    // For the processor alone. What the package index has for Linux brings 4 GB of CUDA.
    Need { package: "python3-torch", why: "tests with PyTorch", there: Check::Python("import torch") },
    Need { package: "chromium", why: "the report in a browser", there: Check::Program("chromium") },
    Need { package: "nodejs", why: "the report in a browser", there: Check::Program("node") },
    Need { package: "npm", why: "the report in a browser, MNIST", there: Check::Program("npm") },
    Need { package: "g++", why: "fuzzing", there: Check::Program("g++") },
];

/// The packages that the tests need.
const OF_TESTS: [&str; 6] = ["python3", "python3-venv", "python3-torch", "chromium", "nodejs", "npm"];

/// Lists what will be installed and where, and installs the Debian packages of the tests that are missing.
pub fn setup(root: &Path) -> anyhow::Result<()> {
    eprintln!(
        "to be installed on the system: {}",
        listed(missing(&OF_TESTS).iter().map(|need| need.package))
    );
    for Need { package, why, .. } in missing(&OF_TESTS) {
        eprintln!("  {package} ({why})");
    }
    let paths =
        ["python/tests", "python/nodes", "python/lint", "python/wheel", "browser/node_modules", "data"];
    let absent = paths.iter().filter(|path| !root.join("target").join(path).exists());
    eprintln!("to be made under target/: {}", listed(absent.copied()));
    ensure(&OF_TESTS)
}

/// Installs those of these Debian packages that are missing.
///
/// A developer's system is changed only by who may do so anyway: without the rights of the administrator it is an error
/// that names the packages.
pub fn ensure(packages: &[&str]) -> anyhow::Result<()> {
    let names: Vec<&str> = missing(packages).iter().map(|need| need.package).collect();
    if names.is_empty() {
        return Ok(());
    }
    let advice = || format!("{} must be installed", names.join(", "));
    if !is_administrator() {
        bail!("{}: `sudo apt-get install {}`, and run again", advice(), names.join(" "));
    }
    run(Command::new("apt-get").args(["update", "--quiet"])).with_context(advice)?;
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    run(Command::new("apt-get").args(install).args(&names)).with_context(advice)?;
    match missing(packages).first() {
        Some(Need { package, .. }) => bail!("{package} is installed, and yet it does not work"),
        None => Ok(()),
    }
}

/// What is missing of these packages.
fn missing(packages: &[&str]) -> Vec<&'static Need> {
    let own_torch = std::env::var_os("FEDLINK_TORCH_PYTHON").is_some_and(|path| !path.is_empty());
    let is_elsewhere = |need: &Need| own_torch && need.package == "python3-torch";
    let wanted = NEEDS.iter().filter(|need| packages.contains(&need.package));
    wanted.filter(|need| !(is_elsewhere(need) || is_there(&need.there))).collect()
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

fn is_there(check: &Check) -> bool {
    match check {
        Check::Program(program) => is_on_path(program),
        Check::Python(code) => works(DEBIAN_PYTHON, code),
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether an interpreter runs `code`.
pub fn works(python: impl AsRef<OsStr>, code: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", code]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_administrator() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
