//! Single files out of archives.
//!
//! Only requested members are written, under names that the caller chooses, so that no name inside an archive
//! can point elsewhere, and at most the stated number of bytes of each. A member must be a plain file: links,
//! folders and devices are refused.

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// The bits of the file type in a Unix mode, and those of a plain file.
const FORM: u32 = 0o170_000;
const PLAIN: u32 = 0o100_000;

/// A requested file of an archive.
#[derive(Debug)]
pub struct Member {
    /// Its path inside.
    pub inside: String,
    /// The path to write it to.
    pub to: PathBuf,
    /// No more bytes than this.
    pub limit: u64,
}

/// Takes members out of a tar file packed with gzip.
pub fn take_from_tar_gz(archive: &Path, members: &[Member]) -> anyhow::Result<()> {
    let file = File::open(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    take_from_tar(GzDecoder::new(BufReader::new(file)), members)
}

/// Takes members out of a tar file.
pub fn take_from_tar(tar: impl Read, members: &[Member]) -> anyhow::Result<()> {
    // The skipped content is bounded too: these archives hold few other files.
    let max = members.iter().map(|member| member.limit).sum::<u64>() + (64 << 20);
    let mut tar = tar::Archive::new(tar.take(max));
    let mut taken = vec![false; members.len()];
    // Raw: long names and attributes in entries of their own would be held in memory whole, and no member
    // needs them.
    for entry in tar.entries()?.raw(true) {
        let mut entry = entry.context("the archive is broken")?;
        let inside = entry.path_bytes();
        let inside = inside.strip_prefix(b"./").unwrap_or(&inside);
        let Some(index) = members.iter().position(|member| member.inside.as_bytes() == inside) else {
            continue;
        };
        if !entry.header().entry_type().is_file() || taken[index] {
            bail!("the archive holds {} twice, or not as a plain file", members[index].inside);
        }
        write(&mut entry, &members[index])?;
        taken[index] = true;
    }
    match taken.iter().position(|taken| !taken) {
        Some(index) => bail!("the archive does not hold {}", members[index].inside),
        None => Ok(()),
    }
}

/// Takes members out of a zip file.
pub fn take_from_zip(zip: impl Read + Seek, members: &[Member]) -> anyhow::Result<()> {
    let mut zip = zip::ZipArchive::new(zip).context("the archive is broken")?;
    for member in members {
        let mut entry =
            zip.by_name(&member.inside).with_context(|| format!("the archive lacks {}", member.inside))?;
        // An entry without a mode was written by a system that has none; then the name distinguishes folders
        // from files.
        if !entry.is_file() || entry.unix_mode().is_some_and(|mode| ![0, PLAIN].contains(&(mode & FORM))) {
            bail!("the archive does not hold {} as a plain file", member.inside);
        }
        write(&mut entry, member)?;
    }
    Ok(())
}

fn write(content: &mut impl Read, member: &Member) -> anyhow::Result<()> {
    let mut file =
        File::create_new(&member.to).with_context(|| format!("cannot write {}", member.to.display()))?;
    // One byte more than allowed separates too long from just right.
    let length = std::io::copy(&mut content.take(member.limit + 1), &mut file)
        .with_context(|| format!("cannot unpack {}", member.inside))?;
    if length > member.limit {
        bail!("{} in the archive is longer than {} bytes", member.inside, member.limit);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            // Written by hand: the builder itself refuses paths that climb out.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn member(folder: &Path, inside: &str, limit: u64) -> Member {
        Member { inside: inside.into(), to: folder.join("out"), limit }
    }

    #[test]
    fn only_requested_members_are_written_and_only_to_the_given_paths() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("inner");
        fs::create_dir(&folder).unwrap();
        let tar = tar_of(&[
            ("../escaped", b"no"),
            ("/tmp/absolute-path-of-the-archive-test", b"no"),
            ("./p/wanted", b"yes"),
            ("p/other", b"no"),
        ]);
        let packed = root.path().join("a.tar.gz");
        let mut gzip = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
        gzip.write_all(&tar).unwrap();
        gzip.finish().unwrap();
        take_from_tar_gz(&packed, &[member(&folder, "p/wanted", 3)]).unwrap();
        assert_eq!(fs::read(folder.join("out")).unwrap(), b"yes");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
        assert!(!Path::new("/tmp/absolute-path-of-the-archive-test").exists());
    }

    #[test]
    fn a_requested_member_with_a_path_outside_is_written_to_its_own_location() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("inner");
        fs::create_dir(&folder).unwrap();
        let tar = tar_of(&[("../x", b"content")]);
        take_from_tar(&tar[..], &[member(&folder, "../x", 7)]).unwrap();
        assert_eq!(fs::read(folder.join("out")).unwrap(), b"content");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn members_too_long_missing_twice_or_cut_off_are_refused() {
        let tar = tar_of(&[("a", b"12345"), ("b", b"1"), ("b", b"2")]);
        let refusal = |tar: &[u8], inside, limit| {
            let folder = tempfile::tempdir().unwrap();
            take_from_tar(tar, &[member(folder.path(), inside, limit)]).unwrap_err().to_string()
        };
        assert_eq!(refusal(&tar, "a", 4), "a in the archive is longer than 4 bytes");
        assert_eq!(refusal(&tar, "c", 4), "the archive does not hold c");
        assert!(refusal(&tar, "b", 4).contains("holds b twice"));
        assert!(refusal(&tar[..514], "a", 9).contains("broken"), "cut inside the member");
        assert!(refusal(&tar[..300], "a", 9).contains("broken"), "cut inside the header");
    }

    /// A tar file with one entry `a` of this type that points at `/etc/passwd`.
    fn tar_with(kind: tar::EntryType) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_link(&mut header, "a", "/etc/passwd").unwrap();
        builder.into_inner().unwrap()
    }

    /// The result of a request for `a` with at most nine bytes; no other file may be written.
    fn taken(take: impl FnOnce(&[Member]) -> anyhow::Result<()>) -> (Result<(), String>, Option<Vec<u8>>) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("inner");
        fs::create_dir(&folder).unwrap();
        let result = take(&[member(&folder, "a", 9)]).map_err(|error| format!("{error:#}"));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        let out = folder.join("out");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), usize::from(out.exists()));
        (result, fs::read(out).ok())
    }

    #[test]
    fn links_folders_devices_and_pipes_of_a_tar_file_are_refused() {
        use tar::EntryType::{Block, Char, Directory, Fifo, GNUSparse, Link, Symlink};
        for kind in [Symlink, Link, Directory, Char, Block, Fifo, GNUSparse] {
            let (result, out) = taken(|members| take_from_tar(&tar_with(kind)[..], members));
            let error = result.unwrap_err();
            assert!(error.contains("not as a plain file"), "{kind:?}: {error}");
            assert_eq!(out, None, "{kind:?}");
        }
    }

    #[test]
    fn a_link_before_a_file_of_the_same_name_does_not_lead_elsewhere() {
        let mut tar = tar_with(tar::EntryType::Symlink);
        tar.truncate(512);
        tar.extend(tar_of(&[("a", b"content")]));
        let (result, out) = taken(|members| take_from_tar(&tar[..], members));
        assert!(result.unwrap_err().contains("not as a plain file"));
        assert_eq!(out, None);
    }

    #[test]
    fn a_tar_file_that_claims_more_than_it_holds_costs_nothing() {
        // Sizes of a requested member, of another member, and of a name in an entry of its own.
        let claiming = |name: &str, kind: tar::EntryType, size: u64| {
            let mut header = tar::Header::new_gnu();
            header.set_path(name).unwrap();
            header.set_entry_type(kind);
            header.set_size(size);
            header.set_cksum();
            [header.as_bytes().as_slice(), &[b'x'; 600]].concat()
        };
        for size in [601, 1 << 40, (1 << 62) + 1] {
            for (name, kind) in [
                ("a", tar::EntryType::Regular),
                ("b", tar::EntryType::Regular),
                ("b", tar::EntryType::GNULongName),
                ("b", tar::EntryType::XHeader),
            ] {
                let (result, out) = taken(|members| take_from_tar(&claiming(name, kind, size)[..], members));
                assert!(result.is_err(), "{name} {kind:?} {size}");
                assert!(out.is_none_or(|content| content.len() <= 10));
            }
        }
    }

    fn zip_of(files: &[(&str, &[u8], Option<u32>)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content, mode) in files {
            let mut options = zip::write::SimpleFileOptions::default();
            if let Some(mode) = mode {
                options = options.unix_permissions(*mode);
            }
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn from_zip(zip: &[u8]) -> (Result<(), String>, Option<Vec<u8>>) {
        taken(|members| take_from_zip(std::io::Cursor::new(zip), members))
    }

    #[test]
    fn a_zip_file_gives_the_requested_members_and_no_other_file() {
        let climbing: [(&str, &[u8], Option<u32>); 4] = [
            ("../escaped", b"no", None),
            ("/tmp/absolute-path-of-the-zip-test", b"no", None),
            ("a", b"content", Some(0o644)),
            ("C:\\escaped", b"no", None),
        ];
        assert_eq!(from_zip(&zip_of(&climbing)), (Ok(()), Some(b"content".to_vec())));
        assert!(!Path::new("/tmp/absolute-path-of-the-zip-test").exists());
        assert!(from_zip(&zip_of(&[("b", b"1", None)])).0.unwrap_err().contains("the archive lacks a"));
        let content = vec![0; 1_000_000];
        let long = from_zip(&zip_of(&[("a", &content, None)]));
        assert_eq!(long.0.unwrap_err(), "a in the archive is longer than 9 bytes");
        assert!(long.1.is_none_or(|content| content.len() <= 10));
        assert!(from_zip(b"PK").0.unwrap_err().contains("the archive is broken"));
    }

    #[test]
    fn links_folders_and_devices_of_a_zip_file_are_refused() {
        for form in [0o120_000, 0o040_000, 0o020_000, 0o060_000, 0o010_000, 0o140_000] {
            let mut zip = zip_of(&[("a", b"/etc/pass", Some(0o644))]);
            // The writer supports plain files only: the mode is in the upper half of the external attributes.
            let at = zip.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap() + 40;
            zip[at..at + 2].copy_from_slice(&(form as u16 | 0o644).to_le_bytes());
            let (result, out) = from_zip(&zip);
            assert_eq!(result.unwrap_err(), "the archive does not hold a as a plain file", "{form:o}");
            assert_eq!(out, None);
        }
    }
}
