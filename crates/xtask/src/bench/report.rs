//! The report on a folder of raw runs, and the table in the README.
//!
//! Both are functions of the kept lines alone, so that the README's table can be checked against them.

use super::EVALUATE_EVERY;
use super::peers::{PEERS, Peer};
use super::record::{self, Line, Machine, Measurement, Outcome, RUNS, mean, median};
use anyhow::{Context, anyhow, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A peer must reach fedlink's accuracy on the same task within this tolerance; otherwise it did other
/// work.
const ACCURACY_TOLERANCE: f64 = 0.02;

/// The machine was not quiet if more cores were busy between runs.
const QUIET: f64 = 0.5;

/// The lines around the README's table.
const BEGIN: &str = "<!-- peers: written by `cargo xtask docs` from bench/runs -->";
const END: &str = "<!-- end of peers -->";

/// A report, and an error if the comparison is incomplete or not fair.
pub struct Report {
    pub text: String,
    pub verdict: anyhow::Result<()>,
}

/// The comparison of one peer with fedlink.
struct Row {
    versions: String,
    /// Seconds per round.
    theirs: f64,
    ours: f64,
    /// Their time over ours, of every repetition, ascending.
    ratios: Vec<f64>,
    rounds: u64,
    their_accuracy: f64,
    our_accuracy: f64,
}

impl Row {
    fn same_accuracy(&self) -> bool {
        (self.their_accuracy - self.our_accuracy).abs() <= ACCURACY_TOLERANCE
    }

    fn ratio(&self) -> f64 {
        median(self.ratios.clone())
    }

    /// "12.3 (12.1–12.5)": median, least and greatest.
    fn ratio_text(&self) -> String {
        let (min, max) = (self.ratios[0], self.ratios[self.ratios.len() - 1]);
        format!("{:.1} ({min:.1}–{max:.1})", self.ratio())
    }
}

/// The report on kept runs.
pub fn of(machine: &Machine, lines: &[Line]) -> anyhow::Result<Report> {
    let mut text = format!("# fedlink and its peers\n\n{}\n\n", machine_text(machine));
    text += &caveat(machine);
    text += "A time is that of a round with its share of the evaluations: the median over stretches of ten \
             rounds. A ratio is their time over fedlink's, the median over repetitions in turn \
             (least–greatest). Accuracies are means over the repetitions, after the rounds in brackets.\n\n\
             | peer | versions | work | its round, ms | fedlink's, ms | ratio | target | accuracy: peer, \
             fedlink |\n\
             |---|---|---|---|---|---|---|---|\n";
    let (mut missing, mut other_work) = (Vec::new(), Vec::new());
    let mut failures = String::new();
    for peer in PEERS.iter().filter(|peer| lines.iter().any(|line| line.beside == peer.name)) {
        let row = match row(peer, lines, machine.warmup) {
            Ok(row) => row,
            Err(error) => {
                missing.push(peer.name);
                writeln!(text, "| {} | **could not be measured**, see below | | | | | | |", peer.name)?;
                write!(failures, "\n{} could not be measured:\n\n```text\n{error:#}\n```\n", peer.name)?;
                continue;
            }
        };
        let target = peer.target.map_or(String::new(), |target| {
            format!("≥ {target}: {}", if row.ratio() >= target { "met" } else { "**missed**" })
        });
        if !row.same_accuracy() {
            other_work.push(peer.name);
        }
        writeln!(
            text,
            "| {} | {} | {} | {:.1} | {:.1} | {} | {target} | {:.1} %, {:.1} % ({}){} |",
            peer.title,
            row.versions,
            peer.work.name(),
            1e3 * row.theirs,
            1e3 * row.ours,
            row.ratio_text(),
            100.0 * row.their_accuracy,
            100.0 * row.our_accuracy,
            row.rounds,
            if row.same_accuracy() { "" } else { " **not the same**" }
        )?;
    }
    for line in lines {
        if let Some(error) = &line.retried {
            let (name, repetition) = (&line.beside, line.repetition + 1);
            write!(
                failures,
                "\nRun {repetition} of {name} was repeated after this:\n\n```text\n{error}\n```\n"
            )?;
        }
    }
    let verdict = if !missing.is_empty() {
        Err(anyhow!("could not be measured: {}", missing.join(", ")))
    } else if !other_work.is_empty() {
        Err(anyhow!("not the same accuracy as fedlink, so not the same work: {}", other_work.join(", ")))
    } else {
        Ok(())
    };
    Ok(Report { text: text + &failures, verdict })
}

/// The limits of all numbers of a run, in a paragraph; empty if there are none.
pub fn caveat(machine: &Machine) -> String {
    let reasons = [
        (machine.load.is_none_or(|load| load > QUIET), "the machine was not quiet"),
        (machine.commit.ends_with("-dirty"), "the program had changes that are in no commit"),
    ];
    let reasons: Vec<&str> =
        reasons.into_iter().filter(|(applies, _)| *applies).map(|(_, reason)| reason).collect();
    if reasons.is_empty() {
        return String::new();
    }
    format!("**These numbers say little: {}.**\n\n", reasons.join(", and "))
}

pub fn machine_text(machine: &Machine) -> String {
    let Machine { date, cpu, cores, commit, threads, .. } = machine;
    let load = machine.load.map_or("unknown".into(), |load| format!("{load:.2}"));
    format!(
        "{date}; {cpu}, {cores} cores, {threads} threads used; at most {load} cores busy with other work \
         between runs; commit {commit}."
    )
}

/// The row of a peer; an error if it failed or a pair is incomplete.
fn row(peer: &Peer, lines: &[Line], warmup: u64) -> anyhow::Result<Row> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for line in lines.iter().filter(|line| line.beside == peer.name) {
        match &line.outcome {
            Outcome::Failed { error, .. } => bail!("{error}"),
            Outcome::Measured(run) if run.program == peer.name => theirs.push(run),
            Outcome::Measured(run) => ours.push(run),
        }
    }
    let whole = !theirs.is_empty()
        && ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(a, b)| {
            (a.program.as_str(), a.rounds, a.threads, a.seed) == ("fedlink", b.rounds, b.threads, b.seed)
        });
    if !whole {
        bail!("its runs and fedlink's beside it do not pair up");
    }
    let times = |runs: &[&Measurement]| runs.iter().map(|run| run.round(warmup)).collect::<Vec<f64>>();
    let accuracy = |runs: &[&Measurement]| mean(&runs.iter().map(|run| run.accuracy).collect::<Vec<f64>>());
    let (their_times, our_times) = (times(&theirs), times(&ours));
    let mut ratios: Vec<f64> =
        their_times.iter().zip(&our_times).map(|(theirs, ours)| theirs / ours).collect();
    if ratios.iter().any(|ratio| !ratio.is_finite()) {
        bail!("no stretch of {EVALUATE_EVERY} rounds is left after {warmup} of warm-up");
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let versions = theirs[0].versions.iter().map(|(name, version)| format!("{name} {version}"));
    Ok(Row {
        versions: versions.collect::<Vec<_>>().join(", "),
        theirs: median(their_times),
        ours: median(our_times),
        ratios,
        rounds: theirs[0].rounds,
        their_accuracy: accuracy(&theirs),
        our_accuracy: accuracy(&ours),
    })
}

