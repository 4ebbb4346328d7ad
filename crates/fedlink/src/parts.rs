//! Every pluggable part with its one-line meaning: the source of `fedlink list` and of the reference page.

use crate::data::catalogue::CATALOGUE;
use serde::Serialize;

/// One entry of a list.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Part {
    /// How it is written in a configuration.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
}

/// The parts that one key chooses from.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The plural by which `fedlink list` knows them.
    pub name: &'static str,
    /// The key that chooses; empty for presets, which are chosen by name.
    pub key: &'static str,
    /// What there is.
    pub parts: Vec<Part>,
}

fn part(name: &'static str, meaning: &'static str) -> Part {
    Part { name, meaning }
}

/// All kinds of parts.
pub fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            name: "policies",
            key: "schedule.policy",
            parts: vec![
                part("bc", "best channel: the K largest gains, equal bits"),
                part("bn2", "best norm: the K largest ‖Δ‖, bits in proportion to it"),
                part("bc-bn2", "best channel, then best norm: the K largest ‖Δ‖ among the Kc largest gains"),
                part("bn2-c", "best quantised norm: the K largest ‖Δ̂‖ as if each device had the whole band"),
            ],
        },
        Kind {
            name: "models",
            key: "learn.model",
            parts: vec![
                part("softmax", "softmax regression (784→10: d = 7 850)"),
                part(
                    "mlp",
                    "multi-layer perceptron with learn.hidden layers, ReLU (784→256→10: d = 203 530)",
                ),
                part(
                    "cnn",
                    "two 5×5 convolutions (32, 64) with 2×2 max-pooling, then 512 units, for pictures \
                     (28×28×1: d = 582 026; 32×32×3: d = 878 538)",
                ),
            ],
        },
        Kind {
            name: "optimizers",
            key: "learn.optimizer",
            parts: vec![
                part("sgd", "stochastic gradient descent, with learn.momentum"),
                part("adam", "Adam (learn.beta1, learn.beta2, learn.epsilon)"),
                part("adagrad", "AdaGrad (learn.epsilon, learn.initial_accumulator)"),
            ],
        },
        Kind {
            name: "datasets",
            key: "data.dataset",
            parts: CATALOGUE.iter().map(|entry| part(entry.name, entry.meaning)).collect(),
        },
        Kind {
            name: "partitions",
            key: "data.partition",
            parts: vec![
                part("iid", "samples drawn uniformly from the training set"),
                part(
                    "classes",
                    "data.classes_per_device classes on each device, equally many samples of each",
                ),
                part(
                    "dirichlet",
                    "a mix of classes on each device ~ Dirichlet(data.alpha), in amounts by data.sizes",
                ),
                part(
                    "shards",
                    "data.shards_per_device pieces of the training set sorted by class on each device",
                ),
                part("quantity", "as iid, in log-normal amounts of spread data.size_spread"),
            ],
        },
        Kind {
            name: "channels",
            key: "radio.channel",
            parts: vec![part(
                "rayleigh",
                "Rayleigh block fading: gain ~ Exp(1), independent over devices and rounds",
            )],
        },
        Kind {
            name: "schemes",
            key: "compress.scheme",
            parts: vec![
                part("d-sgd", "sparse binary compression: one value and the places of q entries"),
                part(
                    "random-sparse",
                    "random sparsification: the places of q random entries and a value for each",
                ),
                part("top-k", "the places of the q largest entries and a value for each"),
                part(
                    "stc",
                    "sparse ternary compression: one magnitude, indices and signs of the q largest entries",
                ),
            ],
        },
        attacks(),
        aggregations(),
        presets(),
    ]
}

/// What hostile devices do.
fn attacks() -> Kind {
    Kind {
        name: "attacks",
        key: "adversary.kind",
        parts: vec![
            part("inflated-norm", "reports too large a norm, to be scheduled; uploads adversary.upload"),
            part("garbage", "sends random bytes"),
            part("stolen", "sends the payload of another device"),
            part("replay", "sends its first payload again and again"),
            part("not-a-number", "sends NaN and ∞ as values"),
            part("huge", "sends its values times adversary.amount"),
            part("sign-flip", "sends its update with the sign turned"),
        ],
    }
}

/// How the server makes one of K updates.
fn aggregations() -> Kind {
    Kind {
        name: "aggregations",
        key: "defence.aggregate",
        parts: vec![
            part("mean", "the mean over the K devices, weighted as learn.aggregate says"),
            part(
                "median",
                "the middle value of each entry; zero where fewer than half of the devices send it",
            ),
            part("trimmed-mean", "the mean of each entry without the ⌊defence.trim·K⌋ largest and smallest"),
        ],
    }
}

/// The experiments that come with the program.
fn presets() -> Kind {
    Kind {
        name: "presets",
        key: "",
        parts: vec![
            part("demo", "the four policies at K = 1 on IID digits, in about a minute"),
            part("fig1", "Figure 1: the four policies at K = 1 and 10 on IID MNIST; --quick on digits"),
            part("fig2", "Figure 2: at K = 1, 5, 10 and 20, two classes on a device; --quick on digits"),
            part("fig3", "Figure 3: the convergence bound for several K, and what is claimed of it"),
            part("fig4", "Figure 4: the convergence bound for several τ, and what is claimed of it"),
            part(
                "adversary",
                "0 to 30 % of devices lie to be scheduled and do harm, with and without an audit",
            ),
            part("power-cap", "two classes on a device, with and without a cap on how often each may send"),
            part("theorem", "the convergence theorem set beside runs of the system it speaks of"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::theory::experiment::{BoundExperiment, TheoremExperiment};

    #[test]
    fn every_listed_part_is_accepted_by_its_key_and_every_preset_loads() {
        for kind in kinds() {
            for part in &kind.parts {
                if kind.key.is_empty() {
                    let simulation = Experiment::preset(part.name).is_some();
                    let bound = BoundExperiment::preset(part.name).is_some();
                    let theorem = TheoremExperiment::preset(part.name).is_some();
                    let found = [simulation, bound, theorem].into_iter().filter(|found| *found).count();
                    assert_eq!(found, 1, "preset {}", part.name);
                } else {
                    let mut experiment = Experiment::default();
                    experiment.set(kind.key, part.name).unwrap();
                    assert_eq!(experiment.curves().unwrap().len(), 1);
                }
            }
        }
    }

    #[test]
    fn every_value_a_key_accepts_is_listed() {
        // An unknown value makes the parser name all it knows.
        for kind in kinds().iter().filter(|kind| !["", "data.dataset"].contains(&kind.key)) {
            let mut experiment = Experiment::default();
            let message = experiment.set(kind.key, "no-such-part").unwrap_err().to_string();
            let known: Vec<&str> =
                message.split('`').skip(1).step_by(2).filter(|name| *name != "no-such-part").collect();
            let listed: Vec<&str> = kind.parts.iter().map(|part| part.name).collect();
            assert_eq!(known, listed, "{}: {message}", kind.key);
        }
    }
}
