//! The defaults of all keys, with which a test of the library compares those of a later version.

use anyhow::{Context, bail};
use fedlink::spec::identity::{changed_defaults, defaults};
use std::path::Path;

const FILE: &str = "crates/fedlink/tests/defaults.txt";

/// Writes the defaults, new keys included. A default that has changed while the semantics are the same is an
/// error.
pub fn write(root: &Path) -> anyhow::Result<()> {
    let path = root.join(FILE);
    let pinned = std::fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    let changed = changed_defaults(&pinned);
    if !changed.is_empty() {
        bail!(
            "these defaults of {FILE} have changed; raise SEMANTICS (crates/fedlink/src/spec/identity.rs) if \
             results change by this:\n  {}",
            changed.join("\n  ")
        );
    }
    std::fs::write(&path, defaults()).with_context(|| format!("cannot write {FILE}"))
}
