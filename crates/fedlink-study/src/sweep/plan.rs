//! The runs of a sweep with their data, known before the first round.

use super::data::{DataFact, DataFacts};
use crate::error::Error;
use crate::experiment::{Curve, Run, Sweep};
use fedlink::data::catalog::entry;
use fedlink::data::{DataError, Dataset};
use fedlink::learn::task::Work;
use fedlink::spec::{BatchSize, ConfigError, Spec};
use fedlink::system::simulation::{Needs, Simulation};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The runs of a sweep with their data.
pub struct Plan {
    /// The experiment with its curves and runs.
    pub sweep: Sweep,
    /// The data sets and files that the runs depend on, by name.
    pub data: DataFacts,
    datasets: BTreeMap<String, Arc<Dataset>>,
    /// The other files that each curve reads.
    files: Vec<Vec<String>>,
    /// The needs of a round of each curve.
    needs: Vec<Needs>,
    /// The data sets that are not there, in whose place generated ones stand.
    stand_ins: Vec<String>,
}

impl Plan {
    /// Loads the data and builds every curve once, so that a curve that cannot run is an error before the
    /// first run.
    pub fn new(sweep: Sweep, folders: &[PathBuf]) -> Result<Self, Error> {
        Self::build(sweep, folders, false, (BTreeMap::new(), DataFacts::new()))
    }

    /// As [`Plan::new`], for an estimate: in place of a known data set that is not there stands a generated
    /// one of its size.
    pub fn for_estimate(sweep: Sweep, folders: &[PathBuf]) -> Result<Self, Error> {
        Self::build(sweep, folders, true, (BTreeMap::new(), DataFacts::new()))
    }

    /// The plan of another sweep, with the data that this one has loaded.
    pub fn of_sweep(&self, sweep: Sweep, folders: &[PathBuf]) -> Result<Self, Error> {
        Self::build(sweep, folders, false, (self.datasets.clone(), self.data.clone()))
    }

    fn build(
        sweep: Sweep,
        folders: &[PathBuf],
        estimates: bool,
        (mut datasets, mut data): (BTreeMap<String, Arc<Dataset>>, DataFacts),
    ) -> Result<Self, Error> {
        let (mut stand_ins, mut needs, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for Curve { spec, .. } in &sweep.curves {
            let name = &spec.data.dataset;
            if let Some(task) = sweep.parts.make_task(spec)? {
                let fact = || DataFact::of_task(&*task, spec, sweep.parts.texts(name));
                data.entry(name.clone()).or_insert_with(fact);
                let mut simulation = Simulation::new(spec.with_work(task)?)?;
                needs.push(simulation.needs()?);
                files.push(file_facts(spec, &mut data)?);
                continue;
            }
            if !datasets.contains_key(name) {
                let given = sweep.parts.find_dataset(name);
                check_given(spec, given.is_some())?;
                let load = || given.map_or_else(|| fedlink::data::load(name, folders), Ok);
                let dataset = match (load(), entry(name)) {
                    (Err(DataError::Missing { .. }), Some(entry)) if estimates => {
                        stand_ins.push(name.clone());
                        Arc::new(entry.stand_in())
                    }
                    (loaded, _) => loaded.map_err(Error::Dataset)?,
                };
                data.insert(name.clone(), DataFact::new(&dataset));
                datasets.insert(name.clone(), dataset);
            }
            let mut simulation = Simulation::new(spec.with_work(Arc::clone(&datasets[name]))?)?;
            needs.push(simulation.needs()?);
            files.push(file_facts(spec, &mut data)?);
        }
        Ok(Self { sweep, data, datasets, files, needs, stand_ins })
    }

    /// The settings of curves that are allowed and seldom intended, each once.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions: Vec<String> = Vec::new();
        let own = |curve: &Curve| {
            let spec = &curve.spec;
            let fading = &spec.radio.fading;
            let shares = spec.run.seeds > 1 && self.sweep.parts.ignores_seed(fading);
            spec.cautions().into_iter().chain(shares.then(|| {
                format!(
                    "radio.fading = \"{fading}\" gives all seeds the same channel: intervals over the seeds \
                     leave out how much the channel varies"
                )
            }))
        };
        for caution in self.sweep.curves.iter().flat_map(own) {
            if !cautions.contains(&caution) {
                cautions.push(caution);
            }
        }
        cautions
    }

    /// The data sets that are not there, in whose place generated ones stand.
    pub fn stand_ins(&self) -> &[String] {
        &self.stand_ins
    }

    /// The data sets by name.
    pub fn datasets(&self) -> &BTreeMap<String, Arc<Dataset>> {
        &self.datasets
    }

    /// The data set of `run`, or a new task of it.
    pub fn work(&self, run: &Spec) -> Result<Work, ConfigError> {
        match self.sweep.parts.make_task(run)? {
            Some(task) => Ok(Work::from(task)),
            None => Ok(Work::from(Arc::clone(&self.datasets[&run.data.dataset]))),
        }
    }

    /// Whether runs must be made one after the other: the code of custom tasks need not stand being called
    /// by two runs at a time.
    pub fn is_serial(&self) -> bool {
        self.sweep.curves.iter().any(|curve| self.sweep.parts.has_task(&curve.spec.data.dataset))
    }

    /// Digests of the data that a run depends on, by name.
    pub fn data_digests(&self, run: &Run) -> BTreeMap<String, String> {
        let names = [&run.spec.data.dataset].into_iter().chain(&self.files[run.curve]);
        names.filter_map(|name| Some((name.clone(), self.data.get(name)?.sha256.clone()))).collect()
    }

    /// A run from its start.
    pub fn simulation(&self, run: &Run) -> Result<Simulation, fedlink::Error> {
        Simulation::new(run.spec.with_work(self.work(&run.spec)?)?)
    }

