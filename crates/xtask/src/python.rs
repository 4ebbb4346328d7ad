//! The Python package: its tests, and the wheel.

use crate::background::Background;
use crate::setup::{DEBIAN_PYTHON, works};
use crate::{build, run, step};
use anyhow::{Context, bail};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tests with Flower, Ray and PyTorch. They mostly wait for messages, so they run beside others.
const WITH_NODES: [&str; 4] = [
    "python/tests/flower",
    "python/tests/cluster",
    "python/tests/test_torch.py",
    "python/tests/test_torch_workers.py",
];

/// Starts the tests with Flower, Ray and PyTorch on the extension module that [`build`] has built.
pub fn start_nodes(root: &Path) -> anyhow::Result<Background> {
    step("Python environment");
    let nodes = nodes_environment(root)?;
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
    build(&["--lib", "--examples"])?;
    install_module(root)?;
    Ok(with_package(&nodes, root))
}

/// Starts the other tests of `python/tests` on the module that [`start_nodes`] has installed. They are
/// one process that uses one core.
pub fn start_tests(root: &Path) -> anyhow::Result<Background> {
    let tests = tests_environment(root)?;
    Background::start(
        "Python package",
        with_package(&tests, root)
            .args(["-m", "pytest"])
            .args(WITH_NODES.map(|path| format!("--ignore={path}")))
            .current_dir(root),
        root.join("target/python/tests.log"),
    )
}

/// Runs the type checker on the package, and its check of the stubs against the module that
/// [`start_nodes`] has installed.
pub fn types(root: &Path) -> anyhow::Result<()> {
    step("Python types");
    let nodes = nodes_environment(root)?;
    run(with_package(&nodes, root).args(["-m", "mypy", "python/fedlink"]))?;
    run(with_package(&nodes, root).args(["-m", "mypy.stubtest", "fedlink._fedlink"]))
}

/// Builds the wheel, for this platform and any CPython from 3.10 on, and the source distribution into
/// `dist/`.
pub fn wheel(root: &Path) -> anyhow::Result<()> {
    step("wheel and source distribution");
    run(builder(root)?.args(["--outdir", "dist"]))
}

/// Builds both distributions, installs each into an empty environment, and runs the command and the first
/// example of `docs/python.md` there.
pub fn distributions(root: &Path) -> anyhow::Result<()> {
    step("Python distributions");
    let folder = root.join("target/python/dist");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    // In the same way as `cargo build --workspace`, so that its results are reused.
    run(builder(root)?
        .args(["--config-setting", "build-args=--profile dev", "--outdir"])
        .arg(&folder)
        .env("CARGO_TARGET_DIR", root.join("target")))?;
    // The source distribution is built in the same place as the wheel, so that builds of dependencies are
    // reused.
    run(Command::new("python3")
        .arg("python/tests/distributions.py")
        .arg(&folder)
        .env("CARGO_TARGET_DIR", root.join("target")))
}

/// `python -m build`, with the tools of an environment of its own.
fn builder(root: &Path) -> anyhow::Result<Command> {
    let python = environment(root, "wheel", "python/wheel-requirements.txt", "python3", &[])?;
    let mut command = Command::new(&python);
    command.args(["-m", "build", "--no-isolation"]);
    // The backend starts maturin by its name.
    let tools = python.parent().context("an interpreter lies in a folder")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders)?);
    Ok(command)
}

/// The interpreter of a virtual environment of `python` with the packages of the file `requirements`;
/// `options` are for `venv`. It is made anew if the list or the interpreter has changed.
fn environment(
    root: &Path,
    name: &str,
    requirements: &str,
    python: &str,
    options: &[&str],
) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/python").join(name);
    let interpreter = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    let (made, stamp) = (folder.join(interpreter), folder.join("made-from.txt"));
    let requirements = root.join(requirements);
    let listed = std::fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let wanted = format!("{python}\n{listed}");
    if std::fs::read_to_string(&stamp).ok().as_ref() == Some(&wanted) {
        return Ok(made);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    run(Command::new(python).args(["-m", "venv"]).args(options).arg(&folder))?;
    run(Command::new(&made).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    std::fs::write(stamp, wanted)?;
    Ok(made)
}

/// Makes the missing environments of the tests and of the linters.
pub fn environments(root: &Path) -> anyhow::Result<()> {
    nodes_environment(root)?;
    tests_environment(root)?;
    lint_environment(root)?;
    Ok(())
}

/// An environment with the dependencies of the package's tests.
fn tests_environment(root: &Path) -> anyhow::Result<PathBuf> {
    environment(root, "tests", "python/tests/requirements.txt", "python3", &[])
}

/// An environment with the linters of the files of hosted CI.
pub fn lint_environment(root: &Path) -> anyhow::Result<PathBuf> {
    environment(root, "lint", "python/lint-requirements.txt", "python3", &[])
}

/// An environment with Flower and Ray of its own and PyTorch of its base interpreter: Debian's, or the
/// one that `FEDLINK_TORCH_PYTHON` names.
fn nodes_environment(root: &Path) -> anyhow::Result<PathBuf> {
    let own = std::env::var("FEDLINK_TORCH_PYTHON").ok().filter(|path| !path.is_empty());
    let python = own.unwrap_or_else(|| DEBIAN_PYTHON.into());
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

/// Copies the module to the place from which the package imports it.
fn install_module(root: &Path) -> anyhow::Result<()> {
    copy_module(&root.join("target/debug"), &root.join("python/fedlink"))
}

/// Copies the module that was built in `target` into a package. A loaded copy is replaced, not
/// overwritten.
pub fn copy_module(target: &Path, package: &Path) -> anyhow::Result<()> {
    let built = target.join(format!("{DLL_PREFIX}_fedlink{DLL_SUFFIX}"));
    let installed = package.join("_fedlink.abi3.so");
    let beside = installed.with_extension("new");
    std::fs::copy(&built, &beside).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(std::fs::rename(beside, installed)?)
}

/// A Python that finds the package of this repository.
fn with_package(python: &Path, root: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONPATH", root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    // Hypothesis then draws the same cases every time, and ignores a slow machine.
    command.env("CI", "true");
    command
}
