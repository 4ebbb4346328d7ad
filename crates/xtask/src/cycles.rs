//! Data flows one way: no two top-level modules of a library may depend on each other,
//! directly or through others.
//!
//! A module depends on another if its code, tests apart, names `crate::other`. A re-export of `lib.rs`
//! counts as the module that it comes from.

use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The libraries, each with the edges that still close a cycle. The lists may only become shorter: an
/// edge that no longer closes a cycle must be removed here.
const LIBRARIES: &[(&str, &[(&str, &str)])] = &[
    ("fedlink-wire", &[]),
    ("fedlink", &[]),
    ("fedlink-theory", &[]),
    ("fedlink-study", &[]),
    ("fedlink-report", &[]),
    ("fedlink-watch", &[]),
    ("fedlink-cli", &[]),
];

/// The modules that each module names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Fails if a library has a new cycle, or if a known edge no longer closes one.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    for (library, known) in LIBRARIES {
        let graph = graph(&root.join("crates").join(library).join("src"))?;
        problems.extend(judge(&graph, known).into_iter().map(|problem| format!("{library}: {problem}")));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("modules that depend on each other (see crates/xtask/src/cycles.rs):\n  {}", problems.join("\n  "))
}

/// The problems of a graph in which only the `known` edges may close cycles.
fn judge(graph: &Graph, known: &[(&str, &str)]) -> Vec<String> {
    let without = |kept: Option<usize>| {
        let mut graph = graph.clone();
        for (i, (from, to)) in known.iter().enumerate() {
            if let (false, Some(named)) = (kept == Some(i), graph.get_mut(*from)) {
                named.remove(*to);
            }
        }
        graph
    };
    let mut problems = Vec::new();
    let mut rest = without(None);
    // One cycle after the other; each is cut at its closing edge.
    while let Some(path) = cycle(&rest) {
        if let Some(named) = rest.get_mut(&path[path.len() - 2]) {
            named.remove(&path[path.len() - 1]);
        }
        problems.push(path.join(" → "));
    }
    for (i, (from, to)) in known.iter().enumerate() {
        let closes = cycle(&without(Some(i))).is_some();
        if problems.is_empty() && !closes {
            problems.push(format!("{from} → {to} no longer closes a cycle: remove it from the list"));
        }
    }
    problems
}

/// The modules of a shortest cycle, with the first repeated at the end.
fn cycle(graph: &Graph) -> Option<Vec<String>> {
    let path_back = |start: &String| {
        let mut seen = BTreeSet::new();
        let mut paths = std::collections::VecDeque::from([vec![start.clone()]]);
        while let Some(path) = paths.pop_front() {
            for next in graph.get(&path[path.len() - 1]).into_iter().flatten() {
                let longer = || path.iter().chain([next]).cloned().collect::<Vec<String>>();
                if next == start {
                    return Some(longer());
                }
                if seen.insert(next.clone()) {
                    paths.push_back(longer());
                }
            }
        }
        None
    };
    graph.keys().filter_map(path_back).min_by_key(Vec::len)
}

/// The modules of the library in `source`.
fn graph(source: &Path) -> anyhow::Result<Graph> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let root = code(&read(&source.join("lib.rs"))?);
    let modules: Vec<String> = root.lines().filter_map(declared).collect();
    let mut homes: BTreeMap<String, String> =
        modules.iter().map(|name| (name.clone(), name.clone())).collect();
    for (module, item) in paths_after(&root, "pub use ").iter().filter_map(|path| path.split_once("::")) {
        if modules.iter().any(|known| known == module) {
            homes.insert(item.rsplit("::").next().unwrap_or(item).to_owned(), module.to_owned());
        }
    }
    let mut graph = Graph::new();
    for module in &modules {
        let mut text = String::new();
        for path in [source.join(format!("{module}.rs")), source.join(module).join("mod.rs")] {
            if path.is_file() {
                collect(&path, &read, &mut text)?;
            }
        }
        let named = paths_after(&text, "crate::").into_iter().filter_map(|path| {
            let first = path.split("::").next().unwrap_or_default();
            homes.get(first).filter(|home| *home != module).cloned()
        });
        graph.insert(module.clone(), named.collect());
    }
    Ok(graph)
}

