//! `fedlink data`: look at data sets.

use crate::args::PreviewOptions;
use crate::failure::Exit;
use crate::figure::contact_sheet;
use crate::output::write_file;
use fedlink::config::DataConfig;
use std::path::{Path, PathBuf};

/// Pictures of each class on a contact sheet.
const COLUMNS: usize = 20;
/// Side of a pixel on the sheet.
const SCALE: usize = 2;

/// Where data sets are looked for, in this order: `given`, `FEDLINK_DATA`, the platform's cache folder.
pub fn folders(given: Option<&Path>) -> Vec<PathBuf> {
    let from = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    let cache = cache.or_else(|| from("LOCALAPPDATA")).map(|cache| cache.join("fedlink"));
    given.map(Path::to_path_buf).into_iter().chain(from("FEDLINK_DATA")).chain(cache).collect()
}

pub fn preview(options: &PreviewOptions) -> anyhow::Result<Exit> {
    let config = DataConfig { dataset: options.name.clone(), ..DataConfig::default() };
    let dataset = fedlink::data::load(&config, &folders(options.data_dir.as_deref()))?;
    let train = &dataset.train;
    let mut pictures: Vec<&[u8]> = Vec::new();
    for class in 0..dataset.classes {
        let of_class = (0..train.len()).filter(|&i| usize::from(train.labels[i]) == class);
        pictures.extend(of_class.take(COLUMNS).filter_map(|i| train.picture(i, dataset.features)));
    }
    write_file(&options.out, contact_sheet(pictures.into_iter(), dataset.shape, COLUMNS, SCALE)?)?;
    println!("{}: {} classes, {} pictures of each", options.out.display(), dataset.classes, COLUMNS);
    Ok(Exit::Done)
}
