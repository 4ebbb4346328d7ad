//! `fedlink data preview`: a contact sheet of a data set.

use crate::args::PreviewOptions;
use crate::failure::Exit;
use anyhow::bail;
use fedlink::data::Features;
use fedlink_report::figure::contact_sheet;
use fedlink_study::data_folders;
use fedlink_study::output::write_file;

/// Images of each class on a contact sheet.
const COLUMNS: usize = 20;
/// Side of a pixel on the sheet.
const SCALE: usize = 2;

pub fn run(options: &PreviewOptions) -> anyhow::Result<Exit> {
    let out = &options.out;
    let kind = out.symlink_metadata().map(|there| there.file_type());
    if kind.is_ok_and(|kind| !(options.force && kind.is_file())) {
        let remedy = if out.is_file() && !out.is_symlink() { ", or add --force to replace it" } else { "" };
        bail!("{} exists already; choose another file{remedy}", out.display());
    }
    let dataset = fedlink::data::load(&options.name, &data_folders(options.data_dir.as_deref()))?;
    let train = &dataset.train;
    if matches!(train.features, Features::Floats(_)) {
        bail!("{} holds numbers, not images of bytes: there is nothing to preview", options.name);
    }
    // A class of few images is filled up, so that every class has a row of its own.
    let blank = vec![0; dataset.features];
    let mut images: Vec<&[u8]> = Vec::new();
    for class in 0..dataset.classes {
        let of_class = (0..train.len()).filter(|&i| usize::from(train.labels[i]) == class);
        let row = of_class.filter_map(|i| train.image(i, dataset.features));
        images.extend(row.chain(std::iter::repeat(&blank[..])).take(COLUMNS));
    }
    write_file(&options.out, contact_sheet(images.into_iter(), dataset.shape, COLUMNS, SCALE)?)?;
    outln!("{}: {} classes, up to {COLUMNS} images of each", options.out.display(), dataset.classes)?;
    Ok(Exit::Done)
}
