//! Where data sets are looked for: the one place that reads the environment.

use std::path::{Path, PathBuf};

/// Where data sets are looked for, in this order: `given`, the environment's `FEDLINK_DATA`, the platform's
/// cache folder.
pub fn data_folders(given: Option<&Path>) -> Vec<PathBuf> {
    let from = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    let cache = cache.or_else(|| from("LOCALAPPDATA")).map(|cache| cache.join("fedlink"));
    given.map(Path::to_path_buf).into_iter().chain(from("FEDLINK_DATA")).chain(cache).collect()
}
