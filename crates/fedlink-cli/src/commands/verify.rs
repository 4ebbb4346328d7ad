//! `fedlink verify`: judge the claims of an experiment by what is in its folder.

use crate::args::VerifyOptions;
use crate::failure::Exit;
use fedlink_study::experiment::ClaimsFile;
use fedlink_study::sweep::{Verified, verify};

pub fn run(options: &VerifyOptions) -> anyhow::Result<Exit> {
    let claims = options.claims.as_deref().map(ClaimsFile::open).transpose()?;
    let Verified { verdicts, missing, of } = verify(&options.folder, claims.as_ref())?;
    if options.json {
        print!("{}", verdicts.json()?);
    } else {
        print!("{}", verdicts.text());
    }
    if missing > 0 {
        eprintln!("{missing} of {of} runs are not finished");
    }
    Ok(Exit::Done)
}