/// Adds the code of the module at `path` and of the modules that it declares.
fn collect(
    path: &Path,
    read: &impl Fn(&Path) -> anyhow::Result<String>,
    text: &mut String,
) -> anyhow::Result<()> {
    let own = code(&read(path)?);
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs") => path.parent().map(Path::to_path_buf).unwrap_or_default(),
        _ => path.with_extension(""),
    };
    for name in own.lines().filter_map(declared) {
        for inner in [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")] {
            if inner.is_file() {
                collect(&inner, read, text)?;
            }
        }
    }
    text.push_str(&own);
    Ok(())
}

/// The name in `mod name;`, with any visibility.
pub fn declared(line: &str) -> Option<String> {
    let line = line.trim();
    let rest = line
        .strip_prefix("pub mod ")
        .or_else(|| line.strip_prefix("mod "))
        .or_else(|| line.strip_prefix("pub(")?.split_once(") mod ").map(|(_, rest)| rest))?;
    rest.strip_suffix(';').map(str::to_owned)
}

/// The text without comments and without code that is compiled for tests only; its lines keep their
/// numbers. It relies on the format of `cargo fmt`: an item ends with its closing brace at its own
/// indentation.
pub fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let indent = &line[..line.len() - line.trim_start().len()];
            code.push('\n');
            for skipped in lines.by_ref() {
                code.push('\n');
                let ends = skipped.ends_with(';') || skipped.ends_with('}');
                let outermost = skipped.starts_with(indent) && !skipped[indent.len()..].starts_with(' ');
                if ends && outermost {
                    break;
                }
            }
        } else {
            if !line.trim_start().starts_with("//") {
                code.push_str(line.split(" // ").next().unwrap_or_default());
            }
            code.push('\n');
        }
    }
    code
}

/// Every path after `prefix`; groups in braces are expanded, up to the first two names.
fn paths_after(text: &str, prefix: &str) -> Vec<String> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut paths = Vec::new();
    for (start, _) in text.match_indices(prefix) {
        // `$crate::` and `other_crate::` are not ours.
        if text[..start].ends_with(|c| part_of_name(c) || c == '$') {
            continue;
        }
        expand("", &text[start + prefix.len()..], &mut paths);
    }
    paths
}

/// Adds the paths at the beginning of `text`; `before` is their parent.
fn expand(before: &str, text: &str, paths: &mut Vec<String>) {
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start) = (0_usize, 0);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    if !group[start..i].trim().is_empty() {
                        expand(before, group[start..i].trim_start(), paths);
                    }
                    start = i + 1;
                    if c == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let path = format!("{before}{}", &text[..end]);
    match text[end..].strip_prefix("::") {
        Some(rest) if rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{') => {
            expand(&format!("{path}::"), rest, paths);
        }
        _ => paths.push(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph_of(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    }

    #[test]
    fn a_cycle_is_named_by_its_modules() {
        let graph = graph_of(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]);
        assert_eq!(judge(&graph, &[]), ["a → b → c → a"]);
        assert!(judge(&graph_of(&[("a", "b"), ("b", "c"), ("a", "c")]), &[]).is_empty());
    }

    #[test]
    fn a_known_edge_is_allowed_only_while_it_closes_a_cycle() {
        let graph = graph_of(&[("a", "b"), ("b", "a"), ("b", "c")]);
        assert!(judge(&graph, &[("b", "a")]).is_empty());
        let problems = judge(&graph, &[("b", "a"), ("b", "c")]);
        assert_eq!(problems, ["b → c no longer closes a cycle: remove it from the list"]);
        let problems = judge(&graph_of(&[("a", "b")]), &[("b", "a")]);
        assert_eq!(problems, ["b → a no longer closes a cycle: remove it from the list"]);
    }

    #[test]
    fn paths_include_groups_and_exclude_comments_and_tests() {
        let text = "use crate::{a, b::{self, X}, c::d};\n// crate::no\n\
                    fn f() -> crate::e::Y { $crate::no::Z }\n\
                    #[cfg(test)]\nmod tests {\n    use crate::no;\n    fn g() {}\n}\n\
                    #[cfg(test)]\nuse crate::no;\nuse crate::g;\n";
        let paths = paths_after(&code(text), "crate::");
        assert_eq!(paths, ["a", "b::self", "b::X", "c::d", "e::Y", "g"]);
    }

    #[test]
    fn this_workspace_has_no_cycle_that_is_not_known() {
        check(&crate::root()).unwrap();
    }
}
