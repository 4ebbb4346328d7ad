//! The Python package: its tests, and the wheel.

use crate::{browser, cargo_path, run, step};
use anyhow::{Context, bail};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's packages with PyTorch for the processor alone. What the package index has for Linux brings 4 GB of CUDA.
const TORCH: [&str; 3] = ["python3-torch", "python3-numpy", "python3-pytest"];

/// Builds the extension module as a part of the workspace, so that nothing is compiled twice, and runs the tests of
/// `python/tests` on it, the type checker on the package, and its check of the stubs against the module.
pub fn test(root: &Path) -> anyhow::Result<()> {
    step("Python package");
    let python = environment(root, "tests", &root.join("python/tests/requirements.txt"))?;
    run(Command::new(cargo_path()).args(["build", "--workspace", "--quiet"]))?;
    place_module(root)?;
    let elsewhere =
        ["test_torch.py", "flower", "cluster"].map(|name| format!("--ignore=python/tests/{name}"));
    run(with_package(&python, root).args(["-m", "pytest"]).args(elsewhere))?;
    step("Python package with Flower and Ray");
    let nodes = environment(root, "nodes", &root.join("python/tests/nodes-requirements.txt"))?;
    run(with_package(&nodes, root).args(["-m", "pytest", "python/tests/flower", "python/tests/cluster"]))?;
    step("Python types");
    run(with_package(&python, root).args(["-m", "mypy", "python/fedlink"]))?;
    run(with_package(&python, root).args(["-m", "mypy.stubtest", "fedlink._fedlink"]))?;
    step(
        "Python package with PyTorch (set FEDLINK_TORCH_PYTHON to an interpreter that has it to use your own)",
    );
    run(with_package(&torch_python()?, root).args(["-m", "pytest", "python/tests/test_torch.py"]))
}

/// Builds the wheel into `dist/`, for this platform and any CPython from 3.10 on.
pub fn wheel(root: &Path) -> anyhow::Result<()> {
    step("wheel");
    let python = environment(root, "wheel", &root.join("python/wheel-requirements.txt"))?;
    run(Command::new(python).args(["-m", "maturin", "build", "--release", "--out", "dist"]))
}

/// The interpreter of a virtual environment with what `requirements` lists; it is made anew if the list has changed.
fn environment(root: &Path, name: &str, requirements: &Path) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/python").join(name);
    let (python, stamp) = (folder.join("bin/python"), folder.join("requirements.txt"));
    let wanted =
        std::fs::read(requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    if std::fs::read(&stamp).ok().as_ref() == Some(&wanted) {
        return Ok(python);
    }
    if !works("python3", "import ensurepip, venv") {
        browser::install(&[], &["python3", "python3-venv"])?;
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    std::fs::write(stamp, wanted)?;
    Ok(python)
}

/// Puts the module where the package looks for it. A copy that is loaded somewhere is replaced, not written over.
fn place_module(root: &Path) -> anyhow::Result<()> {
    let built = root.join("target/debug").join(format!("{DLL_PREFIX}_fedlink{DLL_SUFFIX}"));
    let place = root.join("python/fedlink/_fedlink.abi3.so");
    let beside = place.with_extension("new");
    std::fs::copy(&built, &beside).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(std::fs::rename(beside, place)?)
}

/// A Python that finds the package of this repository.
fn with_package(python: &Path, root: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONPATH", root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// An interpreter that has PyTorch.
fn torch_python() -> anyhow::Result<PathBuf> {
    if let Some(own) = std::env::var_os("FEDLINK_TORCH_PYTHON").filter(|path| !path.is_empty()) {
        return Ok(own.into());
    }
    let debian = "/usr/bin/python3";
    let imports = "import torch, numpy, pytest";
    if !works(debian, imports) {
        browser::install(&["--no-install-recommends"], &TORCH)?;
    }
    if !works(debian, imports) {
        bail!(
            "{debian} has no PyTorch; set FEDLINK_TORCH_PYTHON to an interpreter with torch, numpy and pytest"
        );
    }
    Ok(debian.into())
}

fn works(python: &str, code: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", code]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
