//! The data sets' mirrors.
//!
//! Addresses of third parties, so nothing that comes from them is trusted: sizes are bounded by what the
//! catalog lists, and a file counts only after [`Request::accept`].

use super::archive::{Member, take_from_tar_gz, take_from_zip};
use super::http::{self, Failure};
use super::meter::Meter;
use super::{Request, Staging};
use crate::{failure, inspect};
use anyhow::{Context, anyhow, bail};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use ureq::Agent;

/// The form in which a mirror has a data set.
enum Form {
    /// One file each, with `.gz` or plain.
    Files,
    /// All in one archive.
    Archive(Archive),
}

struct Archive {
    name: &'static str,
    /// Bytes of the published archive.
    size: u64,
    kind: Kind,
    /// The text before and after a file's name inside.
    around: [&'static str; 2],
}

#[derive(Clone, Copy)]
enum Kind {
    TarGz,
    Zip,
}

/// The form of a data set and the bases of its public addresses.
fn public(name: &str) -> Option<(Form, &'static [&'static str])> {
    Some(match name {
        "mnist" => (
            Form::Files,
            &[
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ],
        ),
        "fashion-mnist" => (
            Form::Files,
            &[
                "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
                // The authors' bucket has no TLS; the digests verify the content.
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            ],
        ),
        "cifar10" => {
            let around = ["cifar-10-batches-bin/", ""];
            let name = "cifar-10-binary.tar.gz";
            (
                Form::Archive(Archive { name, size: 170_052_171, kind: Kind::TarGz, around }),
                &["https://www.cs.toronto.edu/~kriz"],
            )
        }
        "emnist-digits" | "emnist-letters" | "emnist-balanced" => {
            let around = ["gzip/", ".gz"];
            (
                Form::Archive(Archive { name: "gzip.zip", size: 561_753_746, kind: Kind::Zip, around }),
                &["https://biometrics.nist.gov/cs_links/EMNIST"],
            )
        }
        _ => return None,
    })
}

/// Downloads the requested files from the given mirror, or from the public ones in turn.
pub fn fetch(request: &Request) -> anyhow::Result<()> {
    let Some((form, bases)) = public(request.entry.name) else {
        bail!("mirrors: none is known for {}", request.entry.name);
    };
    let own = request.mirror.map(|mirror| [mirror.trim_end_matches('/')]);
    let bases = own.as_ref().map_or(bases, |own| &own[..]);
    let agent = http::agent();
    let mut failures = Vec::new();
    for base in bases {
        request.print(&format!("trying the mirror {base}"));
        let fetched = match &form {
            Form::Files => files(request, &agent, base),
            Form::Archive(archive) => whole(request, &agent, base, archive),
        };
        match fetched {
            Ok(()) => return Ok(()),
            // Another mirror does not help.
            Err(error) if failure::is_disk_fault(&error) => return Err(error),
            Err(error) => {
                request.print(&format!("  failed: {error:#}"));
                failures.push(format!("mirror {error:#}"));
            }
        }
    }
    bail!(failures.join("\n  "))
}

/// Fetches file by file those that are not good yet.
fn files(request: &Request, agent: &Agent, base: &str) -> anyhow::Result<()> {
    for &index in &request.wanted {
        // A mirror tried before this one may have given it.
        let here = inspect::locate(request.entry, index, request.folder);
        if here.is_some_and(|path| inspect::verify(request.entry, index, &path).is_ok()) {
            continue;
        }
        let limit = 2 * inspect::size(request.entry, index);
        // Packed first: it is the common form and the smaller download.
        let mut names = inspect::names(request.entry, index).into_iter().rev();
        loop {
            let Some(name) = names.next() else {
                bail!("{base}: the server has no {}", request.entry.files.list()[index].name);
            };
            let url = format!("{base}/{name}");
            let accept = |partial: &Path| request.accept(index, partial, &name);
            match download(request, agent, &url, &name, limit, accept) {
                Ok(()) => break,
                Err(Failure::NotFound) => {}
                Err(Failure::Other(error)) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Downloads an archive and extracts the requested files.
fn whole(request: &Request, agent: &Agent, base: &str, archive: &Archive) -> anyhow::Result<()> {
    let url = format!("{base}/{}", archive.name);
    let unpack = |partial: &Path| {
        request.print(&format!("unpacking {}", archive.name));
        let staging = Staging::new(request.folder)?;
        let [before, after] = archive.around;
        let names: Vec<String> = request
            .wanted
            .iter()
            .map(|&index| format!("{}{after}", request.entry.files.list()[index].name))
            .collect();
        let member = |(name, &index): (&String, &usize)| Member {
            inside: format!("{before}{name}"),
            to: staging.0.join(name),
            limit: 2 * inspect::size(request.entry, index),
        };
        let members: Vec<Member> = names.iter().zip(&request.wanted).map(member).collect();
        match archive.kind {
            Kind::TarGz => take_from_tar_gz(partial, &members)?,
            Kind::Zip => {
                let file =
                    File::open(partial).with_context(|| format!("cannot read {}", partial.display()))?;
                take_from_zip(BufReader::new(file), &members)?;
            }
        }
        for ((&index, name), member) in request.wanted.iter().zip(&names).zip(&members) {
            request.accept(index, &member.to, name)?;
        }
        fs::remove_file(partial).with_context(|| format!("cannot remove {}", partial.display()))
    };
    match download(request, agent, &url, archive.name, 2 * archive.size, unpack) {
        Ok(()) => Ok(()),
        Err(Failure::NotFound) => bail!("{url}: the server does not have it"),
        Err(Failure::Other(error)) => Err(error),
    }
}

/// Downloads a file and uses it. One that is no good leaves nothing behind; if a part of it was from an
/// earlier connection, perhaps to another mirror, the whole is fetched once more.
fn download(
    request: &Request,
    agent: &Agent,
    url: &str,
    name: &str,
    limit: u64,
    mut use_it: impl FnMut(&Path) -> anyhow::Result<()>,
) -> Result<(), Failure> {
    let partial = request.folder.join(format!("{name}.partial"));
    if partial.is_symlink() {
        return Err(anyhow!("{} is a link; remove it", partial.display()).into());
    }
    let mut again = true;
    loop {
        let mut meter = Meter::new(name, request.quiet);
        let resumed = http::download(agent, url, &partial, limit, &mut meter)?;
        let Err(error) = use_it(&partial) else { return Ok(()) };
        fs::remove_file(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
        if !(resumed && again) {
            return Err(error.context(url.to_owned()).into());
        }
        again = false;
        request.print(&format!(
            "  {name}: the pieces do not fit ({error:#}); starting again from the beginning"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::data::catalog::CATALOG;

    #[test]
    fn every_data_set_that_has_files_has_a_mirror() {
        for entry in CATALOG {
            let bases = public(entry.name).map(|(_, bases)| bases);
            assert_eq!(bases.is_some(), !entry.files.list().is_empty(), "{}", entry.name);
            for base in bases.unwrap_or_default() {
                assert!(base.starts_with("http") && !base.ends_with('/'), "{base}");
            }
        }
    }
}
