//! The tables of columns in `docs/results.md`, generated from the columns that the library declares.

use anyhow::{Context, bail};
use fedlink::record::{CellKind, Column, ROW_COLUMNS, TRANSMISSION_COLUMNS};
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/results.md";

/// The line behind each table.
const END: &str = "<!-- end -->\n";

/// Writes the tables into the page.
pub fn write(root: &Path) -> anyhow::Result<()> {
    let page = page(&read(root)?)?;
    std::fs::write(root.join(PAGE), page).with_context(|| format!("cannot write {PAGE}"))
}

/// Fails if the tables differ from their generated form.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let written = read(root)?;
    if written != page(&written)? {
        bail!("{PAGE} is out of date: run `cargo xtask docs`");
    }
    Ok(())
}

fn read(root: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))
}

/// The page with the current tables of the columns.
fn page(written: &str) -> anyhow::Result<String> {
    let page = with_table(written, "rows", &table(ROW_COLUMNS))?;
    with_table(&page, "transmissions", &table(TRANSMISSION_COLUMNS))
}

/// The page with another table between the lines `<!-- columns: NAME -->` and `<!-- end -->`.
fn with_table(page: &str, name: &str, table: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- columns: {name} -->\n");
    let parts = page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, behind)) = parts else {
        bail!("{PAGE} must have the lines {begin:?} and {END:?}");
    };
    Ok([before, &begin, table, END, behind].concat())
}

/// The columns as a table, in their order.
fn table<R>(columns: &[Column<R>]) -> String {
    let mut text = String::from("| column | unit | type | meaning |\n|---|---|---|---|\n");
    for column in columns {
        let kind = match column.kind {
            CellKind::Whole => "whole number",
            CellKind::Real => "real number",
            CellKind::Single => "real number (32 bits)",
            CellKind::Text => "text",
        };
        let optional = if column.optional { ", may be empty" } else { "" };
        let meaning = column.meaning.replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {} | {kind}{optional} | {meaning} |", column.name, column.unit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before_it_and_leaves_the_others() {
        let page = |rows: &str| {
            format!("a\n<!-- columns: rows -->\n{rows}{END}b\n<!-- columns: transmissions -->\nc\n{END}")
        };
        assert_eq!(with_table(&page("old\n"), "rows", "new\n").unwrap(), page("new\n"));
        assert_eq!(with_table(&page(""), "rows", "new\n").unwrap(), page("new\n"));
        assert!(with_table("a\n", "rows", "new\n").is_err());
    }

    #[test]
    fn every_column_has_a_line_in_its_order() {
        let table = table(TRANSMISSION_COLUMNS);
        let names: Vec<&str> = table.lines().skip(2).filter_map(|line| line.split('`').nth(1)).collect();
        assert!(names.iter().eq(TRANSMISSION_COLUMNS.iter().map(|column| &column.name)), "{table}");
    }
}
