//! The files of an answer.

use super::answer::Answer;
use crate::error::Error;
use crate::folder::output::OutputFolder;
use fedlink::spec::{BatchSize, Spec};
use toml::Value;

/// Writes `decision.json`, `candidates.csv`, `best.toml` and `flower.toml`. Without recommended settings
/// there are no files of them.
pub fn write_files(folder: &OutputFolder, answer: &Answer, best: Option<&Best>) -> Result<(), Error> {
    folder.write("decision.json", serde_json::to_string_pretty(answer)? + "\n")?;
    folder.write("candidates.csv", candidates_csv(answer)?)?;
    if let (Some(best), Some(priced)) = (best, &answer.recommended) {
        let costs: Vec<String> =
            priced.costs.iter().map(|cost| format!("# {}: {}\n", cost.goal, cost.text)).collect();
        let head = format!(
            "# Recommended by fedlink plan for {}: {}\n{}\n",
            answer.scenario,
            priced.label,
            costs.concat()
        );
        folder.write("best.toml", head.clone() + &best.toml)?;
        folder.write("flower.toml", head + &best.flower)?;
    }
    Ok(())
}

/// The recommended settings as files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Best {
    /// The whole configuration.
    pub toml: String,
    /// The settings of a Flower app.
    pub flower: String,
}

impl Best {
    /// The files of a run whose configuration is `toml`.
    pub(super) fn new(toml: String, spec: &Spec) -> Self {
        let (learn, schedule) = (&spec.learn, &spec.schedule);
        let text = |name: &str| Value::from(name).to_string();
        let batch = match learn.batch {
            BatchSize::Count(count) => format!("batch = {count}\n"),
            BatchSize::Full => String::new(),
        };
        let flower = format!(
            "# For the pyproject.toml of a Flower app. Its ServerApp makes the strategy by\n\
             #     UpdateAwareStrategy(config=Path(context.run_config[\"fedlink-config\"]))\n\
             # and its nodes train by the other keys.\n\n\
             [tool.flwr.app.config]\nfedlink-config = \"best.toml\"\nrounds = {}\npolicy = {}\nk = {}\n\
             scheme = {}\ndevices = {}\nlocal-steps = {}\nlearning-rate = {:?}\n{batch}seed = {}\n",
            spec.run.rounds,
            text(&schedule.policy),
            schedule.k,
            text(&spec.compress.scheme),
            spec.data.devices,
            learn.local_steps,
            spec.rate(),
            spec.run.seed,
        );
        Self { toml, flower }
    }
}

/// `candidates.csv`: every candidate with its fate.
pub fn candidates_csv(answer: &Answer) -> Result<Vec<u8>, Error> {
    let keys: Vec<&String> = answer.searched.keys().collect();
    let mut head: Vec<String> = vec!["candidate".into()];
    head.extend(keys.iter().map(|key| (*key).clone()));
    let own = ["learn.rate", "learn.server_rate"].map(str::to_owned);
    let tuned: Vec<&String> = own.iter().filter(|key| !answer.searched.contains_key(*key)).collect();
    head.extend(tuned.iter().map(|key| (*key).clone()));
    head.extend(["stage", "reason", "proven", "seeds", "rounds"].map(str::to_owned));
    for goal in &answer.goals {
        let name = goal.split(' ').next().unwrap_or("cost");
        head.extend(["median", "low", "high", "reached"].map(|end| format!("{name}_{end}")));
    }
    head.extend(
        [
            "accuracy",
            "worst_class",
            "late",
            "silent",
            "lost",
            "scheduled_devices",
            "round_s",
            "round_j",
            "battery_rounds",
        ]
        .map(str::to_owned),
    );
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&head)?;
    let shown = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in &answer.candidates {
        let mut cells = vec![row.label.clone()];
        for key in keys.iter().chain(&tuned) {
            cells.push(match row.settings.get(*key) {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => String::new(),
            });
        }
        cells.extend([
            row.stage.clone(),
            row.reason.clone(),
            row.proven.to_string(),
            row.seeds.to_string(),
            row.rounds.to_string(),
        ]);
        for goal in 0..answer.goals.len() {
            match row.costs.get(goal).and_then(Option::as_ref) {
                Some(cost) => {
                    let median = &cost.median;
                    cells.extend([median.value, median.low, median.high].map(shown));
                    cells.push(format!("{}/{}", median.reached, median.of));
                }
                None => cells.extend([""; 4].map(str::to_owned)),
            }
        }
        let screened = &row.screened;
        cells.extend([row.accuracy, row.worst_class].map(shown));
        cells.extend([screened.late, screened.silent, screened.lost].map(|share| share.to_string()));
        cells.push(screened.heard.to_string());
        cells.extend([screened.round_s, screened.round_j, screened.battery_rounds].map(shown));
        let cells: Vec<String> =
            cells.iter().map(|cell| crate::tables::results::guarded(cell).into()).collect();
        writer.write_record(&cells)?;
    }
    writer.into_inner().map_err(|error| Error::Table(error.to_string()))
}
