//! Runs every command that the README shows.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// Commands that need no run of their own: this very run is `cargo xtask test`.
const RUN_BY_US: &[&str] = &["cargo xtask test"];

/// Runs the lines of the README's `sh` blocks, one after the other in one empty folder, with the release build of
/// `fedlink` on the path. `cargo` lines run in the repository, their results under `target/`.
pub fn run_commands(root: &Path) -> anyhow::Result<()> {
    let readme = std::fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    let commands = commands(&readme);
    if commands.is_empty() {
        bail!("README.md shows no command in a ```sh block");
    }
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
        let line = match command.strip_prefix("cargo run --release") {
            Some(rest) => {
                format!(
                    "cargo run --quiet --release --manifest-path {}{rest}",
                    root.join("Cargo.toml").display()
                )
            }
            None => command.clone(),
        };
        let status = Command::new("sh")
            .args(["-euc", &line])
            .current_dir(&folder)
            .env("PATH", &path)
            .status()
            .with_context(|| format!("cannot start {command}"))?;
        if !status.success() {
            bail!("the README's command `{command}` failed: {status}");
        }
    }
    println!("{} passed, 0 failed", commands.len());
    Ok(())
}

/// The lines of all `sh` blocks, without comments; a line that ends in `\` goes on in the next.
fn commands(markdown: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut inside = false;
    let mut goes_on = false;
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
            Some(last) if goes_on => *last = format!("{last} {part}"),
            _ => commands.push(part.to_owned()),
        }
        goes_on = text.ends_with('\\');
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
}
