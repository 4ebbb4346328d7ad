//! Files that other programs may have written. They are opened without waiting, must be regular files, and
//! are read up to a limit: a pipe, a device or an endless file is an error and never a hang.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a regular file to read it. A link is followed; a folder, a pipe, a socket or a device is an error.
pub fn open(path: &Path) -> io::Result<File> {
    // Before the file is opened, because opening a device can have effects, …
    check_regular(&fs::metadata(path)?)?;
    let file = without_waiting(OpenOptions::new().read(true)).open(path)?;
    // … and after it, because another process may have put a pipe in its place.
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// The options, so that opening a pipe does not wait for its other end.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
}

/// On other systems opening a file does not wait.
#[cfg(not(unix))]
fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// An error unless it is a regular file.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "it is a folder" } else { "it is not a regular file" };
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// The content of a regular file of at most `max` bytes; none if it is longer.
pub fn read_up_to(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > max {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let reserved = usize::try_from(length).is_ok_and(|length| bytes.try_reserve_exact(length).is_ok());
    if !reserved {
        return Err(ErrorKind::OutOfMemory.into());
    }
    // The file may grow while it is read.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

/// The content of a regular file; one of more than `max` bytes is an error.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::new(ErrorKind::InvalidData, format!("it is longer than {max} bytes"));
    read_up_to(path, max)?.ok_or_else(too_long)
}

/// As [`read`], for UTF-8 text.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(read(path, max)?).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 text at byte {position}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read_up_to(&path, 4).unwrap(), None);
        assert_eq!(read_text(&path, 4).unwrap_err().to_string(), "it is longer than 4 bytes");
        assert_eq!(read(&folder.path().join("b"), 4).unwrap_err().kind(), ErrorKind::NotFound);
        // A hole takes no disk, and reading it would take all memory.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_up_to(&path, 1 << 30).unwrap(), None);
        fs::write(&path, b"ab\xff").unwrap();
        assert_eq!(read_text(&path, 9).unwrap_err().to_string(), "it is not UTF-8 text at byte 2");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_sockets_devices_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &socket, &link, Path::new("/dev/zero")] {
            assert_eq!(read(path, 9).unwrap_err().to_string(), "it is not a regular file");
        }
        assert_eq!(read(folder.path(), 9).unwrap_err().to_string(), "it is a folder");
        // The second look, for a pipe that appears after the first one.
        let opened = without_waiting(OpenOptions::new().read(true)).open(&pipe).unwrap();
        assert!(check_regular(&opened.metadata().unwrap()).is_err());
    }
}
