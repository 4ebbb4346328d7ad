//! The pages of `docs/` and the list of defaults, which are generated from the library, and the instruction
//! set that it chooses. `cargo xtask` runs it, and so need not be built with the library.
//!
//! ```text
//! cargo run --package fedlink-study --example pages -- write|check|instructions
//! ```

mod columns;
mod defaults;
mod reference;

use anyhow::bail;
use std::path::{Path, PathBuf};

fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("write") => {
            reference::write(&root())?;
            columns::write(&root())?;
            defaults::write(&root())
        }
        Some("check") => {
            reference::check(&root())?;
            columns::check(&root())
        }
        Some("instructions") => {
            println!("{}", fedlink::base::kernels::instruction_set());
            Ok(())
        }
        _ => bail!("write, check or instructions must be given"),
    }
}

/// The repository.
fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).expect("crates/fedlink-study lies two folders down").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_up_to_date() {
        reference::check(&root()).unwrap();
        columns::check(&root()).unwrap();
    }
}
