//! Runs every command of the README.

use crate::example;
use anyhow::{Context, bail};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands that need no run of their own: this run is `cargo xtask test`.
const RUN_BY_US: &[&str] = &["cargo xtask test"];

/// The command with known digests.
const DEMO: &str = "cargo run --release";

/// Its curves and their printed digests.
const DEMO_DIGESTS: [(&str, &str); 4] =
    [("bc", "c3544131ca90"), ("bn2", "c59b2e1b3be8"), ("bc-bn2", "0b3647892b71"), ("bn2-c", "27ad6729a92f")];

/// Instruction sets that give these digests; `crates/fedlink/tests/golden.rs` explains why only these do.
const DEMO_SETS: [&str; 2] = ["avx2+fma", "avx512f"];

/// Runs the lines of the README's `sh` blocks, one after the other in one empty folder, with the release
/// build of `fedlink` on the path. `cargo` lines run in the repository, their results under `target/`.
pub fn run_commands(root: &Path) -> anyhow::Result<()> {
    let readme = std::fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    let commands = commands(&readme);
    if commands.is_empty() {
        bail!("README.md shows no command in a ```sh block");
    }
    if !commands.iter().any(|command| command == DEMO) {
        bail!("README.md does not show `{DEMO}`, by which the digests of the demo are checked");
    }
    compare_digests(&readme, true).context("the table of results in README.md is not that of the demo")?;
    let folder = root.join("target/readme");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let path =
        format!("{}:{}", root.join("target/release").display(), std::env::var("PATH").unwrap_or_default());
    for command in commands.iter().filter(|command| !RUN_BY_US.contains(&command.as_str())) {
        eprintln!("$ {command}");
        // `cargo run` must find the workspace and yet write its results to the empty folder.
        let line = match command.strip_prefix(DEMO) {
            Some(rest) => {
                format!(
                    "cargo run --quiet --release --manifest-path {}{rest}",
                    root.join("Cargo.toml").display()
                )
            }
            None => command.clone(),
        };
        let output = Command::new("sh")
            .args(["-euc", &line])
            .current_dir(&folder)
            .env("PATH", &path)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start {command}"))?;
        std::io::stdout().write_all(&output.stdout)?;
        if !output.status.success() {
            bail!("the README's command `{command}` failed: {}", output.status);
        }
        if command == DEMO {
            check_demo(
                &String::from_utf8_lossy(&output.stdout),
                example("pages", &["instructions"])?.trim(),
            )?;
        }
    }
    println!("{} passed, 0 failed", commands.len());
    Ok(())
}

/// Checks the digests that the demo printed with instruction set `set`. For a set with other bits it
/// prints a note and checks that there is a digest for each curve.
fn check_demo(printed: &str, set: &str) -> anyhow::Result<()> {
    let known = DEMO_SETS.contains(&set);
    if !known {
        eprintln!(
            "the demo's known digests are those of {DEMO_SETS:?}, and this is {set}: they are not compared"
        );
    }
    compare_digests(printed, known).with_context(|| {
        format!("`{DEMO}` has other results than before ({set}): a run is no longer the same bit for bit")
    })
}

/// Searches the line of each curve of the demo for a digest; for the known one if `exact`. The error
/// names all wrong lines.
fn compare_digests(text: &str, exact: bool) -> anyhow::Result<()> {
    let is_digest = |word: &str| word.len() == 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut wrong = Vec::new();
    for (curve, wanted) in DEMO_DIGESTS {
        let mut lines = text.lines().map(str::split_whitespace);
        let got = lines
            .find_map(|mut words| if words.next()? == curve { words.find(|w| is_digest(w)) } else { None });
        match got {
            None => wrong.push(format!("{curve}: wanted {wanted}, got no line with a digest")),
            Some(got) if exact && got != wanted => wrong.push(format!("{curve}: wanted {wanted}, got {got}")),
            Some(_) => {}
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    Ok(())
}

/// The lines of all `sh` blocks, without comments; a line that ends in `\` continues in the next.
fn commands(markdown: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut inside = false;
    let mut continues = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            inside = !inside && line.trim() == "```sh";
            continue;
        }
        let text = line.split(" # ").next().unwrap_or_default().trim();
        if !inside || text.is_empty() || text.starts_with('#') {
            continue;
        }
        let part = text.trim_end_matches('\\').trim_end();
        match commands.last_mut() {
            Some(last) if continues => *last = format!("{last} {part}"),
            _ => commands.push(part.to_owned()),
        }
        continues = text.ends_with('\\');
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_the_lines_of_sh_blocks() {
        let text =
            "a\n```sh\n# note\none # why\ntwo \\\n  --three\n```\n```toml\nk = 1\n```\n```sh\nfour\n```\n";
        assert_eq!(commands(text), ["one", "two --three", "four"]);
    }

    const TABLE: &str = "curve   final        digest\n\
                         bc      86 %   c3544131ca90  finished\n\
                         bn2     85 %   c59b2e1b3be8  finished\n\
                         bc-bn2  86 %   0b3647892b71  finished\n\
                         bn2-c   86 %   27ad6729a92f  finished\n";

    #[test]
    fn the_demo_must_print_the_known_digests_in_the_lines_of_their_curves() {
        assert!(check_demo(TABLE, "avx2+fma").is_ok() && check_demo(TABLE, "avx512f").is_ok());
        let other = TABLE.replace("c59b2e1b3be8", "000000000000").replace("27ad6729a92f", "");
        let error = format!("{:#}", check_demo(&other, "avx512f").unwrap_err());
        let all = "bn2: wanted c59b2e1b3be8, got 000000000000; \
                   bn2-c: wanted 27ad6729a92f, got no line with a digest";
        assert!(error.contains(all), "{error}");
    }

    #[test]
    fn with_other_instructions_the_demo_must_print_some_digest_for_each_curve() {
        assert!(check_demo(&TABLE.replace("c59b2e1b3be8", "000000000000"), "portable").is_ok());
        assert!(check_demo(&TABLE.replace("bn2-c", "other"), "portable").is_err());
    }
}
