//! The version of a release, which occurs in several files that must agree.

use std::path::Path;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rest of the only line with this beginning, without quotes.
fn value(text: &str, start: &str) -> String {
    let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(start)).collect();
    let [value] = found[..] else { panic!("{} lines begin with {start:?}", found.len()) };
    value.trim_matches('"').to_owned()
}

#[test]
fn crates_citation_and_changelog_name_one_release_and_one_day() {
    let manifest = file("Cargo.toml");
    let version = value(&manifest, "version = ");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));

    // Crates of this workspace require each other in the same version.
    let asked: Vec<_> = manifest.lines().filter(|line| line.contains("path = \"crates/")).collect();
    assert_eq!(asked.len(), 8);
    for line in asked {
        assert!(line.contains(&format!("version = \"{version}\"")), "{line}");
    }
    // The Python package has the version of its crate.
    assert!(file("pyproject.toml").contains("dynamic = [\"version\"]"));
    assert!(file("crates/fedlink-py/Cargo.toml").contains("\nversion.workspace = true\n"));

    let citation = file("CITATION.cff");
    assert_eq!(value(&citation, "version: "), version);

    // The newest release of the changelog; unreleased changes are above it.
    let changelog = file("CHANGELOG.md");
    let mut headings = changelog.lines().filter_map(|line| line.strip_prefix("## ["));
    let newest = headings.find(|heading| !heading.starts_with("Unreleased")).expect("a release");
    assert_eq!(newest, format!("{version}] - {}", value(&citation, "date-released: ")));
}
