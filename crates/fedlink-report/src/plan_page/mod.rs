//! `plan.html` and `candidates.parquet`: the answer of a plan as one self-contained page and as a table.

mod charts;
mod page;
mod table;

use crate::error::Error;
use crate::parquet;
use fedlink_study::output::OutputFolder;
use fedlink_study::plan::{Answer, Best, write_files};

pub use charts::{accuracy_chart, pareto_chart, worth_chart};
pub use page::html;
pub use table::candidate_columns;

/// Writes all files of an answer into its folder: those of the study, the page and the table.
pub fn write(folder: &OutputFolder, answer: &Answer, best: Option<&Best>) -> Result<(), Error> {
    // One process at a time, so that the files of a folder belong together.
    let _lock = folder.lock()?;
    write_files(folder, answer, best)?;
    folder.write("candidates.parquet", parquet::write(&candidate_columns(answer))?)?;
    folder.write("plan.html", html(answer, best.map(|best| best.toml.as_str())))?;
    Ok(())
}