/// The README's table: every peer, or an error.
fn summary(machine: &Machine, lines: &[Line]) -> anyhow::Result<String> {
    let mut text = String::new();
    text += "| | work | its round, ms | fedlink's, ms | fedlink is faster by |\n|---|---|---|---|---|\n";
    for peer in PEERS {
        let row = row(peer, lines, machine.warmup).context(peer.name)?;
        if !row.same_accuracy() {
            bail!("{} did not reach the same accuracy as fedlink", peer.name);
        }
        writeln!(
            text,
            "| {} ({}) | {} | {:.1} | {:.1} | {} |",
            peer.title,
            row.versions,
            peer.work.name(),
            1e3 * row.theirs,
            1e3 * row.ours,
            row.ratio_text()
        )?;
    }
    writeln!(text, "\n{}", machine_text(machine))?;
    Ok(text)
}

/// The README's text while no kept run may be shown.
const NOTHING_YET: &str = "\
No comparison from a commit on a quiet machine has been kept yet; `cargo xtask bench peers` makes one. Earlier
ones are in `bench/runs`.
";

/// The folder of `bench/runs` for the README: the newest, by name, of those on a quiet machine and of a
/// commit.
fn newest(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let runs = root.join("bench/runs");
    if !runs.exists() {
        return Ok(None);
    }
    let folders =
        std::fs::read_dir(&runs)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    let mut folders: Vec<PathBuf> = folders.into_iter().filter(|path| path.join(RUNS).exists()).collect();
    folders.sort();
    while let Some(folder) = folders.pop() {
        if caveat(&record::read(&folder)?.0).is_empty() {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// The README, and the README with the table of the newest permitted runs.
fn readme(root: &Path) -> anyhow::Result<(String, String)> {
    let now = std::fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    let table = match newest(root)? {
        None => NOTHING_YET.to_owned(),
        Some(folder) => {
            let (machine, lines) = record::read(&folder)?;
            summary(&machine, &lines).with_context(|| format!("the runs of {}", folder.display()))?
        }
    };
    let due = between_marks(&now, &table)?;
    Ok((now, due))
}

/// `page` with `table` between the marks.
fn between_marks(page: &str, table: &str) -> anyhow::Result<String> {
    let missing = || anyhow!("README.md lacks the lines {BEGIN} and {END}, between which the table goes");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

/// Writes the README's table anew.
pub fn write_readme(root: &Path) -> anyhow::Result<()> {
    let (now, due) = readme(root)?;
    if now == due { Ok(()) } else { Ok(std::fs::write(root.join("README.md"), due)?) }
}

/// An error if the README's table is not that of the newest permitted runs.
pub fn check_readme(root: &Path) -> anyhow::Result<()> {
    let (now, due) = readme(root)?;
    if now != due {
        bail!("README.md does not show the newest of bench/runs that it may: run `cargo xtask docs`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn machine() -> Machine {
        Machine {
            date: "2026-01-02T0304Z".into(),
            cpu: "abacus".into(),
            cores: 2,
            load: Some(0.1),
            commit: "abc".into(),
            threads: 2,
            warmup: 10,
        }
    }

    /// Runs with every peer, whose times are `ratios` times fedlink's.
    fn runs(ratios: &[f64], their_accuracy: f64) -> Vec<Line> {
        let mut lines = Vec::new();
        for peer in PEERS {
            for (seed, ratio) in ratios.iter().enumerate() {
                for (program, seconds, accuracy) in
                    [("fedlink", 0.01, 0.9), (peer.name, 0.01 * ratio, their_accuracy)]
                {
                    let run = Measurement {
                        program: program.into(),
                        versions: BTreeMap::from([("lib".into(), "1.2".into())]),
                        rounds: 20,
                        threads: 2,
                        seed: seed as u64,
                        seconds: vec![seconds; 20],
                        accuracy,
                    };
                    let outcome = Outcome::Measured(run);
                    let repetition = seed as u64;
                    let (beside, work) = (peer.name.into(), peer.work);
                    lines.push(Line { beside, work, repetition, retried: None, outcome });
                }
            }
        }
        lines
    }

    #[test]
    fn a_ratio_is_the_median_over_pairs_with_its_spread() {
        let report = of(&machine(), &runs(&[9.0, 7.0, 30.0], 0.91)).unwrap();
        assert!(report.verdict.is_ok());
        assert_eq!(report.text.matches("| 9.0 (7.0–30.0) |").count(), PEERS.len());
        assert!(report.text.contains("≥ 7: met") && report.text.contains("≥ 10: **missed**"));
        assert!(report.text.contains("lib 1.2") && report.text.contains("abacus"));
        assert!(!report.text.contains("say little"));
    }

    #[test]
    fn a_busy_machine_is_reported() {
        let machine = Machine { load: Some(3.0), ..machine() };
        assert!(of(&machine, &runs(&[9.0], 0.9)).unwrap().text.contains("not quiet"));
    }

    #[test]
    fn the_readme_shows_only_the_newest_run_of_a_commit_on_a_quiet_machine() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let keep = |date: &str, load, commit: &str| {
            let folder = root.join("bench/runs").join(date);
            std::fs::create_dir_all(&folder).unwrap();
            let machine = Machine { date: date.into(), load, commit: commit.into(), ..machine() };
            let lines = runs(&[9.0], 0.9);
            let lines: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
            std::fs::write(folder.join(record::MACHINE), serde_json::to_vec(&machine).unwrap()).unwrap();
            std::fs::write(folder.join(RUNS), lines.join("\n")).unwrap();
        };
        std::fs::write(root.join("README.md"), format!("a\n{BEGIN}\n{END}\nb\n")).unwrap();
        let shown = || {
            write_readme(root).unwrap();
            check_readme(root).unwrap();
            std::fs::read_to_string(root.join("README.md")).unwrap()
        };
        assert!(shown().contains(NOTHING_YET));
        keep("2026-01-01T0000Z", Some(2.39), "abc");
        keep("2026-01-02T0000Z", Some(0.1), "3048c81-dirty");
        keep("2026-01-03T0000Z", None, "abc");
        assert!(shown().contains(NOTHING_YET));
        keep("2026-01-02T1200Z", Some(0.1), "abc");
        assert!(shown().contains("2026-01-02T1200Z") && !shown().contains(NOTHING_YET));
    }

    #[test]
    fn a_run_that_was_repeated_is_in_the_report() {
        let mut lines = runs(&[9.0], 0.9);
        assert!(!of(&machine(), &lines).unwrap().text.contains("repeated"));
        lines.last_mut().unwrap().retried = Some("SIGABRT of rank 1".into());
        let report = of(&machine(), &lines).unwrap();
        assert!(report.verdict.is_ok() && report.text.contains("Run 1 of blazefl was repeated after this"));
        assert!(report.text.contains("SIGABRT of rank 1"));
    }

    #[test]
    fn other_accuracy_means_other_work() {
        let report = of(&machine(), &runs(&[9.0], 0.93)).unwrap();
        assert!(report.verdict.unwrap_err().to_string().contains("jax"));
        assert!(summary(&machine(), &runs(&[9.0], 0.93)).is_err());
    }

    #[test]
    fn a_peer_that_failed_has_a_row_its_error_and_the_command_fails() {
        let mut lines = runs(&[9.0], 0.9);
        let failed = Outcome::Failed { program: "blazefl".into(), error: "no such wheel".into() };
        let last = lines.last_mut().unwrap();
        last.outcome = failed;
        let report = of(&machine(), &lines).unwrap();
        assert!(report.text.contains("**could not be measured**") && report.text.contains("no such wheel"));
        assert!(report.verdict.unwrap_err().to_string().contains("blazefl"));
        assert!(summary(&machine(), &lines).is_err());
    }

    #[test]
    fn the_readme_shows_every_peer_or_nothing() {
        let mut lines = runs(&[9.0], 0.9);
        let table = summary(&machine(), &lines).unwrap();
        assert!(PEERS.iter().all(|peer| table.contains(peer.title)));
        lines.retain(|line| line.beside != "torch");
        assert!(summary(&machine(), &lines).is_err());
    }

    #[test]
    fn a_run_without_its_counterpart_is_an_error() {
        let mut lines = runs(&[9.0, 8.0], 0.9);
        lines.remove(0);
        assert!(of(&machine(), &lines).unwrap().verdict.unwrap_err().to_string().contains("jax"));
    }

    #[test]
    fn the_table_replaces_the_text_between_the_marks() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = between_marks(&page, "new\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert_eq!(between_marks(&new, "new\n").unwrap(), new);
        assert!(between_marks("no marks", "new\n").is_err());
    }
}
