//! `fedlink verify`: judge the claims of an experiment by what is in its folder.

use super::any_experiment;
use crate::args::VerifyOptions;
use crate::failure::Exit;
use fedlink_report::bound_report;
use fedlink_study::sweep::{Verified, verify};

pub fn run(options: &VerifyOptions) -> anyhow::Result<Exit> {
    let claims = options.claims.as_deref().map(|name| any_experiment(name, &[])).transpose()?;
    match verify(&options.folder, claims.as_ref())? {
        Verified::Runs { verdicts, missing, of } => {
            if options.json {
                print!("{}", verdicts.json()?);
            } else {
                print!("{}", verdicts.text());
            }
            if missing > 0 {
                eprintln!("{missing} of {of} runs are not finished");
            }
        }
        Verified::Bound(claims) if options.json => {
            let json = serde_json::json!({ "claims": claims });
            println!("{}", serde_json::to_string_pretty(&json)?);
        }
        Verified::Bound(claims) => print!("{}", bound_report::claims(&claims)),
    }
    Ok(Exit::Done)
}
