//! The wire format's generated parts, and its second decoder.

use crate::{example, run, step};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

const PAGE: &str = "docs/wire-format.md";
const VECTORS: &str = "crates/fedlink/tests/vectors/wire-1.json";

/// The lines of the page before and after its table. The library's tests check the table.
const BORDERS: [&str; 2] =
    ["<!-- overhead: written by `cargo xtask docs` -->\n", "<!-- end of overhead -->\n"];

/// Writes the table of overheads into the page, and the test vectors.
pub fn write(root: &Path) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let page = with_table(&page, &example("wire_overhead", &[])?)?;
    std::fs::write(root.join(PAGE), page).with_context(|| format!("cannot write {PAGE}"))?;
    std::fs::write(root.join(VECTORS), example("wire_vectors", &[])?)
        .with_context(|| format!("cannot write {VECTORS}"))
}

/// The page with another table.
fn with_table(page: &str, table: &str) -> anyhow::Result<String> {
    let [begin, end] = BORDERS;
    let parts = page.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let Some((before, behind)) = parts else {
        bail!("{PAGE} must have the lines {begin:?} and {end:?}");
    };
    Ok([before, begin, table, end, behind].concat())
}

/// Lets the second decoder, which was written from the page alone, read the test vectors.
pub fn test() -> anyhow::Result<()> {
    step("wire format by a second decoder");
    run(Command::new("python3").args(["tests/wire/decode.py", VECTORS]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before_it() {
        let [begin, end] = BORDERS;
        let page = |table: &str| format!("a\n{begin}{table}{end}b\n");
        assert_eq!(with_table(&page("old\n"), "new\n").unwrap(), page("new\n"));
        assert_eq!(with_table(&page(""), "new\n").unwrap(), page("new\n"));
        assert!(with_table("a\n", "new\n").is_err());
    }
}
