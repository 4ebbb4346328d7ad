//! The Python package: its tests, and the wheel.

use crate::background::Background;
use crate::{browser, cargo_path, run, step};
use anyhow::{Context, bail};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's packages with PyTorch for the processor alone. What the package index has for Linux brings 4 GB
/// of CUDA.
const TORCH: [&str; 2] = ["python3-torch", "python3-venv"];

/// Tests with Flower, Ray and PyTorch. They mostly wait for messages, so they run beside others.
const WITH_NODES: [&str; 3] = ["python/tests/flower", "python/tests/cluster", "python/tests/test_torch.py"];

/// Builds the extension module as a part of the workspace, so that nothing is compiled twice, and starts the
/// tests with Flower, Ray and PyTorch.
pub fn start_nodes(root: &Path) -> anyhow::Result<Background> {
    step("Python module");
    let nodes = nodes_environment(root)?;
    run(Command::new(cargo_path()).args(["build", "--workspace", "--quiet"]))?;
    install_module(root)?;
    Background::start(
        "Python package with Flower, Ray and PyTorch",
        with_package(&nodes, root).args(["-m", "pytest"]).args(WITH_NODES).current_dir(root),
        root.join("target/python/nodes.log"),
    )
}

/// Python with Flower and this package; the extension module is built.
pub fn with_nodes(root: &Path) -> anyhow::Result<Command> {
    let nodes = nodes_environment(root)?;
    run(Command::new(cargo_path()).args(["build", "--package", "fedlink-py", "--quiet"]))?;
    install_module(root)?;
    Ok(with_package(&nodes, root))
}

/// Runs the other tests of `python/tests`, the type checker on the package, and its check of the stubs
/// against the module that [`start_nodes`] has built.
pub fn test(root: &Path) -> anyhow::Result<()> {
    step("Python package");
    let tests = environment(root, "tests", "python/tests/requirements.txt", "python3", &[])?;
    let nodes = nodes_environment(root)?;
    run(with_package(&tests, root)
        .args(["-m", "pytest"])
        .args(WITH_NODES.map(|path| format!("--ignore={path}"))))?;
    step("Python types");
    run(with_package(&nodes, root).args(["-m", "mypy", "python/fedlink"]))?;
    run(with_package(&nodes, root).args(["-m", "mypy.stubtest", "fedlink._fedlink"]))
}

/// Builds the wheel into `dist/`, for this platform and any CPython from 3.10 on.
pub fn wheel(root: &Path) -> anyhow::Result<()> {
    step("wheel");
    let python = environment(root, "wheel", "python/wheel-requirements.txt", "python3", &[])?;
    run(Command::new(python).args(["-m", "maturin", "build", "--release", "--out", "dist"]))
}

/// The interpreter of a virtual environment of `python` with what the file `requirements` lists; `options`
/// are for `venv`. It is made anew if the list or the interpreter is another.
fn environment(
    root: &Path,
    name: &str,
    requirements: &str,
    python: &str,
    options: &[&str],
) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/python").join(name);
    let (made, stamp) = (folder.join("bin/python"), folder.join("made-from.txt"));
    let requirements = root.join(requirements);
    let listed = std::fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let wanted = format!("{python}\n{listed}");
    if std::fs::read_to_string(&stamp).ok().as_ref() == Some(&wanted) {
        return Ok(made);
    }
    if !works(python, "import ensurepip, venv") {
        browser::install(&[], &["python3", "python3-venv"])?;
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    run(Command::new(python).args(["-m", "venv"]).args(options).arg(&folder))?;
    run(Command::new(&made).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    std::fs::write(stamp, wanted)?;
    Ok(made)
}

/// An environment with Flower and Ray of its own and PyTorch of the interpreter that it is made from:
/// Debian's, or the one that `FEDLINK_TORCH_PYTHON` names.
fn nodes_environment(root: &Path) -> anyhow::Result<PathBuf> {
    let own = std::env::var("FEDLINK_TORCH_PYTHON").ok().filter(|path| !path.is_empty());
    let python = own.unwrap_or_else(|| "/usr/bin/python3".into());
    if python == "/usr/bin/python3" && !works(&python, "import torch") {
        browser::install(&["--no-install-recommends"], &TORCH)?;
    }
    let requirements = "python/tests/nodes-requirements.txt";
    let made = environment(root, "nodes", requirements, &python, &["--system-site-packages"])?;
    if !works(&made, "import torch") {
        bail!(
            "{python} has no PyTorch that a virtual environment of it sees; set FEDLINK_TORCH_PYTHON to an \
             interpreter, itself no virtual environment, that has torch"
        );
    }
    Ok(made)
}

/// Puts the module where the package imports it from. A copy that is loaded somewhere is replaced, not
/// written over.
fn install_module(root: &Path) -> anyhow::Result<()> {
    let built = root.join("target/debug").join(format!("{DLL_PREFIX}_fedlink{DLL_SUFFIX}"));
    let installed = root.join("python/fedlink/_fedlink.abi3.so");
    let beside = installed.with_extension("new");
    std::fs::copy(&built, &beside).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(std::fs::rename(beside, installed)?)
}

/// A Python that finds the package of this repository.
fn with_package(python: &Path, root: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONPATH", root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    // Hypothesis then draws the same cases every time, and does not mind a slow machine.
    command.env("CI", "true");
    command
}

fn works(python: impl AsRef<OsStr>, code: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", code]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
