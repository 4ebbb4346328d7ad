//! A part is one file and one line in a list: no other code names it.
//!
//! Rules and messages follow from the facts that parts declare. A message that names parts takes their names
//! from the list of their kind, so that it also names the parts that are added later.

use crate::cycles::{code, declared};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The library whose parts are checked.
const SOURCE: &str = "crates/fedlink/src";

/// Names of parts that are also other words: the file, the name, and the meaning of the word there. An
/// entry that matches no line must be removed.
const OTHER_WORDS: &[(&str, &str, &str)] = &[
    ("aggregate/clip.rs", "median", "a value of defense.clip"),
    ("aggregate/clip.rs", "off", "a value of defense.clip"),
    ("compress/rand_k.rs", "random", "the family of the scheme"),
    ("compress/random_sparse.rs", "random", "the family of the scheme"),
    ("radio/fading/trace.rs", "file", "a key of the law"),
    ("radio/trace/npy.rs", "trace", "the array in messages"),
    ("record/details.rs", "queue", "a column of what policies decide by"),
    ("spec/groups.rs", "classes", "a key of a group"),
    ("spec/rules/learning.rs", "off", "a value of defense.clip"),
    ("spec/rules/ranges.rs", "median", "a value of defense.clip"),
    ("spec/rules/ranges.rs", "off", "a value of defense.clip"),
];

/// Fails if a line of the library names a part of another file.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let source = root.join(SOURCE);
    let mut files = BTreeMap::new();
    read(&source, &source, &mut files)?;
    let problems = judge(&files, OTHER_WORDS);
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "parts that other files name; take the name from the facts of the parts, as `parts_with` does (see \
         crates/xtask/src/part_names.rs):\n  {}",
        problems.join("\n  ")
    )
}

/// Reads every Rust file below `folder` into `files`, by its path below `source`.
fn read(source: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            read(source, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(source)?.to_string_lossy().replace('\\', "/");
            files.insert(name, text);
        }
    }
    Ok(())
}

/// Every line that names a part of another file, and every entry of `other_words` without a line.
fn judge(files: &BTreeMap<String, String>, other_words: &[(&str, &str, &str)]) -> Vec<String> {
    let mut homes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in files {
        for name in names(&code(text)) {
            homes.entry(name).or_default().insert(file);
        }
    }
    let tests: BTreeSet<String> = files.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
    let is_test = |file: &str| {
        let module = file.strip_suffix(".rs").unwrap_or(file);
        let module = module.strip_suffix("/mod").unwrap_or(module);
        tests.iter().any(|test| module == test || module.starts_with(&format!("{test}/")))
    };
    let mut needed = vec![false; other_words.len()];
    let mut problems = Vec::new();
    for (file, text) in files.iter().filter(|(file, _)| !is_test(file)) {
        for (index, line) in code(text).lines().enumerate() {
            for (name, home) in &homes {
                if home.contains(file.as_str()) || !is_named(line, name) {
                    continue;
                }
                match other_words.iter().position(|(other, word, _)| other == file && word == name) {
                    Some(entry) => needed[entry] = true,
                    None => problems.push(format!("{file}:{}: \"{name}\"", index + 1)),
                }
            }
        }
    }
    let unused = other_words.iter().zip(needed).filter(|(_, is_needed)| !is_needed);
    problems.extend(unused.map(|((file, name, _), _)| {
        format!("{file} no longer has the word \"{name}\": remove it from OTHER_WORDS")
    }));
    problems
}

/// The names that configurations of parts declare.
fn names(code: &str) -> Vec<String> {
    let declared = code.split("const NAME: &'static str =").skip(1);
    let quoted = declared.filter_map(|rest| {
        let (name, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    });
    quoted.collect()
}

/// The modules that `file` declares for tests only, as paths without an extension.
fn test_modules(file: &str, text: &str) -> Vec<String> {
    let path = PathBuf::from(file);
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs") => path.parent().map(Path::to_path_buf).unwrap_or_default(),
        _ => path.with_extension(""),
    };
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].trim() == "#[cfg(test)]");
    pairs
        .filter_map(|pair| declared(pair[1]))
        .map(|name| folder.join(name).to_string_lossy().replace('\\', "/"))
        .collect()
}

/// Whether a line has the name in quotes. The attribute of a key states the values of that key and its
/// default part: it names a part of another key only by `key = \"name\"`.
fn is_named(line: &str, name: &str) -> bool {
    // A fast check: most lines do not have the word.
    if !line.contains(name) {
        return false;
    }
    if ["#[key(", "allowed = "].iter().any(|start| line.trim_start().starts_with(start)) {
        return line.contains(&format!("= \\\"{name}\\\""));
    }
    line.contains(&format!("\"{name}\"")) || line.contains(&format!("\\\"{name}\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "impl PartConfig for Best {\n    const NAME: &'static str = \"best\";\n}\n";

    fn problems(other: &str, other_words: &[(&str, &str, &str)]) -> Vec<String> {
        let files = [("schedule/best.rs", PART), ("spec/rules.rs", other)];
        judge(&files.map(|(file, text)| (file.to_owned(), text.to_owned())).into(), other_words)
    }

    #[test]
    fn a_name_in_another_file_is_a_problem_in_code_and_in_messages() {
        assert_eq!(problems("\nif name == \"best\" {}\n", &[]), ["spec/rules.rs:2: \"best\""]);
        assert_eq!(
            problems("// \"good\"\nlet m = \"write \\\"best\\\"\";\n", &[]),
            ["spec/rules.rs:2: \"best\""]
        );
        assert_eq!(problems("let m = \"the best of all\";\n", &[]), [""; 0]);
    }

    #[test]
    fn comments_and_tests_may_name_parts() {
        let text =
            "/// As \"best\".\nfn f() {}\n#[cfg(test)]\nmod tests {\n    const A: &str = \"best\";\n}\n";
        assert_eq!(problems(text, &[]), [""; 0]);
        let parent = ("spec/mod.rs".to_owned(), "#[cfg(test)]\npub(crate) mod example;\n".to_owned());
        for (file, count) in [("spec/example.rs", 0), ("spec/example/mod.rs", 0), ("spec/examples.rs", 1)] {
            let files = [
                parent.clone(),
                ("schedule/best.rs".to_owned(), PART.to_owned()),
                (file.to_owned(), "let a = \"best\";\n".to_owned()),
            ];
            assert_eq!(judge(&files.into(), &[]).len(), count, "{file}");
        }
    }

    #[test]
    fn the_attribute_of_a_key_may_state_its_values_and_its_default() {
        assert_eq!(problems("#[key(default = \"best\", part)]\n", &[]), [""; 0]);
        assert_eq!(problems("#[key(allowed = \"\\\"best\\\" | \\\"good\\\"\")]\n", &[]), [""; 0]);
        assert_eq!(problems("#[key(\n    allowed = \"\\\"best\\\"\"\n)]\n", &[]), [""; 0]);
        let other = "#[key(allowed = \"a (for schedule.policy = \\\"best\\\")\")]\n";
        assert_eq!(problems(other, &[]), ["spec/rules.rs:1: \"best\""]);
    }

    #[test]
    fn no_file_of_this_library_names_the_part_of_another() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn another_word_is_allowed_while_its_file_has_it() {
        let other_words = [("spec/rules.rs", "best", "a value")];
        assert_eq!(problems("let a = \"best\";\n", &other_words), [""; 0]);
        let unused = "spec/rules.rs no longer has the word \"best\": remove it from OTHER_WORDS";
        assert_eq!(problems("let a = 1;\n", &other_words), [unused]);
    }
}
