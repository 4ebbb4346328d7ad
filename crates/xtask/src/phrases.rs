//! Phrases that must not occur in sources, pages and help, because a term of the field or a plain sentence
//! says the same. The list begins with the phrases that readers found unclear.

use crate::root;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// A phrase, and its replacement.
const PHRASES: &[(&str, &str)] = &[
    ("is refused by what differs", "is rejected; the error lists the differences"),
    ("any other signal to end", "any other termination signal"),
    ("are no part of a run", "do not affect a run"),
    ("interval stands for itself", "intervals are not corrected for multiple comparisons"),
    ("is a ceiling", "is an upper bound"),
    ("the rule and not the code", "the algorithm is the cause, not our code"),
    ("seeds that tuned nothing", "seeds that were not used for tuning"),
    ("adds gains up", "sums gains over antennas"),
    ("is the sum over kinds is the total", "both breakdowns add up to the total"),
    ("later mends", "later fixes"),
    ("When in doubt, more.", "if unsure, increase"),
    ("Before the columns of the table stand", "first columns:"),
    ("The rate is another one.", "retune the server rate"),
    ("is warned", "trigger a warning"),
    ("it is what arrives", "received data limit"),
    ("Other threads run on", "the GIL is released"),
    ("is the seam", "is the extension point"),
    ("What is to blame?", "troubleshooting"),
    ("Tell how far", "show the progress"),
    ("the machine's fault", "system or I/O error"),
    ("by a coin of its own", "sampled independently"),
    ("the quieter the more", "lowers its power as its energy debt grows"),
    ("anybody's guess", "is hard to predict for a branch"),
    ("a coin toss", "hard to predict for a branch"),
    ("is right in the mean", "is unbiased"),
    ("joules of a round by policy", "time and energy per round, for each policy"),
    ("Who takes a policy from such code", "baselines copied from that code differ from the paper"),
    ("merit it is not", "it does not say which K is best"),
    ("it is not the audit that is weak", "received data limit the audit"),
    ("sends the quieter", "lowers its power as its energy debt grows"),
    ("tell apart", "distinguish"),
    ("tells apart", "distinguishes"),
    ("told apart", "distinguished"),
    ("counts for nobody", "has no weight"),
    ("goes on as", "continues by the rule"),
    ("gets lost", "is lost"),
    ("knows of itself", "states"),
    ("everybody is there", "all devices are available"),
    ("what it should be", "valid"),
];

/// Words that must not begin a doc comment: such a clause replaces a noun.
const OPENINGS: &[&str] = &["Who ", "What ", "Whose ", "Whoever ", "With what ", "Of what "];

/// Files that quote the phrases, and records of the past.
const QUOTES: &[&str] = &["CHANGELOG.md", "bench/runs/", "crates/xtask/src/phrases.rs"];

/// Fails if one of `files` has a phrase of the list.
fn check<'a>(root: &Path, files: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    let is_exempt = |file: &str| QUOTES.iter().any(|place| file.starts_with(place));
    for file in files.filter(|file| !is_exempt(file)) {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        problems.extend(judge(&text).iter().map(|(line, problem)| format!("{file}:{line}: {problem}")));
    }
    if !problems.is_empty() {
        bail!("phrases to replace (see crates/xtask/src/phrases.rs):\n  {}", problems.join("\n  "));
    }
    Ok(())
}

/// Fails if a tracked source, page or script has a phrase of the list.
pub fn check_all() -> anyhow::Result<()> {
    let kinds = ["*.rs", "*.py", "*.pyi", "*.md", "*.toml", "*.js", "*.html"];
    let listed = Command::new("git").arg("ls-files").args(kinds).current_dir(root()).output()?;
    check(&root(), String::from_utf8(listed.stdout)?.lines())
}

/// The problems of a text with the numbers of their lines. A phrase may continue on the next line.
fn judge(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let first = bare(line);
        let both = format!("{first} {}", lines.get(i + 1).map_or("", |next| bare(next)));
        for (phrase, instead) in PHRASES {
            if both.find(phrase).is_some_and(|at| at < first.len()) {
                found.push((i + 1, format!("\"{phrase}\"; write for example \"{instead}\"")));
            }
        }
        let doc = doc_start(&lines[..i], line).unwrap_or_default();
        if let Some(word) = OPENINGS.iter().find(|word| doc.starts_with(**word)) {
            let word = word.trim_end();
            found.push((i + 1, format!("a doc comment begins with \"{word}\"; begin with its noun")));
        }
    }
    found
}

/// A line without indentation, comment marks and the backslash at its end.
fn bare(line: &str) -> &str {
    line.trim().trim_start_matches(['/', '!', '#', '*']).trim_start().trim_end_matches('\\').trim_end()
}

/// The text of a line that begins a doc comment of Rust or of Python; `before` are the lines before it.
fn doc_start<'a>(before: &[&str], line: &'a str) -> Option<&'a str> {
    let mark = ["/// ", "//! ", "\"\"\""].into_iter().find(|mark| line.trim_start().starts_with(mark))?;
    let continues = mark != "\"\"\"" && before.last().is_some_and(|last| last.trim_start().starts_with(mark));
    (!continues).then(|| &line.trim_start()[mark.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        judge(text).iter().map(|(line, problem)| format!("{line}: {problem}")).collect()
    }

    #[test]
    fn a_planted_phrase_is_found_also_across_two_lines() {
        let wanted = "\"is the seam\"; write for example \"is the extension point\"";
        assert_eq!(problems("/// A task.\n/// The task is the seam.\n"), [format!("2: {wanted}")]);
        assert_eq!(problems("a task is\n/// the seam\n"), [format!("1: {wanted}")]);
        assert_eq!(problems("\"a task is \\\n    the seam\"\n"), [format!("1: {wanted}")]);
        assert_eq!(problems("the seam of a coat\n"), [""; 0]);
    }

    #[test]
    fn a_doc_comment_must_not_begin_with_a_noun_clause() {
        let wanted = |word: &str| format!("1: a doc comment begins with \"{word}\"; begin with its noun");
        assert_eq!(problems("    /// Who sends.\n"), [wanted("Who")]);
        assert_eq!(problems("//! What arrived of a node.\n"), [wanted("What")]);
        assert_eq!(problems("\"\"\"Whose it is.\"\"\"\n"), [wanted("Whose")]);
        assert_eq!(problems("/// A rule.\n/// What follows is a sentence.\n"), [""; 0]);
        assert_eq!(problems("// What is left out is zero.\n"), [""; 0]);
    }

    #[test]
    fn the_check_fails_on_a_planted_phrase_and_passes_without_it() {
        let folder = std::env::temp_dir().join(format!("fedlink-phrases-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("good.rs"), "/// The policy.\n").unwrap();
        std::fs::write(folder.join("bad.rs"), "/// Who sends.\n").unwrap();
        let [good, bad] = ["good.rs", "bad.rs"].map(|file| check(&folder, std::iter::once(file)));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(good.is_ok(), "{good:?}");
        assert!(bad.unwrap_err().to_string().contains("bad.rs:1: a doc comment begins with \"Who\""));
    }

    #[test]
    fn this_repository_has_none_of_the_phrases() {
        check_all().unwrap();
    }
}
