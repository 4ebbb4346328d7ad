use super::*;
use crate::folder::names::RUNS;

/// Every file under `folder`.
fn listed(folder: &Path) -> Vec<String> {
    FolderFiles::new(folder).all().unwrap().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_folder_is_replaced_only_if_fedlink_wrote_all_its_files() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("out");
    let folder = OutputFolder::create(&target, false).unwrap();
    folder.write("results.csv", "1").unwrap();
    folder.write("plots/a.svg", "1").unwrap();
    folder.finish().unwrap();
    assert!(matches!(check_free(&target, false), Err(Error::Exists(_))));
    // A run, and a partial file of a killed process.
    fs::create_dir(target.join(RUNS)).unwrap();
    fs::write(target.join("runs/bc-k1-seed3-4f0c2a9b61de-r400.json"), "x").unwrap();
    fs::write(target.join("plots/.a.svg.partial-77"), "x").unwrap();
    let before = listed(&target);
    let mine = ["thesis.tex", "plots/mine.svg", "runs/notes.json", ".results.csv.partial-x", "deep/er/file"];
    for name in mine {
        let path = target.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "precious").unwrap();
        let Err(Error::NotOurs { others, .. }) = OutputFolder::create(&target, true).map(drop) else {
            panic!("{name}")
        };
        assert_eq!(others, [name]);
        fs::remove_file(&path).unwrap();
    }
    fs::remove_dir(target.join("deep/er")).unwrap();
    fs::remove_dir(target.join("deep")).unwrap();
    assert_eq!(listed(&target), before);
    let folder = OutputFolder::create(&target, true).unwrap();
    let aside = folder.replaced().unwrap().to_owned();
    assert_eq!(listed(&aside), before);
    // A foreign file that appears at the last moment stays, and the error names it.
    fs::write(aside.join("late"), "precious").unwrap();
    let error = folder.finish().unwrap_err().to_string();
    assert!(error.contains(".out.replaced-"), "{error}");
    assert_eq!(listed(&aside), ["late"]);
    fs::remove_dir_all(&aside).unwrap();
    OutputFolder::create(&target, true).unwrap().finish().unwrap();
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    fs::create_dir_all(target.join("my/own")).unwrap();
    let refused = OutputFolder::create(&target, true);
    assert!(matches!(refused, Err(Error::NotOurs { others, .. }) if others == ["my/own/"]));
    fs::remove_dir(target.join("my/own")).unwrap();
    fs::remove_dir(target.join("my")).unwrap();
    // An empty one.
    OutputFolder::create(&target, true).unwrap().finish().unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed_and_a_folder_in_use_is_left_alone() {
    let base = tempfile::tempdir().unwrap();
    let (target, other) = (base.path().join("out"), base.path().join("other"));
    OutputFolder::create(&target, false).unwrap().write("a.csv", "1").unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("b"), "precious").unwrap();
    fs::remove_file(target.join("a.csv")).unwrap();
    std::os::unix::fs::symlink(other.join("b"), target.join("a.csv")).unwrap();
    std::os::unix::fs::symlink(&other, target.join("linked")).unwrap();
    assert_eq!(FolderFiles::new(&target).others().unwrap(), ["a.csv", "linked"]);
    assert!(matches!(OutputFolder::create(&target, true), Err(Error::NotOurs { .. })));
    for name in ["a.csv", "linked"] {
        fs::remove_file(target.join(name)).unwrap();
    }
    let lock = OutputFolder::open(&target).unwrap().lock().unwrap();
    assert!(matches!(OutputFolder::create(&target, true), Err(Error::InUse { .. })));
    drop(lock);
    OutputFolder::create(&target, true).unwrap().finish().unwrap();
    assert_eq!(fs::read(other.join("b")).unwrap(), b"precious");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_leads_to_its_replacement() {
    let base = tempfile::tempdir().unwrap();
    let (link, real) = (base.path().join("out"), base.path().join("disk/real"));
    OutputFolder::create(&real, false).unwrap().write("a.csv", "1").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let folder = OutputFolder::create(&link, true).unwrap();
    folder.write("b.csv", "2").unwrap();
    assert_eq!(folder.finish().unwrap(), link);
    assert!(link.is_symlink() && fs::read(real.join("b.csv")).unwrap() == b"2");
    assert_eq!(listed(&real), ["b.csv", FILES]);
    let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
    assert_eq!((names(base.path()), names(&base.path().join("disk"))), (2, 1));
}

