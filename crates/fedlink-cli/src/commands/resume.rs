//! The command line that resumes a sweep.

use crate::args::RunOptions;
use fedlink_study::sweep::LogRounds;
use std::path::Path;

/// The command with all options that affect the results, their place and their saving.
pub fn command(options: &RunOptions, target: &Path) -> String {
    let mut words = vec!["fedlink".into(), "run".into()];
    words.push(options.experiment.clone().unwrap_or_else(|| "demo".into()));
    let mut flag = |name: &str, is_set: bool| words.extend(is_set.then(|| name.to_owned()));
    flag("--quick", options.quick);
    flag("--nondeterministic", options.nondeterministic);
    flag("--keep-state", options.keep_state);
    flag("--log-rounds", options.tables.log_rounds == Some(LogRounds::Sent));
    flag("--log-rounds=all", options.tables.log_rounds == Some(LogRounds::All));
    flag("--latex", options.tables.latex);
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    options.settings.iter().for_each(|setting| option("--set", setting.clone()));
    options.seeds.iter().for_each(|seeds| option("--seeds", seeds.to_string()));
    options.parts.iter().for_each(|file| option("--parts", file.display().to_string()));
    options.threads.iter().for_each(|threads| option("--threads", threads.to_string()));
    options.data_dir.iter().for_each(|folder| option("--data-dir", folder.display().to_string()));
    options.checkpoint_every.iter().for_each(|rounds| option("--checkpoint-every", rounds.to_string()));
    option("--out", target.display().to_string());
    match options.share {
        // A share always resumes.
        Some(share) => option("--share", share.to_string()),
        None => words.push("--resume".into()),
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use crate::args::{Arguments, Command};
    use clap::Parser;
    use std::path::Path;

    fn resumed(words: &[&str]) -> String {
        let parsed = Arguments::try_parse_from([&["fedlink", "run"], words].concat()).unwrap();
        let Some(Command::Run(options)) = parsed.command else { panic!("{words:?}") };
        super::command(&options, Path::new("out"))
    }

    #[test]
    fn options_that_affect_the_results_are_repeated() {
        assert_eq!(resumed(&[]), "fedlink run demo --out out --resume");
        let all = "my.toml --quick --nondeterministic --keep-state --log-rounds=all --latex \
                   --set schedule.k=2 --seeds 3 --parts a.py --threads 4 --data-dir data \
                   --checkpoint-every 7 --out out";
        let words: Vec<&str> = all.split_whitespace().collect();
        assert_eq!(resumed(&words), format!("fedlink run {all} --resume"));
        // Options of the display are left out; a share is repeated as it was.
        let words = ["my.toml", "--out", "out", "--share", "2/3"];
        assert_eq!(resumed(&[&words[..], &["--quiet"]].concat()), format!("fedlink run {}", words.join(" ")));
    }

    #[test]
    fn a_shell_reads_every_word_as_it_was_given() {
        let words = ["it's.toml", "--set", r#"schedule.policy=["bc", "bn2-c"]"#];
        let text = resumed(&words);
        assert!(text.contains(r#"'schedule.policy=["bc", "bn2-c"]'"#), "{text}");
        if cfg!(unix) {
            let script = format!("fedlink() {{ printf '%s\\n' \"$@\"; }}; {text}");
            let printed = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            let lines = String::from_utf8(printed).unwrap();
            let expected = [&["run"], &words[..], &["--out", "out", "--resume"]].concat();
            assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
        }
    }
}
