//! Standard output and standard error, either of which may close while the command runs
//! (`fedlink status | head`).
//!
//! The macros of the standard library panic then. These do not: `out!` and `outln!` succeed if the reader
//! has left, and give an [`OutputError`] if the text could not be written
//! for another reason; `err!` and `errln!` never fail, since no other stream is left to report it on.

use fedlink::shown::escaped;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Text for standard output was not written: the disk behind it is full, for example.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub struct OutputError(#[from] io::Error);

/// Writes to standard output at once. A closed pipe is no error. Control characters of terminals are shown as
/// text, from any source.
pub fn write_out(text: &str) -> Result<(), OutputError> {
    write_to(&mut io::stdout().lock(), escaped(text).as_bytes())
}

fn write_to(stream: &mut impl Write, bytes: &[u8]) -> Result<(), OutputError> {
    match stream.write_all(bytes).and_then(|()| stream.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes to standard error, if that is possible: in one piece, so that lines of several threads stay whole.
/// Characters are shown as by [`write_out`].
pub fn write_err(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_all(escaped(&text.to_string()).as_bytes());
}

/// As `print!`, with a result.
macro_rules! out {
    ($($text:tt)*) => { $crate::streams::write_out(&format!($($text)*)) };
}

/// As `println!`, with a result.
macro_rules! outln {
    ($($text:tt)*) => { $crate::streams::write_out(&format!("{}\n", format_args!($($text)*))) };
}

/// As `eprint!`, which cannot fail.
macro_rules! err {
    ($($text:tt)*) => { $crate::streams::write_err(format_args!($($text)*)) };
}

/// As `eprintln!`, which cannot fail.
macro_rules! errln {
    ($($text:tt)*) => { $crate::streams::write_err(format_args!("{}\n", format_args!($($text)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that refuses to be written to.
    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error_and_a_full_disk_is_one() {
        assert!(write_to(&mut Refusing(ErrorKind::BrokenPipe), b"text").is_ok());
        let full = write_to(&mut Refusing(ErrorKind::StorageFull), b"text").unwrap_err();
        assert_eq!(full.to_string(), "cannot write to standard output");
    }
}
