//! Files of fedlink's own. No file is written through a link, into a special file, or into another name of a
//! file: a link may lead to a foreign file, and a second name may be a backup.

use fedlink::base::files::check_regular;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// An error if `path` is a link or another thing than a regular file.
pub fn check_own(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() => {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is a link, which fedlink does not write through"))
        }
        Ok(there) => check_regular(&there),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes an empty file. A regular file of that name is removed first, so that its other names keep its
/// content.
pub fn create_own(path: &Path) -> io::Result<File> {
    // It never opens a file that is there, so that it follows no link.
    let make = || OpenOptions::new().write(true).create_new(true).open(path);
    match make() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            check_own(path)?;
            fs::remove_file(path)?;
            make()
        }
        made => made,
    }
}

/// Opens a file to write at its end; makes it if it is not there. If the file has other names, this name is
/// given to a copy, which is `partial` until it is complete.
pub fn append_own(path: &Path, partial: &Path) -> io::Result<File> {
    let open = || {
        check_own(path)?;
        let file = no_links(OpenOptions::new().create(true).append(true)).open(path)?;
        let there = file.metadata()?;
        check_regular(&there)?;
        Ok::<_, io::Error>((file, there))
    };
    let (file, there) = open()?;
    if !has_other_names(&there) {
        return Ok(file);
    }
    let mut copy = create_own(partial)?;
    io::copy(&mut fedlink::base::files::open(path)?, &mut copy)?;
    copy.sync_all()?;
    fs::rename(partial, path)?;
    Ok(open()?.0)
}

/// Opens a file without content as a lock; makes it if it is not there.
pub fn open_lock(path: &Path) -> io::Result<File> {
    check_own(path)?;
    let file = no_links(OpenOptions::new().create(true).truncate(false).write(true)).open(path)?;
    let there = file.metadata()?;
    check_regular(&there)?;
    if there.len() > 0 {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it has content, so that it is no lock of fedlink",
        ));
    }
    Ok(file)
}

/// Replaces a small file that need not survive a power cut.
pub fn replace_own(path: &Path, partial: &Path, content: &[u8]) -> io::Result<()> {
    check_own(path)?;
    create_own(partial)?.write_all(content)?;
    fs::rename(partial, path)
}

/// The identity of a file or a folder on its file system, which does not change when it is renamed.
#[cfg(unix)]
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let there = fs::metadata(path)?;
    Ok((there.dev(), there.ino()))
}

/// Other systems do not report it without further calls.
#[cfg(not(unix))]
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|_| (0, 0))
}

#[cfg(unix)]
fn has_other_names(there: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    there.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &Metadata) -> bool {
    false
}

/// The options, so that a link that appears at the last moment is not followed and a pipe does not wait.
#[cfg(unix)]
fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
}

#[cfg(not(unix))]
fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_writer_goes_through_a_link_or_into_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        symlink(at("precious"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["link", "dangling", "pipe"] {
            let path = at(name);
            assert!(create_own(&path).is_err() && append_own(&path, &at("partial")).is_err(), "{name}");
            assert!(open_lock(&path).is_err() && replace_own(&path, &at("partial"), b"x").is_err(), "{name}");
            // At the last moment, after the check of the name.
            let late = no_links(OpenOptions::new().create(true).append(true)).open(&path);
            assert!(late.is_err(), "{name}");
        }
        assert!(!at("nothing").exists() && fs::read(at("precious")).unwrap() == b"precious");
        assert!(open_lock(&at("precious")).unwrap_err().to_string().contains("no lock of fedlink"));
    }

    #[test]
    fn other_names_of_a_file_keep_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["created", "appended", "replaced"] {
            fs::write(at("backup"), "old").unwrap();
            fs::hard_link(at("backup"), at(name)).unwrap();
            let written: &[u8] = match name {
                "created" => {
                    create_own(&at(name)).unwrap().write_all(b"new").unwrap();
                    b"new"
                }
                "appended" => {
                    append_own(&at(name), &at("partial")).unwrap().write_all(b"new").unwrap();
                    b"oldnew"
                }
                _ => {
                    replace_own(&at(name), &at("partial"), b"new").unwrap();
                    b"new"
                }
            };
            assert_eq!(fs::read(at(name)).unwrap(), written);
            assert_eq!(fs::read(at("backup")).unwrap(), b"old", "{name}");
            fs::remove_file(at("backup")).unwrap();
        }
    }
}
