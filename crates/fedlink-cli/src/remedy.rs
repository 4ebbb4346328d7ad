//! Errors of the library with the remedy on the command line.

use fedlink::data::DataError;
use fedlink::shown::bounded;
use fedlink_study::Error;

/// A sweep that has failed, with the command that resumes it.
#[derive(Debug)]
pub struct Stopped {
    /// The error.
    pub error: fedlink_study::Error,
    /// The command.
    pub resume: String,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; finished work is saved; resume with `{}`", self.error, self.resume)
    }
}

/// The error is in the text, so it is no source besides.
impl std::error::Error for Stopped {}

/// The error in one line, with the remedy if there is one.
pub fn worded(error: &anyhow::Error) -> String {
    /// The most characters of a line and of the whole of a message: it may hold texts of files.
    const LINE: usize = 4000;
    const WHOLE: usize = 6000;
    let message = bounded(&format!("{error:#}"), LINE, WHOLE);
    match remedy(error) {
        Some(remedy) => format!("{message}; {remedy}"),
        None => message,
    }
}

fn remedy(error: &anyhow::Error) -> Option<String> {
    if let Some(name) = error.chain().find_map(data_error).and_then(missing_data_set) {
        return Some(format!("run `fedlink data get {name}`"));
    }
    let is_unknown_part = |message: String| {
        ["policies", "compressors", "fading laws"]
            .iter()
            .any(|plural| message.contains(&format!("is not one of the {plural}")))
    };
    if error.chain().any(|cause| is_unknown_part(cause.to_string())) {
        return Some("a part of your own is loaded by --parts FILE.py".into());
    }
    let remedy = match error.chain().find_map(study_error)? {
        Error::NoExperiment(_) => "name the folder that `fedlink run` has written, as given by --out",
        Error::OtherVersion(_) | Error::Damaged(_) => "`fedlink run` with --resume makes it again",
        Error::NoRoundLog(_) => "run with --resume and --log-rounds",
        Error::RoundLog { .. } => "`fedlink run` with --resume and --log-rounds makes it again",
        Error::FolderChanged(_) => "put it back first",
        Error::MissingRuns { missing, of, .. } if missing.len() == *of => "run them first",
        Error::MissingRuns { .. } => "run their shares again, or add --partial to go without them",
        Error::UnknownData(_) => {
            "put it back, or remove the files *.checkpoint* of its runs, which then begin again"
        }
        Error::NotOurs { .. } => "move them away, or choose another folder",
        Error::InUse { .. } => "wait until it has ended, or choose another folder",
        Error::OtherData { .. } => {
            "give --data-dir the folder of those data, or choose another folder for the results"
        }
        Error::NotRepeated { .. } => {
            "choose another folder, or remove the stored run if you trust the new one"
        }
        Error::NotDeterministic(_) => {
            "take random numbers from view.rng() or the argument rng, keep nothing outside the object, or \
             add --nondeterministic to run all the same"
        }
        Error::ClaimsNothing(_) => "add [claims] to its config.toml or name a file by --claims",
        _ => return None,
    };
    Some(remedy.to_owned())
}

pub fn study_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let direct = error.downcast_ref::<Error>();
    let direct = direct.or_else(|| error.downcast_ref::<Stopped>().map(|stopped| &stopped.error));
    direct.or_else(|| match error.downcast_ref::<fedlink_report::Error>() {
        Some(fedlink_report::Error::Study(error)) => Some(error),
        _ => None,
    })
}

fn data_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a DataError> {
    let direct = error.downcast_ref::<DataError>();
    direct.or_else(|| study_error(error).and_then(Error::data)).or_else(|| {
        match error.downcast_ref::<fedlink::Error>() {
            Some(fedlink::Error::Data(error)) => Some(error),
            _ => None,
        }
    })
}

/// The data set that can be fetched to repair the error.
fn missing_data_set(error: &DataError) -> Option<&str> {
    match error {
        DataError::Missing { name, .. } => Some(name),
        DataError::Mismatch { name, .. } => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::path::PathBuf;

    fn missing() -> DataError {
        DataError::Missing { name: "mnist".into(), missing: "x".into(), looked_in: vec![PathBuf::from("a")] }
    }

    #[test]
    fn a_missing_data_set_is_met_with_the_command_that_fetches_it_wherever_the_error_came_from() {
        let errors = [
            anyhow::Error::from(missing()).context("--measure: data.dataset"),
            fedlink::Error::from(missing()).into(),
            Error::Dataset(missing()).into(),
            Err::<(), _>(Error::from(missing())).context("--set x").unwrap_err(),
            fedlink_report::Error::from(Error::from(missing())).into(),
        ];
        for error in errors {
            let message = worded(&error);
            assert!(message.ends_with("looked in (a); run `fedlink data get mnist`"), "{message}");
        }
    }

    #[test]
    fn other_errors_are_unchanged_and_those_of_folders_name_the_flag_that_helps() {
        assert_eq!(worded(&anyhow::anyhow!("one").context("two")), "two: one");
        let cases = [
            (Error::NoExperiment("x".into()), "x has no config.toml; name the folder"),
            (
                Error::OtherVersion("x".into()),
                "x was written by another version; `fedlink run` with --resume",
            ),
            (
                Error::NoRoundLog("x".into()),
                "without a log of its rounds; run with --resume and --log-rounds",
            ),
            (Error::ClaimsNothing("x".into()), "x claims nothing; add [claims]"),
            (
                Error::MissingRuns { path: "x".into(), missing: vec!["bc".into(); 7], of: 9 },
                "7 of 9 runs are missing in x: bc, bc, bc, bc, bc, …; run their shares again, or add \
                 --partial",
            ),
        ];
        for (error, words) in cases {
            let message = worded(&error.into());
            assert!(message.contains(words), "{message}");
        }
    }
}
