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
    /// The key that chooses; empty for what is chosen by name.
    pub key: &'static str,
    /// What there is.
    pub parts: Vec<Part>,
}

const fn part(name: &'static str, meaning: &'static str) -> Part {
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
            ],
        },
        attacks(),
        aggregations(),
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
