//! The published crates, their features, their dependencies, and the files of hosted CI.

use crate::{cargo, cargo_path, python, run, step};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The published crates, each after its dependencies.
const PUBLISHED: [&str; 8] = [
    "fedlink-wire",
    "fedlink-derive",
    "fedlink",
    "fedlink-theory",
    "fedlink-study",
    "fedlink-report",
    "fedlink-watch",
    "fedlink-cli",
];

/// Builds every published crate from its `cargo package` archive, and each feature without the others.
pub fn package(root: &Path) -> anyhow::Result<()> {
    features()?;
    step("crates as they are published");
    let names = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    // In a new folder every time: cargo reuses the unpacked and built crates of a version in a folder,
    // even if the crates have changed since.
    let folder = root.join(format!("target/published-{}", std::process::id()));
    let before = unpacked()?;
    let built = run(Command::new(cargo_path())
        .args(["package", "--quiet", "--allow-dirty", "--target-dir"])
        .arg(&folder)
        .args(names));
    for left in unpacked()?.difference(&before).chain([&folder]).filter(|left| left.exists()) {
        std::fs::remove_dir_all(left).with_context(|| format!("cannot remove {}", left.display()))?;
    }
    built?;
    python::distributions(root)
}

/// The folders in which cargo has unpacked crates that do not come from a registry of the network.
fn unpacked() -> anyhow::Result<BTreeSet<PathBuf>> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = own.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) else {
        return Ok(BTreeSet::new());
    };
    let Ok(folders) = std::fs::read_dir(home.join("registry/src")) else { return Ok(BTreeSet::new()) };
    let paths = folders.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    let is_local =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('-'));
    Ok(paths.into_iter().filter(is_local).collect())
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

/// Licenses, advisories, duplicates and sources of the dependencies, by cargo-deny; see deny.toml. It is
/// installed under `target/` if it is missing.
pub fn deny(root: &Path) -> anyhow::Result<()> {
    step("dependencies");
    let tools = root.join("target/tools");
    let program = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        // Without optimization: the build takes a fraction of the time, and a run takes seconds.
        let install = ["install", "--quiet", "--locked", "--debug", "cargo-deny", "--root"];
        // In a permanent folder, so that an interrupted build continues.
        let build = tools.join("build").into_os_string();
        run(Command::new(cargo_path())
            .args(install)
            .arg(&tools)
            .envs([("CARGO_PROFILE_DEV_DEBUG", "0".into()), ("CARGO_TARGET_DIR", build)]))?;
    }
    let deny = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--all-features").args(words);
        command
    };
    run(&mut deny(&["check", "--hide-inclusion-graph", "licenses", "bans", "sources"]))?;
    eprintln!("licenses, sources and duplicate versions: checked");
    step("advisories");
    if let Err(problem) = run(&mut deny(&["fetch", "db"])) {
        // A machine that tests every change must not pass without them.
        if std::env::var_os("CI").is_some() {
            return Err(problem.context("the database of advisories cannot be fetched"));
        }
        eprintln!("advisories: NOT CHECKED, since their database cannot be fetched here");
        return Ok(());
    }
    run(&mut deny(&["check", "--disable-fetch", "--hide-inclusion-graph", "advisories"]))?;
    eprintln!("advisories: checked");
    Ok(())
}

/// Checks the code with the oldest supported compiler (`rust-version`).
pub fn msrv(root: &Path) -> anyhow::Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.context("Cargo.toml has no rust-version")?.trim_matches('"');
    step(&format!("Rust {version}"));
    let installed = Command::new("rustup").args(["toolchain", "list"]).output();
    let listed = installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.context("rustup, which has the older compilers, cannot be started")?;
    // A toolchain may be named after its channel ("stable-…"): the version of its compiler decides.
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
    let compiler = |program: &mut Command| Ok::<_, std::io::Error>(program.arg("-vV").output()?.stdout);
    let oldest = compiler(Command::new("rustup").args(["run", &toolchain, "rustc"]))?;
    // If it is the compiler of all builds, their results are reused.
    let same = compiler(&mut Command::new("rustc")).is_ok_and(|ours| ours == oldest);
    let folder = if same { "target" } else { "target/msrv" };
    run(Command::new("rustup")
        .args(["run", &toolchain, "cargo", "check", "--workspace", "--quiet", "--target-dir"])
        .arg(root.join(folder)))?;
    eprintln!(
        "{}: the whole workspace compiles",
        String::from_utf8_lossy(&oldest).lines().next().unwrap_or("")
    );
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::PUBLISHED;
    use crate::root;
    use std::process::Command;

    #[test]
    fn unsafe_code_is_forbidden_everywhere_but_in_the_kernels() {
        let read =
            |path: String| std::fs::read_to_string(root().join(&path)).unwrap_or_else(|_| panic!("{path}"));
        let mut roots: Vec<String> =
            PUBLISHED.iter().map(|name| format!("crates/{name}/src/lib.rs")).collect();
        roots.extend(["crates/fedlink-cli/src/main.rs".into(), "crates/xtask/src/main.rs".into()]);
        for path in roots.iter().filter(|path| *path != "crates/fedlink/src/lib.rs") {
            assert!(read(path.clone()).contains("\n#![forbid(unsafe_code)]\n"), "{path}");
        }
        // A crate that allows it in a module cannot forbid it; the code that macros for Python generate
        // is not ours.
        for path in ["crates/fedlink/src/lib.rs", "crates/fedlink-py/src/lib.rs"] {
            assert!(read(path.into()).contains("\n#![deny(unsafe_code)]\n"), "{path}");
        }
        let mut listed = Command::new("git");
        listed.args(["grep", "-l", "(unsafe_code", "--", "crates/*/src/*.rs", ":!crates/*/src/lib.rs"]);
        listed.args([":!crates/*/src/main.rs", ":!crates/xtask/src"]).current_dir(root());
        let files = listed.output().unwrap().stdout;
        assert_eq!(String::from_utf8(files).unwrap(), "crates/fedlink/src/base/kernels/mod.rs\n");
    }
}
