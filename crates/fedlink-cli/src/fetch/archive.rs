//! Single files out of archives.
//!
//! Only members asked for are written, under names that we choose, so no name inside an archive can point
//! anywhere; and no more than the stated number of bytes of each.

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// A file wanted from an archive.
#[derive(Debug)]
pub struct Member {
    /// Its path inside.
    pub inside: String,
    /// Where to write it.
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
    // What is passed over is bounded too: these archives hold little else than what is wanted.
    let max = members.iter().map(|member| member.limit).sum::<u64>() + (64 << 20);
    let mut tar = tar::Archive::new(tar.take(max));
    let mut taken = vec![false; members.len()];
    for entry in tar.entries()? {
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
#[cfg(feature = "download")]
pub fn take_from_zip(archive: &Path, members: &[Member]) -> anyhow::Result<()> {
    let file = File::open(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let mut zip = zip::ZipArchive::new(BufReader::new(file)).context("the archive is broken")?;
    for member in members {
        let mut entry =
            zip.by_name(&member.inside).with_context(|| format!("the archive lacks {}", member.inside))?;
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
    fn only_the_members_asked_for_are_written_and_only_to_the_given_paths() {
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
    fn a_member_that_climbs_out_is_written_to_its_own_location_even_if_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let tar = tar_of(&[("../x", b"content")]);
        take_from_tar(&tar[..], &[member(folder.path(), "../x", 7)]).unwrap();
        assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"content");
        assert!(!folder.path().parent().unwrap().join("x").exists());
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

    #[test]
    fn a_link_is_not_followed() {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_link(&mut header, "a", "/etc/passwd").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let tar = builder.into_inner().unwrap();
        let error = take_from_tar(&tar[..], &[member(folder.path(), "a", 9)]).unwrap_err().to_string();
        assert!(error.contains("not as a plain file"), "{error}");
        assert!(!folder.path().join("out").exists());
    }
}
