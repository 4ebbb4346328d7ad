//! Disks that are full, read-only or gone, as real ones: a small file system in memory, which a namespace of
//! the test's own mounts and which is gone with it. Where mounting is not allowed, [`super::faults`] replaces
//! it: by a limit on the size of files, a folder without permissions, and a folder that is renamed.

#![cfg(target_os = "linux")]

use crate::common::{folder, numbers, outputs};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The beginning of every script: the disk of 400 kB on `small`, and a function that runs the command and
/// prints its exit code and its number of lines on standard error.
const BEGIN: &str = r#"
set -eu
mkdir small
mount -t tmpfs -o size=400k tmpfs small
code() {
    status=0
    "$FEDLINK" "$@" >stdout 2>stderr || status=$?
    echo "$status $(wc -l <stderr) $(cat stderr)"
}
sums() { (cd small/out/runs && sha256sum *.json); }
"#;

/// The command that gives a process mounts of its own, if that is allowed here.
fn namespace() -> Option<Vec<&'static str>> {
    let ways = [vec!["--mount"], vec!["--user", "--map-root-user", "--mount"]];
    let empty = TempDir::new().unwrap();
    ways.into_iter().find(|way| {
        let mut command = Command::new("unshare");
        command.args(way).args(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs"]).arg(empty.path());
        command.output().is_ok_and(|output| output.status.success())
    })
}

/// The output of the script, line by line; none (and a note is printed) without namespaces.
fn printed(folder: &Path, script: &str) -> Option<Vec<String>> {
    let Some(way) = namespace() else {
        println!("no mounts are allowed here: the stand-ins of the module `faults` are all there is");
        return None;
    };
    let script = format!("{BEGIN}{script}");
    let mut command = Command::new("unshare");
    command.args(way).args(["sh", "-c", &script]).current_dir(folder);
    let Output { status, stdout, stderr } =
        command.env("FEDLINK", assert_cmd::cargo::cargo_bin("fedlink")).output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{text}{}", String::from_utf8_lossy(&stderr));
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn a_full_disk_ends_a_sweep_with_one_message_and_loses_nothing() {
    let folder = folder();
    let script = r"
code run two.toml --quick --share 1/2 --out small/out --quiet
sums >before
# Two blocks are left: a lock and a name fit, a run does not.
dd if=/dev/zero of=small/filler bs=4k count=$(($(df --output=avail -k small | tail -1) / 4 - 2)) 2>/dev/null
code run two.toml --quick --share 2/2 --out small/out --quiet
sums >after
cmp before after && echo the same runs
rm small/filler
code run two.toml --quick --share 2/2 --out small/out --quiet
# Checkpoints that do not fit.
dd if=/dev/zero of=small/filler bs=4k count=$(($(df --output=avail -k small | tail -1) / 4 - 16)) 2>/dev/null
code run two.toml --set run.rounds=200 --checkpoint-every 3 --out small/long --quiet
rm -r small/filler small/long
# Results that do not fit: report and plots.
code merge small/out --quiet
sums >after
mkdir out
cp -r small/out/runs small/out/config.toml small/out/data.json small/out/files.txt out/
";
    let Some(lines) = printed(folder.path(), script) else { return };
    let [first, full, same, resumed, checkpoint, merge] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(
        (first.as_str(), same.as_str(), resumed.as_str()),
        ("0 0 ", "the same runs", "0 0 "),
        "{lines:?}"
    );
    for message in [full, checkpoint, merge] {
        assert!(message.starts_with("1 1 error: cannot "), "{message}");
        assert!(message.contains("No space left on device"), "{message}");
    }
    assert!(full.contains("finished work is saved; resume with"), "{full}");
    outputs(&folder, "merge out --quiet");
    outputs(&folder, "run two.toml --quick --out whole --quiet");
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
}

#[test]
fn a_disk_that_becomes_read_only_or_vanishes_ends_a_sweep_with_one_message() {
    let folder = folder();
    let script = r#"
mount -o remount,size=4m small
code run two.toml --quick --share 1/2 --out small/out --quiet
sums >before
mount -o remount,ro small
code run two.toml --quick --share 2/2 --out small/out --quiet
code run two.toml --quick --out small/new --quiet
code merge small/out --partial --quiet
code bound --rounds 20 --out small/bound
code run fig3 --set bound.rounds=20 --out small/figure
code link-budget --set radio.bandwidth_hz=1e6 --out small/links
code bound plan --rounds 20 --out small/plan
code man --out small/man
code data preview digits --out small/digits.png
code data get mnist --data-dir small --quiet
sums | cmp - before && echo the same runs
mount -o remount,rw small
"$FEDLINK" run two.toml --set run.rounds=1000000 --checkpoint-every 20 --out small/long --quiet 2>stderr &
while [ "$(ls small/long/runs/*.checkpoint 2>/dev/null | wc -l)" -lt 4 ]; do sleep 0.05; done
mkdir kept
mount --bind small kept
umount -l small
status=0
wait $! || status=$?
echo "$status $(wc -l <stderr) $(cat stderr)"
ls small | wc -l
ls kept/long/runs/*.checkpoint | wc -l
"#;
    let Some(lines) = printed(folder.path(), script) else { return };
    let [first, read_only @ .., same, vanished, made, checkpoints] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((first.as_str(), same.as_str()), ("0 0 ", "the same runs"), "{lines:?}");
    assert_eq!(read_only.len(), 10, "{lines:?}");
    for message in read_only {
        assert!(message.starts_with("1 1 error: "), "{message}");
        assert!(message.contains("Read-only file system"), "{message}");
    }
    assert!(
        vanished.starts_with("1 1 error: small/long was removed or replaced while its runs"),
        "{vanished}"
    );
    // Nothing was made where the disk had been, and its files are still there.
    assert_eq!((made.as_str(), checkpoints.as_str()), ("0", "4"), "{lines:?}");
}
