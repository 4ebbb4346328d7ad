//! The environment of the process; the rest of the library does not read it.

use fedlink::base::kernels::InstructionSet;
use std::path::{Path, PathBuf};

/// Chooses the instruction set that `FEDLINK_INSTRUCTIONS` names, if it is set: `portable`, `avx2` or
/// `avx512`. The error names the variable.
pub fn choose_instructions() -> Result<(), String> {
    match std::env::var_os("FEDLINK_INSTRUCTIONS") {
        Some(name) if !name.is_empty() => InstructionSet::choose(&name.to_string_lossy())
            .map_err(|problem| format!("FEDLINK_INSTRUCTIONS: {problem}")),
        _ => Ok(()),
    }
}

/// The folders of data sets, in the order in which they are searched: `given`, the environment's
/// `FEDLINK_DATA`, the platform's cache folder.
pub fn data_folders(given: Option<&Path>) -> Vec<PathBuf> {
    let from = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    let cache = cache.or_else(|| from("LOCALAPPDATA")).map(|cache| cache.join("fedlink"));
    given.map(Path::to_path_buf).into_iter().chain(from("FEDLINK_DATA")).chain(cache).collect()
}

/// The name of this machine.
pub fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}
