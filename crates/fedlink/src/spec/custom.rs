//! Short names for adding custom parts of the common kinds.

use crate::compress::Compressor;
use crate::data::Dataset;
use crate::data::partition::{Indices, Partition};
use crate::learn::task::Task;
use crate::parts::{ConfigError, Parts, Scope};
use crate::radio::fading::Fading;
use crate::schedule::Policy;
use crate::spec::Spec;
use std::sync::Arc;
use toml::Table;

/// The key that names a data set.
const DATASET: &str = "data.dataset";

/// The result of making a task.
type MadeTask = Result<Arc<dyn Task>, ConfigError>;

/// Makes the task of a run.
struct MakeTask(Box<dyn Fn(&Spec) -> MadeTask + Send + Sync>);

impl Parts {
    /// Adds a policy; `origin` records where it comes from.
    #[must_use]
    pub fn policy(
        self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope) -> Result<Box<dyn Policy>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.with::<dyn Policy>(name, origin, move |own, scope, ()| make(own, scope))
    }

    /// Adds a compressor.
    #[must_use]
    pub fn compressor(
        self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope) -> Result<Box<dyn Compressor>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.with::<dyn Compressor>(name, origin, move |own, scope, ()| make(own, scope))
    }

    /// Adds a fading law, which brings its own antennas and correlation over rounds.
    #[must_use]
    pub fn fading(
        self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope) -> Result<Box<dyn Fading>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.with::<dyn Fading>(name, origin, move |own, scope, _| make(own, scope))
    }

    /// Adds a data set, which `data.dataset` names.
    #[must_use]
    pub fn dataset(self, name: impl Into<String>, origin: impl Into<String>, dataset: Arc<Dataset>) -> Self {
        self.value(DATASET, (name.into(), origin.into()), dataset)
    }

    /// The data set called `name`, if it was added.
    pub fn find_dataset(&self, name: &str) -> Option<Arc<Dataset>> {
        self.value_of(DATASET, name)
    }

    /// Adds a learning task, which `make` makes anew for every run. A run with it has its name as
    /// `data.dataset`, `data.partition`, `learn.model` and `learn.optimizer`.
    #[must_use]
    pub fn task(
        self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Spec) -> Result<Arc<dyn Task>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.value(DATASET, (name.into(), origin.into()), Arc::new(MakeTask(Box::new(make))))
    }

    /// Whether `name` is that of a task.
    pub fn has_task(&self, name: &str) -> bool {
        self.value_of::<MakeTask>(DATASET, name).is_some()
    }

    /// A new task for a run whose `data.dataset` is the name of one; none if it is that of data.
    pub fn make_task(&self, run: &Spec) -> Result<Option<Arc<dyn Task>>, ConfigError> {
        let task = self.value_of::<MakeTask>(DATASET, &run.data.dataset);
        task.map(|task| (task.0)(run)).transpose()
    }

    /// Adds a partition of the training set, listed sample by sample for every device.
    #[must_use]
    pub fn partition(self, name: impl Into<String>, origin: impl Into<String>, lists: Vec<Vec<u32>>) -> Self {
        let lists = Arc::new(lists);
        self.with::<dyn Partition>(name, origin, move |_, scope: &Scope, dataset: &Dataset| {
            let indices = Indices::new(lists.as_ref().clone(), scope.devices, dataset)?;
            Ok(Box::new(indices) as Box<dyn Partition>)
        })
    }
}
