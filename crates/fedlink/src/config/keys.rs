//! What every key means; the source of `fedlink config`, of the reference page and of "did you mean".

use super::Config;
use std::fmt::Write;

/// One key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// `section.name`.
    pub name: &'static str,
    /// What it sets.
    pub meaning: &'static str,
    /// Which values it takes.
    pub allowed: &'static str,
}

const fn key(name: &'static str, meaning: &'static str, allowed: &'static str) -> Key {
    Key { name, meaning, allowed }
}

/// Every key, in the order of the file.
pub const KEYS: &[Key] = &[
    key("data.dataset", "what is learnt", "a known name, or the path of custom data"),
    key(
        "data.scaling",
        "how stored numbers become inputs",
        "\"unit\" (bytes / 255) | \"standard\" (mean 0, deviation 1) | \"none\"",
    ),
    key(
        "data.partition",
        "how the training set is split among the devices",
        "\"iid\" | \"classes\" | \"dirichlet\" | \"shards\" | \"quantity\"",
    ),
    key("data.devices", "M, the number of devices", "≥ 1"),
    key(
        "data.samples_per_device",
        "B, training samples on each device; their mean with quantity or sizes = \"free\"; not used by shards",
        "1 ..= training set",
    ),
    key(
        "data.classes_per_device",
        "distinct classes on a device with partition = \"classes\"",
        "1 ..= classes",
    ),
    key(
        "data.alpha",
        "α of partition = \"dirichlet\": large makes the mixes of classes alike, small makes each one class",
        "1e-9 ..= 1e9",
    ),
    key(
        "data.sizes",
        "how many samples devices have with partition = \"dirichlet\"",
        "\"equal\" (B each) | \"free\" (B on average, standard deviation B/√(α·classes))",
    ),
    key(
        "data.shards_per_device",
        "shards of the sorted training set on a device with partition = \"shards\"",
        "≥ 1, M times it ≤ training set",
    ),
    key("data.size_spread", "σ of the log-normal sizes of partition = \"quantity\"", "0 (all have B) ..= 5"),
    key(
        "data.sharing",
        "whether two devices may hold the same sample; a choice with iid and quantity only",
        "\"disjoint\" (M·B ≤ training set; always with shards) | \"overlapping\" (always with classes and \
         dirichlet); if left out: disjoint where there is a choice",
    ),
    key("learn.model", "the model", "\"softmax\" | \"mlp\" | \"cnn\" (pictures of at least 16 × 16)"),
    key("learn.hidden", "widths of the hidden layers of model = \"mlp\"", "a list of widths ≥ 1"),
    key(
        "learn.init",
        "how weights start; biases start at zero",
        "\"glorot-uniform\" | \"glorot-normal\" | \"he-uniform\" | \"zeros\"",
    ),
    key("learn.local_steps", "τ, local steps in a round", "≥ 1"),
    key("learn.batch", "samples in a mini-batch", "≥ 1, or \"full\" for all samples of the device"),
    key("learn.optimizer", "the local optimiser", "\"sgd\" | \"adam\" | \"adagrad\""),
    key("learn.rate", "η, the learning rate", "> 0; if left out: sgd 0.1, adam 1e-3, adagrad 0.2"),
    key("learn.state", "the optimiser's memory from round to round", "\"keep\" | \"reset\""),
    key("learn.momentum", "momentum of sgd", "0 ≤ μ < 1"),
    key("learn.beta1", "decay of Adam's first moment", "0 ≤ β₁ < 1"),
    key("learn.beta2", "decay of Adam's second moment", "0 ≤ β₂ < 1"),
    key("learn.epsilon", "ε in the denominator of Adam and AdaGrad", "≥ 1e-30"),
    key("learn.initial_accumulator", "what AdaGrad's sum of squares starts from", "≥ 0"),
    key(
        "learn.aggregate",
        "what each scheduled device's update counts, and each trained device's loss",
        "\"mean\" (the same) | \"by-size\" (in proportion to its samples)",
    ),
    key("radio.channel", "the fading model", "\"rayleigh\""),
    key("radio.symbols", "n, channel symbols in a round, shared by the scheduled devices", "≥ 1"),
    key("radio.power", "P̄, average transmit power of a device; a scheduled one sends with M·P̄/K", "> 0"),
    key("radio.noise", "σ², noise variance", "> 0"),
    key("radio.slots", "whether shares of symbols are real or whole numbers", "\"real\" | \"whole\""),
    key(
        "radio.wire",
        "whether scheduled devices encode their updates to bytes and the server decodes them; the result is the same",
        "false | true",
    ),
    key("schedule.policy", "who sends", "\"bc\" | \"bn2\" | \"bc-bn2\" | \"bn2-c\""),
    key("schedule.k", "K, devices scheduled in a round", "1 ..= data.devices"),
    key(
        "schedule.kc",
        "Kc, devices that pass bc-bn2's look at the channel",
        "schedule.k ..= data.devices; if left out: max(10, 2K), at most M",
    ),
    key("compress.scheme", "how an update is compressed", "\"d-sgd\" | \"random-sparse\" | \"top-k\""),
    key(
        "compress.feedback",
        "what a device keeps of an update that was not sent in full",
        "\"off\" | \"scheduled\" (what compression dropped) | \"always\" (also when not scheduled)",
    ),
    key(
        "compress.budget",
        "what must fit into a device's bits: the scheme's count, or the encoded payload, to the bit",
        "\"formula\" | \"wire\" (the largest q not above the formula's whose payload fits)",
    ),
    key("adversary.share", "share of the devices that are hostile, the same in every round", "0 ..= 1"),
    key(
        "adversary.kind",
        "what a hostile device does",
        "\"inflated-norm\" | \"garbage\" | \"stolen\" | \"replay\" | \"not-a-number\" | \"huge\" | \"sign-flip\"; \
         garbage, stolen and replay act on bytes and need radio.wire = true",
    ),
    key(
        "adversary.report",
        "what kind = \"inflated-norm\" reports",
        "\"times\" (adversary.amount times the truth) | \"constant\" (adversary.amount)",
    ),
    key(
        "adversary.amount",
        "factor or constant of an inflated report; factor of kind = \"huge\"",
        "> 0, at most 3.4e38",
    ),
    key("adversary.upload", "what kind = \"inflated-norm\" uploads", "\"honest\" | \"sign-flip\""),
    key(
        "defence.audit",
        "whether uploads that contradict the device's report are dropped, and devices excluded that do it again",
        "false | true",
    ),
    key("defence.strikes", "uploads that the audit drops until it excludes the device", "≥ 1"),
    key(
        "defence.clip",
        "the norm to which updates are clipped",
        "\"off\" | a norm > 0 | \"median\" (of the latest 101 that arrived)",
    ),
    key(
        "defence.aggregate",
        "how the server makes one of K updates, entry by entry",
        "\"mean\" (as learn.aggregate says) | \"median\" | \"trimmed-mean\"",
    ),
    key("defence.trim", "share that a trimmed mean leaves out at each end", "0 ≤ share < 0.5"),
    key(
        "defence.participation_cap",
        "whether no device is scheduled in more than its share K/M of the rounds, so that none spends more than P̄",
        "false | true",
    ),
    key("defence.cap_slack", "transmissions that a device may be ahead of that share before the end", "≥ 1"),
    key("run.rounds", "T, rounds to run", "≥ 1"),
    key(
        "run.evaluate_every",
        "rounds between looks at the test set; the last round is always looked at",
        "≥ 1",
    ),
    key("run.seed", "the first seed", "≥ 0"),
    key("run.seeds", "how many seeds, counted up from run.seed", "≥ 1"),
];