    /// The needs of a round of a run.
    pub fn needs(&self, run: &Run) -> Needs {
        self.needs[run.curve]
    }

    /// The work of a whole run in multiplications: 6·d per sample and step of every device that trains, about
    /// 20·d per step for the optimizer, 10·d per report, and 2·d per test sample that is evaluated.
    pub fn cost(&self, run: &Run) -> f64 {
        let config = &run.spec;
        let tested = self.data.get(&config.data.dataset).map_or(0, |fact| fact.test);
        let evaluations = 2.0 * tested as f64 / config.run.evaluate_every as f64;
        config.run.rounds as f64 * (self.round_cost(run) + self.needs(run).dim as f64 * evaluations)
    }

    /// The same of a round without an evaluation.
    pub fn round_cost(&self, run: &Run) -> f64 {
        let Needs { dim, trained, .. } = self.needs(run);
        let config = &run.spec;
        let batch = match config.learn.batch {
            BatchSize::Count(count) => count.min(config.data.samples_per_device),
            BatchSize::Full => config.data.samples_per_device,
        };
        let step = 6.0 * batch as f64 + 20.0;
        dim as f64 * trained as f64 * (config.learn.local_steps as f64 * step + 10.0)
    }

    /// The indices of all runs, the longest first, so that short ones end last. Among equally long runs the
    /// first seeds come first: a sweep that is stopped has compared all curves on some seeds.
    pub fn longest_first(&self) -> Vec<usize> {
        let costs: Vec<f64> = self.sweep.runs.iter().map(|run| self.cost(run)).collect();
        let mut order: Vec<usize> = (0..self.sweep.runs.len()).collect();
        let seed = |index: usize| self.sweep.runs[index].spec.run.seed;
        order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]).then(seed(a).cmp(&seed(b))).then(a.cmp(&b)));
        order
    }

    /// The runs of one share, the longest first. Every run goes to the share with the least work so far, so
    /// that all machines agree on the shares of a sweep.
    pub fn share(&self, share: Share) -> Vec<usize> {
        let mut loads = vec![0.0; share.of];
        let mut mine = Vec::new();
        for run in self.longest_first() {
            let idlest = (0..share.of).min_by(|&a, &b| f64::total_cmp(&loads[a], &loads[b])).unwrap_or(0);
            loads[idlest] += self.cost(&self.sweep.runs[run]);
            if idlest + 1 == share.number {
                mine.push(run);
            }
        }
        mine
    }
}

/// The files that a curve reads besides its data set; `data` has the facts of each.
fn file_facts(spec: &Spec, data: &mut DataFacts) -> Result<Vec<String>, Error> {
    let read = spec.files();
    for path in read.iter().cloned() {
        if let Entry::Vacant(unknown) = data.entry(path) {
            let fact = DataFact::of_file(Path::new(unknown.key()))?;
            unknown.insert(fact);
        }
    }
    Ok(read)
}

/// Refuses data or a task of a program that were not given.
fn check_given(spec: &Spec, is_given: bool) -> Result<(), ConfigError> {
    let name = &spec.data.dataset;
    let origin = spec.custom.get(name).filter(|_| !is_given);
    origin.map_or(Ok(()), |origin| {
        let problem = format!("is \"{name}\", data or a task of a program ({origin}) that was not given");
        Err(ConfigError::new("data.dataset", problem))
    })
}

/// `I/N`: share I of N of the runs of a sweep, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    number: usize,
    of: usize,
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let numbers = text.split_once('/').map(|(i, n)| (i.parse::<usize>(), n.parse::<usize>()));
        match numbers {
            Some((Ok(number), Ok(of))) if (1..=of).contains(&number) && of <= 1_000_000 => {
                Ok(Self { number, of })
            }
            _ => Err(Error::Share),
        }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn shares_are_disjoint_and_complete_and_none_has_much_more_than_its_part() {
        let text = "[learn]\nmodel = \"softmax\"\nstate = \"reset\"\n[data]\nsamples_per_device = 20\n\
                    [run]\nseeds = 3\n\
                    [sweep]\n\"schedule.policy\" = [\"bc\", \"bn2\"]\n\"run.rounds\" = [10, 20, 50]\n";
        let plan = Plan::new(
            Experiment::parse("x", text).unwrap().expand(&fedlink::parts::Parts::default()).unwrap(),
            &[],
        )
        .unwrap();
        let cost = |runs: &[usize]| runs.iter().map(|&run| plan.cost(&plan.sweep.runs[run])).sum::<f64>();
        let order = plan.longest_first();
        assert!(order.windows(2).all(|pair| cost(&pair[..1]) >= cost(&pair[1..])));
        let longest = cost(&order[..1]);
        for of in [1, 2, 3, 7, 30] {
            let shares: Vec<Vec<usize>> = (1..=of).map(|number| plan.share(Share { number, of })).collect();
            let mut all: Vec<usize> = shares.concat();
            all.sort_unstable();
            assert_eq!(all, (0..18).collect::<Vec<_>>());
            // List scheduling: no share is more than one run above the mean.
            let mean = cost(&all) / of as f64;
            assert!(shares.iter().all(|share| cost(share) <= mean + longest));
        }
    }

    #[test]
    fn a_share_is_written_with_a_slash_and_counted_from_one() {
        assert_eq!("3/10".parse::<Share>().unwrap(), Share { number: 3, of: 10 });
        assert_eq!("3/10".parse::<Share>().unwrap().to_string(), "3/10");
        for bad in ["0/4", "5/4", "1", "1/0", "a/b", "-1/2", "1/2/3", ""] {
            assert!(bad.parse::<Share>().unwrap_err().to_string().contains("3/10"), "{bad}");
        }
    }
}
