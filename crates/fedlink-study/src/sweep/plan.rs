//! Everything that an experiment will run, known before the first round.

use super::data::{DataFact, DataFacts};
use crate::error::Error;
use crate::experiment::{Cell, Curve, Experiment};
use fedlink::config::BatchSize;
use fedlink::data::Dataset;
use fedlink::parts::Parts;
use fedlink::simulation::{Needs, Simulation};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The runs of an experiment with their data.
pub struct Plan {
    /// What is run, with settings and parts applied.
    pub experiment: Experiment,
    /// The configurations that it compares, in the order of the sweep.
    pub curves: Vec<Curve>,
    /// Its runs, each a curve at a seed.
    pub cells: Vec<Cell>,
    /// Custom parts that its curves name.
    pub parts: Parts,
    /// What is known of the data that its runs depend on, by name.
    pub data: DataFacts,
    datasets: BTreeMap<String, Arc<Dataset>>,
    /// The other files that each curve reads.
    files: Vec<Vec<String>>,
    /// What a round of each curve takes.
    needs: Vec<Needs>,
}

impl Plan {
    /// Loads the data and sets every curve up once: what cannot run is an error before anything runs.
    pub fn new(experiment: Experiment, folders: &[PathBuf], parts: &Parts) -> Result<Self, Error> {
        let (curves, cells) = (experiment.curves()?, experiment.cells()?);
        let mut datasets: BTreeMap<String, Arc<Dataset>> = BTreeMap::new();
        let (mut needs, mut files, mut data) = (Vec::new(), Vec::new(), DataFacts::new());
        for Curve { config, .. } in &curves {
            let name = &config.data.dataset;
            if !datasets.contains_key(name) {
                let dataset = fedlink::data::load(name, folders).map_err(Error::Dataset)?;
                data.insert(name.clone(), DataFact::new(&dataset));
                datasets.insert(name.clone(), dataset);
            }
            let mut simulation = Simulation::with_parts(config, Arc::clone(&datasets[name]), parts)?;
            needs.push(simulation.needs()?);
            let read = config.files();
            for path in read.iter().cloned() {
                if let Entry::Vacant(unknown) = data.entry(path) {
                    let fact = DataFact::of_file(Path::new(unknown.key()))?;
                    unknown.insert(fact);
                }
            }
            files.push(read);
        }
        Ok(Self { experiment, curves, cells, parts: parts.clone(), data, datasets, files, needs })
    }

    /// What a person should know before the runs: settings of curves that are allowed and seldom meant, each
    /// once.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions: Vec<String> = Vec::new();
        for caution in self.curves.iter().flat_map(|curve| curve.config.cautions()) {
            if !cautions.contains(&caution) {
                cautions.push(caution);
            }
        }
        cautions
    }

    /// The data sets by name.
    pub fn datasets(&self) -> &BTreeMap<String, Arc<Dataset>> {
        &self.datasets
    }

    /// The data set of a run.
    pub fn dataset(&self, cell: &Cell) -> &Arc<Dataset> {
        &self.datasets[&cell.config.data.dataset]
    }

    /// Digests of the data that a run depends on, by name.
    pub fn data_digests(&self, cell: &Cell) -> BTreeMap<String, String> {
        let names = [&cell.config.data.dataset].into_iter().chain(&self.files[cell.curve]);
        names.filter_map(|name| Some((name.clone(), self.data.get(name)?.sha256.clone()))).collect()
    }

    /// A run from its start.
    pub fn simulation(&self, cell: &Cell) -> Result<Simulation, fedlink::Error> {
        Simulation::with_parts(&cell.config, Arc::clone(self.dataset(cell)), &self.parts)
    }

    /// What a round of a run takes.
    pub fn needs(&self, cell: &Cell) -> Needs {
        self.needs[cell.curve]
    }

    /// `bc k=1`, or `bc k=1 seed 3` where a curve has several seeds.
    pub fn label(&self, cell: &Cell) -> String {
        label(&self.curves, cell)
    }

    /// The work of a whole run, in multiplications: 6·d for every sample in every step of every device that
    /// trains, some 20·d for the optimizer and 10·d for the report, and 2·d for every test
    /// sample that is evaluated.
    pub fn cost(&self, cell: &Cell) -> f64 {
        let Needs { dim, trained, .. } = self.needs(cell);
        let config = &cell.config;
        let batch = match config.learn.batch {
            BatchSize::Count(count) => count.min(config.data.samples_per_device),
            BatchSize::Full => config.data.samples_per_device,
        };
        let step = 6.0 * batch as f64 + 20.0;
        let round = trained as f64 * (config.learn.local_steps as f64 * step + 10.0);
        let evaluations = 2.0 * self.dataset(cell).test.len() as f64 / config.run.evaluate_every as f64;
        dim as f64 * config.run.rounds as f64 * (round + evaluations)
    }

    /// The indices of all runs, the longest first: packed so, the last ones to end are short. Of equally long
    /// ones those of the first seed come first, so that a sweep that is stopped has compared all curves on
    /// some seeds.
    pub fn longest_first(&self) -> Vec<usize> {
        let costs: Vec<f64> = self.cells.iter().map(|cell| self.cost(cell)).collect();
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        let seed = |run: usize| self.cells[run].config.run.seed;
        order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]).then(seed(a).cmp(&seed(b))).then(a.cmp(&b)));
        order
    }

    /// The runs of one share, the longest first. Every run goes to the share that has least to do so far; all
    /// who ask for shares of the same experiment agree on them.
    pub fn share(&self, share: Share) -> Vec<usize> {
        let mut loads = vec![0.0; share.of];
        let mut mine = Vec::new();
        for run in self.longest_first() {
            let idlest = (0..share.of).min_by(|&a, &b| f64::total_cmp(&loads[a], &loads[b])).unwrap_or(0);
            loads[idlest] += self.cost(&self.cells[run]);
            if idlest + 1 == share.number {
                mine.push(run);
            }
        }
        mine
    }
}

/// What tells a run from the others: `bc k=1`, or `bc k=1 seed 3` where a curve has several seeds.
pub(super) fn label(curves: &[Curve], cell: &Cell) -> String {
    let curve = &curves[cell.curve];
    match curve.config.run.seeds {
        1 => curve.label.clone(),
        _ => format!("{} seed {}", curve.label, cell.config.run.seed),
    }
}

/// `I/N`: the I-th of N shares, counted from 1.
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

    #[test]
    fn shares_are_disjoint_and_complete_and_none_has_much_more_than_its_part() {
        let text = "[learn]\nmodel = \"softmax\"\nstate = \"reset\"\n[data]\nsamples_per_device = 20\n\
                    [run]\nseeds = 3\n\
                    [sweep]\n\"schedule.policy\" = [\"bc\", \"bn2\"]\n\"run.rounds\" = [10, 20, 50]\n";
        let plan = Plan::new(Experiment::parse("x", text).unwrap(), &[], &Parts::default()).unwrap();
        let cost = |runs: &[usize]| runs.iter().map(|&run| plan.cost(&plan.cells[run])).sum::<f64>();
        let order = plan.longest_first();
        assert!(order.windows(2).all(|pair| cost(&pair[..1]) >= cost(&pair[1..])));
        let longest = cost(&order[..1]);
        for of in [1, 2, 3, 7, 30] {
            let shares: Vec<Vec<usize>> = (1..=of).map(|number| plan.share(Share { number, of })).collect();
            let mut all: Vec<usize> = shares.concat();
            all.sort_unstable();
            assert_eq!(all, (0..18).collect::<Vec<_>>());
            // List scheduling: nobody is more than one run above the mean.
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