/// The known name that `name` was most likely meant to be, if any is near: almost the same, or almost the same
/// last part under another section.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    fn last(key: &str) -> &str {
        key.rsplit('.').next().unwrap_or(key)
    }
    let near =
        |a: &str, b: &str| Some(strsim::damerau_levenshtein(a, b)).filter(|&far| far <= a.len().div_ceil(4));
    known
        .into_iter()
        .filter_map(|candidate| {
            let whole = near(name, candidate).filter(|_| last(name).len() > 1);
            let part =
                near(last(name), last(candidate)).map(|far| far + 1).filter(|_| last(candidate).len() > 1);
            whole.into_iter().chain(part).min().map(|far| (far, candidate))
        })
        .min_by_key(|&(far, _)| far)
        .map(|(_, candidate)| candidate)
}

/// The configuration as TOML with a comment on every key.
pub fn commented_toml(config: &Config) -> String {
    let table = toml::Table::try_from(config.resolved()).expect("a configuration is a table");
    let mut text = String::new();
    let mut section = "";
    for key in KEYS {
        let (in_section, name) = key.name.split_once('.').expect("keys are section.name");
        if in_section != section {
            section = in_section;
            let _ = writeln!(text, "{}[{section}]", if text.is_empty() { "" } else { "\n" });
        }
        let value = &table[in_section][name];
        let _ = writeln!(text, "# {}: {}\n{name} = {value}", key.meaning, key.allowed);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_keys_is_the_configuration_s_own() {
        let table = toml::Table::try_from(Config::default().resolved()).unwrap();
        let mut own: Vec<String> = Vec::new();
        for (section, keys) in &table {
            own.extend(keys.as_table().unwrap().keys().map(|name| format!("{section}.{name}")));
        }
        let mut listed: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        own.sort();
        listed.sort_unstable();
        assert_eq!(own, listed);
    }

    #[test]
    fn the_commented_text_reads_back_as_the_same_configuration() {
        let mut config = Config::default();
        config.schedule.k = 7;
        config.learn.batch = crate::config::BatchSize::Full;
        let read: Config = toml::from_str(&commented_toml(&config)).unwrap();
        assert_eq!(read, config.resolved());
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        let names = || KEYS.iter().map(|key| key.name);
        assert_eq!(nearest("schedule.polcy", names()), Some("schedule.policy"));
        assert_eq!(nearest("run.policy", names()), Some("schedule.policy"));
        assert_eq!(nearest("learn.lr", names()), None);
        assert_eq!(nearest("schedule.kk", names()), Some("schedule.k"));
        assert_eq!(nearest("radio.symbol", names()), Some("radio.symbols"));
    }
}
