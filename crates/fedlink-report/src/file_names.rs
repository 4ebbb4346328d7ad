//! Labels as the names of files.

use std::collections::BTreeMap;

/// Bytes of a label that a name keeps. File systems take 255 bytes; the text before and after a label,
/// including a checksum, is far shorter than the rest.
const MAX_BYTES: usize = 150;

/// A file name for each of `labels`, in their order: everything that could trouble a file system is replaced.
/// Names differ where labels do, also on a file system that ignores the case of letters: a label that was
/// cut, or that has the name of another one, gets a checksum of the whole label.
pub fn file_names(labels: &[&str]) -> Vec<String> {
    let plain: Vec<String> = labels.iter().map(|label| readable(label)).collect();
    let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, label) in plain.iter().zip(labels) {
        let owners = owners.entry(name.to_lowercase()).or_default();
        if !owners.contains(label) {
            owners.push(label);
        }
    }
    let name = |(name, label): (&String, &&str)| {
        let shared = owners.get(&name.to_lowercase()).is_some_and(|owners| owners.len() > 1);
        if !shared && name.chars().count() == label.chars().count() {
            return name.clone();
        }
        // Two labels with the same checksum and name are distinguished by their number.
        let sum = checksum(label);
        let twins = owners.get(&name.to_lowercase()).into_iter().flatten();
        let before = twins.take_while(|twin| *twin != label).filter(|twin| checksum(twin) == sum).count();
        let number = if before > 0 { format!("-{}", before + 1) } else { String::new() };
        format!("{name}-{sum}{number}")
    };
    plain.iter().zip(labels).map(name).collect()
}

/// The label with everything that could trouble a file system replaced, cut to a length that any takes.
fn readable(label: &str) -> String {
    let replaced = label.chars().map(|c| if c.is_alphanumeric() || "-=.".contains(c) { c } else { '_' });
    let mut name = String::new();
    for c in replaced {
        if name.len() + c.len_utf8() > MAX_BYTES {
            break;
        }
        name.push(c);
    }
    name
}

fn checksum(label: &str) -> String {
    format!("{:08x}", crc32fast::hash(label.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_ordinary_label_is_its_own_name() {
        assert_eq!(file_names(&["bc k=1", "bn2-c k=10", "rate=1e-3"]), ["bc_k=1", "bn2-c_k=10", "rate=1e-3"]);
        // The same label twice is one file.
        assert_eq!(file_names(&["bc", "bc"]), ["bc", "bc"]);
    }

    #[test]
    fn labels_that_differ_in_characters_that_a_name_cannot_hold_have_two_names() {
        let names = file_names(&["dataset=a/b", "dataset=a_b", "x", "X"]);
        assert!(names[0].starts_with("dataset=a_b-") && names[1].starts_with("dataset=a_b-"), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_ne!(names[2].to_lowercase(), names[3].to_lowercase());
    }

    #[test]
    fn a_label_longer_than_a_name_may_be_is_cut_and_stays_unique() {
        let long = |end: &str| format!("dataset={}{end}", "/data/λ".repeat(60));
        let (a, b) = (long("a.npz"), long("b.npz"));
        let names = file_names(&[&a, &b]);
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() < 200), "{names:?}");
    }

    proptest! {
        #[test]
        fn any_labels_have_short_names_that_differ_where_they_do(
            labels in prop::collection::vec(prop_oneof!["\\PC{0,300}", "[aA/_ ]{0,3}"], 1..8),
        ) {
            let labels: BTreeSet<&str> = labels.iter().map(String::as_str).collect();
            let labels: Vec<&str> = labels.into_iter().collect();
            let names = file_names(&labels);
            let different: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
            prop_assert_eq!(different.len(), labels.len(), "{:?}", names);
            prop_assert!(names.iter().all(|name| name.len() < 200 && !name.contains(['/', '\\', '\0'])));
        }
    }
}
