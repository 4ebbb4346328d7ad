//! `fedlink man`: the manual pages, made from the definition of the command line.

use crate::args::{Arguments, ManOptions};
use crate::failure::Exit;
use crate::streams::write_out;
use clap::CommandFactory;
use clap_mangen::Man;
use fedlink_study::output::{make_folder, write_file};
use std::path::Path;

pub fn run(options: &ManOptions) -> anyhow::Result<Exit> {
    let mut command = Arguments::command();
    // Subcommands take over version and help of the whole.
    command.build();
    match &options.out {
        Some(folder) => write_pages(&command, "fedlink", folder)?,
        None => write_out(&String::from_utf8_lossy(&page(&command, "fedlink")?))?,
    }
    Ok(Exit::Done)
}

/// The page of `command` and those of its subcommands: `fedlink-data-get.1` for `fedlink data get`.
fn write_pages(command: &clap::Command, name: &str, folder: &Path) -> anyhow::Result<()> {
    make_folder(folder)?;
    write_file(&folder.join(format!("{name}.1")), page(command, name)?)?;
    for subcommand in command.get_subcommands().filter(|one| one.get_name() != "help") {
        write_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    let source = format!("fedlink {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name).source(source);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        page.extend(verbatim("EXAMPLES", &text.to_string()).bytes());
    }
    Ok(page)
}

/// A section that keeps its lines; in a paragraph, examples would run together.
fn verbatim(title: &str, text: &str) -> String {
    let text = text.trim().strip_prefix("Examples:").unwrap_or(text).trim_matches('\n');
    let line = |line: &str| {
        let escaped = line.replace('\\', "\\e").replace('-', "\\-");
        // A dot or an apostrophe would begin a command.
        let guard = if escaped.starts_with(['.', '\'']) { "\\&" } else { "" };
        format!("{guard}{escaped}\n")
    };
    format!(".SH {title}\n.nf\n{}.fi\n", text.lines().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_examples_stay_lines() {
        let text = "Examples:\n  fedlink run --set a=b \\\n.dot\n\nExit codes: 0 done.";
        let expected =
            ".SH EXAMPLES\n.nf\n  fedlink run \\-\\-set a=b \\e\n\\&.dot\n\nExit codes: 0 done.\n.fi\n";
        assert_eq!(verbatim("EXAMPLES", text), expected);
    }

    #[test]
    fn a_page_names_the_program_and_its_own_command() {
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").unwrap();
        let page = String::from_utf8(page(run, "fedlink-run").unwrap()).unwrap();
        assert!(page.contains(".TH fedlink-run 1") && page.contains("\"fedlink "), "{page}");
        assert_eq!(page.matches("\n.SH EXAMPLES\n.nf\n  fedlink run").count(), 1, "{page}");
    }
}