#[cfg(unix)]
#[test]
fn a_foreign_file_in_a_folder_is_not_overwritten() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("out");
    OutputFolder::create(&target, false).unwrap().write("results.csv", "1").unwrap();
    fs::write(target.join("results.tex"), "precious").unwrap();
    let (plots, plot) = (base.path().join("mine"), base.path().join("mine/a.svg"));
    fs::create_dir(&plots).unwrap();
    fs::write(&plot, "precious").unwrap();
    std::os::unix::fs::symlink(&plots, target.join("plots")).unwrap();
    std::os::unix::fs::symlink(&plot, target.join("b.svg")).unwrap();
    let folder = OutputFolder::open(&target).unwrap();
    for name in ["results.tex", "plots/a.svg", "plots/new.svg", "b.svg"] {
        let refused = folder.write(name, "2");
        assert!(matches!(refused, Err(Error::NotOurs { others, .. }) if others == [name]), "{name}");
    }
    folder.write("results.csv", "2").unwrap();
    assert_eq!(fs::read(target.join("results.tex")).unwrap(), b"precious");
    assert_eq!((fs::read(&plot).unwrap(), fs::read_dir(&plots).unwrap().count()), (b"precious".to_vec(), 1));
    // A folder of a version that kept no list. Without the list no file, not even a table, is known to be
    // fedlink's.
    fs::remove_file(target.join(FILES)).unwrap();
    let folder = OutputFolder::open(&target).unwrap();
    drop(folder.lock().unwrap());
    for name in ["results.csv", "results.tex"] {
        assert!(matches!(folder.write(name, "3"), Err(Error::NotOurs { others, .. }) if others == [name]));
    }
    folder.write("summary.json", "3").unwrap();
    assert_eq!(fs::read(target.join("results.tex")).unwrap(), b"precious");
}

#[test]
fn a_folder_that_another_process_set_aside_is_named_and_stays() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("out");
    let own = |number: &str| base.path().join(format!(".out.replaced-{number}"));
    let process = std::process::id().to_string();
    // A process of the same number, as in containers, that was killed while it replaced the folder.
    for number in ["1", &process] {
        OutputFolder::create(&own(number), false).unwrap().write("a.csv", "old").unwrap();
    }
    fs::create_dir(base.path().join(".out.replaced-x")).unwrap();
    OutputFolder::create(&target, false).unwrap().write("a.csv", "1").unwrap();
    let folder = OutputFolder::create(&target, true).unwrap();
    assert_eq!(folder.replaced().unwrap(), own(&format!("{process}-2")));
    folder.write("a.csv", "2").unwrap();
    folder.finish().unwrap();
    OutputFolder::open(&target).unwrap().finish().unwrap();
    let mut left = [own("1"), own(&process)];
    left.sort();
    assert_eq!(left_aside(&target).unwrap(), left);
    assert!(left.iter().all(|aside| fs::read(aside.join("a.csv")).unwrap() == b"old"));
}

#[cfg(unix)]
#[test]
fn a_replaced_folder_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("out");
    let mode = || fs::metadata(&target).unwrap().permissions().mode() & 0o777;
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    let folder = OutputFolder::create(&target, true).unwrap();
    folder.write("a.csv", "1").unwrap();
    folder.finish().unwrap();
    assert_eq!(mode(), 0o700);
    OutputFolder::create(&target, true).unwrap().finish().unwrap();
    assert_eq!(mode(), 0o700);
}

#[cfg(unix)]
#[test]
fn the_list_and_the_lock_are_never_written_through_a_link() {
    use std::os::unix::fs::symlink;
    let base = tempfile::tempdir().unwrap();
    let (target, other) = (base.path().join("out"), base.path().join("other"));
    fs::create_dir(&target).unwrap();
    fs::write(&other, "precious").unwrap();
    let folder = OutputFolder::open(&target).unwrap();
    for (name, to) in [(FILES, &other), (LOCK, &base.path().join("new"))] {
        symlink(to, target.join(name)).unwrap();
        let refused = folder.lock().and_then(|_| folder.write("a.csv", "1"));
        assert!(refused.unwrap_err().to_string().contains("it is a link"), "{name}");
        fs::remove_file(target.join(name)).unwrap();
    }
    assert!(!base.path().join("new").exists() && fs::read(&other).unwrap() == b"precious");
    // A foreign file with the name of the lock is neither locked nor removed.
    fs::write(target.join(LOCK), "precious").unwrap();
    assert!(folder.lock().is_err());
    assert_eq!(FolderFiles::new(&target).others().unwrap(), [LOCK]);
    assert_eq!(fs::read(target.join(LOCK)).unwrap(), b"precious");
}

#[test]
fn a_list_that_is_damaged_or_endless_is_no_reason_to_stop_or_to_fill_the_memory() {
    let base = tempfile::tempdir().unwrap();
    let folder = OutputFolder::open(base.path()).unwrap();
    fs::write(base.path().join(FILES), b"a.csv\n\xff\xfe\nb.csv\n").unwrap();
    folder.write("b.csv", "1").unwrap();
    fs::File::create(base.path().join(FILES)).unwrap().set_len(1 << 40).unwrap();
    assert!(folder.write("b.csv", "1").unwrap_err().to_string().contains("is longer than 16777216 bytes"));
}

#[test]
fn the_next_lock_removes_half_written_files_of_killed_processes() {
    let base = tempfile::tempdir().unwrap();
    let folder = OutputFolder::open(base.path()).unwrap();
    folder.write("plots/a.svg", "1").unwrap();
    for name in ["plots/.a.svg.partial-77", "plots/.mine.partial-77"] {
        fs::write(base.path().join(name), "x").unwrap();
    }
    drop(folder.lock().unwrap());
    assert_eq!(listed(base.path()), [FILES, "plots/.mine.partial-77", "plots/a.svg"]);
}
