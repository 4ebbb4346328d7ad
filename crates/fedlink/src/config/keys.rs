//! What every key means; the source of `fedlink config`, of the reference page and of "did you mean".

use super::Config;
use crate::adversary::Attack;
use crate::clock::compute::Compute;
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::compress::{Compressor, ErrorFeedback};
use crate::data::partition::Partition;
use crate::learn::correction::Correction;
use crate::learn::model::Model;
use crate::learn::optimizer::Optimizer;
use crate::radio::access::Access;
use crate::radio::cell::layout::Layout;
use crate::radio::cell::pathloss::PathLoss;
use crate::radio::fading::Fading;
use crate::radio::power::PowerPolicy;
use crate::radio::rate::Rate;
use crate::registry::{ConfigError, Key, Listing, Scope, file_key, key, nearest};
use crate::schedule::Policy;
use crate::server::aggregate::Aggregator;
use crate::server::optimizer::ServerOptimizer;
use std::fmt::Write;
use std::sync::LazyLock;
use toml::{Table, Value};

/// Every kind of part that a key chooses among, in the order of the file.
pub fn kinds() -> &'static [Listing] {
    // Every section that is read asks for them.
    static KINDS: LazyLock<Vec<Listing>> = LazyLock::new(|| {
        vec![
            Listing::of::<dyn Partition>(),
            Listing::of::<dyn Model>(),
            Listing::of::<dyn Optimizer>(),
            Listing::of::<dyn Correction>(),
            Listing::of::<dyn Aggregator>(),
            Listing::of::<dyn ServerOptimizer>(),
            Listing::of::<dyn Fading>(),
            Listing::of::<dyn PowerPolicy>(),
            Listing::of::<dyn Rate>(),
            Listing::of::<dyn Access>(),
            Listing::of::<dyn Layout>(),
            Listing::of::<dyn PathLoss>(),
            Listing::of::<dyn Compute>(),
            Listing::of::<dyn Spread>(),
            Listing::of::<dyn Jitter>(),
            Listing::of::<dyn Downlink>(),
            Listing::of::<dyn Policy>(),
            Listing::of::<dyn Compressor>(),
            Listing::of::<dyn ErrorFeedback>(),
            Listing::of::<dyn Attack>(),
        ]
    });
    &KINDS
}

/// What a key takes that chooses among parts.
const A_PART: &str = "";

/// Every key of the sections, in the order of the file; each part has its own besides.
pub const KEYS: &[Key] = &[
    key("data.dataset", "data set: a catalog name or a path", "a known name, or the path of custom data"),
    key(
        "data.scaling",
        "how stored numbers become inputs",
        "\"unit\" (bytes / 255) | \"standard\" (mean 0, deviation 1) | \"none\"",
    ),
    key("data.partition", "how the training set is split among the devices", A_PART),
    key("data.devices", "M, the number of devices", "≥ 1"),
    key(
        "data.samples_per_device",
        "B, training samples on each device; their mean with quantity and free sizes; not used by shards",
        "1 ..= training set",
    ),
    key("learn.model", "the model", A_PART),
    key(
        "learn.init",
        "how weights start; biases start at zero",
        "\"glorot-uniform\" | \"glorot-normal\" | \"he-uniform\" | \"zeros\"",
    ),
    key("learn.local_steps", "τ, local steps in a round", "≥ 1"),
    key(
        "learn.local_steps_min",
        "the fewest local steps of a device: each has its own number up to learn.local_steps, drawn once",
        "1 ..= learn.local_steps; if left out: all devices take learn.local_steps",
    ),
    key("learn.batch", "samples in a mini-batch", "≥ 1, or \"full\" for all samples of the device"),
    key("learn.optimizer", "the local optimizer", A_PART),
    key("learn.rate", "η, the local learning rate", "> 0; if left out: sgd 0.1, adam 1e-3, adagrad 0.2"),
    key(
        "learn.rate_schedule",
        "how the local rate changes over the rounds",
        "\"constant\" | \"step(rounds, factor)\" | \"inverse(rounds)\" | \"cosine\" | \"warmup(rounds)\", \
         which may stand before another",
    ),
    key(
        "learn.weight_decay",
        "λ, decoupled weight decay: θ is multiplied by 1 − ηλ before each local step",
        "≥ 0 and < 1/η",
    ),
    key(
        "learn.gradient_clip",
        "G, the norm to which the gradient of each local step is clipped",
        "≥ 0 (0: not clipped)",
    ),
    key("learn.state", "the local optimizer's state from round to round", "\"keep\" | \"reset\""),
    key("learn.correction", "what is added to local gradients against devices that drift apart", A_PART),
    key("learn.aggregate", "how the updates of a round become one step", A_PART),
    key("learn.server_optimizer", "what the server does with that step", A_PART),
    key("learn.server_rate", "c, the server's rate", "> 0"),
    key(
        "learn.server_rate_schedule",
        "how the server's rate changes over the rounds",
        "as learn.rate_schedule",
    ),
    key("radio.fading", "the fading law", A_PART),
    key("radio.antennas", "receive antennas of the server; gains add up", "1 ..= 1024"),
    key(
        "radio.correlation",
        "ρ, correlation of the fading amplitude from one round to the next (Gauss–Markov); 0: independent",
        "> -1 and < 1",
    ),
    key(
        "radio.speed_kmh",
        "speed of the devices: fading in time by Clarke's model; needs radio.carrier_hz and radio.period_s",
        "≥ 0 (0: independent rounds)",
    ),
    key("radio.period_s", "seconds from one round to the next, as the fading counts them", "> 0"),
    key(
        "radio.profile",
        "delay profile of the channel, which makes resource blocks fade apart",
        "\"flat\" | \"tdl-a30\" | \"tdl-b100\" | \"tdl-c300\" | \"exponential\"",
    ),
    key("radio.delay_spread_s", "rms delay spread of radio.profile = \"exponential\"", "> 0"),
    file_key(
        "radio.mean_gains",
        "file of the mean power gain of each device, M numbers ≥ 0 separated by white space or commas; \
         fading multiplies them",
        "a path; \"\": 1 for all",
    ),
    key(
        "radio.snr_db",
        "mean SNR of a device while it sends, dB, the same for every K; a list makes as many groups of \
         devices",
        "a number, or a list such as [20, 0]; if left out: by radio.power and radio.noise",
    ),
    key(
        "radio.group_sizes",
        "how many devices each group of radio.snr_db has, from device 0 on",
        "a list that adds up to data.devices; if left out: groups of one size",
    ),
    key(
        "radio.csi_error",
        "ε, error of the channel estimates as a share of the fading's power: h = ĥ + e, e ~ CN(0, ε)",
        "≥ 0 and < 1",
    ),
    key("radio.csi_delay_s", "age of the channel estimates; needs radio.speed_kmh", "≥ 0"),
    key(
        "radio.backoff_db",
        "how far below the estimated SNR a rate is chosen, dB, so that an estimate that is too good still \
         holds",
        "≥ 0",
    ),
    key(
        "radio.mode",
        "what is fixed: the symbols of a round, and bits vary; or the bits of an upload, and time varies",
        "\"airtime\" | \"payload\"",
    ),
    key("radio.payload_bits", "bits of an upload if radio.mode = \"payload\"", "> 0; if left out: 32·d"),
    key("radio.symbols", "n, channel symbols in a round, shared by the scheduled devices", "≥ 1"),
    key(
        "radio.power",
        "P̄, average transmit power of a device. By radio.power_policy = \"fair-share\" a scheduled one \
         sends with M·P̄/K, so its SNR depends on K; radio.snr_db sets the SNR for every K",
        "> 0",
    ),
    key(
        "radio.power_max",
        "the largest transmit power, in the unit of radio.power",
        "> 0; if left out: no limit",
    ),
    key("radio.noise", "σ², noise variance", "> 0"),
    key(
        "radio.bandwidth_hz",
        "W, bandwidth: makes the radio physical (watts, seconds, joules), with n = W·uplink_s·(1 − overhead)",
        "> 0; if left out: a radio without units (radio.symbols, radio.power, radio.noise)",
    ),
    key("radio.uplink_s", "seconds of a round's uplink", "> 0; if left out: 0.005"),
    key("radio.power_dbm", "P̄, average transmit power of a device, dBm", "a number; if left out: 7.8"),
    key("radio.power_max_dbm", "the largest transmit power of a device, dBm", "≥ power_dbm; if left out: 23"),
    key("radio.noise_dbm_hz", "noise density, dBm/Hz", "a number; if left out: -174"),
    key("radio.noise_figure_db", "noise figure of the server, dB", "≥ 0; if left out: 5"),
    key("radio.interference_w", "power of the interference at the server, watts", "≥ 0; if left out: 0"),
    key("radio.overhead", "share of the symbols that pilots and control take", "≥ 0 and < 1; if left out: 0"),
    key("radio.carrier_hz", "carrier frequency", "> 0; if left out: 2e9"),
    key("radio.gain_tx_dbi", "antenna gain of a device, dBi", "a number; if left out: 0"),
    key("radio.gain_rx_dbi", "antenna gain of the server, dBi", "a number; if left out: 0"),
    key("radio.power_policy", "what a scheduled device sends with", A_PART),
    key("radio.rate", "bits that a number of symbols carry at an SNR", A_PART),
    key("radio.attempts", "how often an upload is sent until it arrives, within its symbols", "1 ..= 100"),
    key(
        "radio.combining",
        "what becomes of transmissions that were not decoded, where radio.attempts is above 1",
        "\"none\" | \"chase\" (SNRs add up) | \"incremental-redundancy\" (bits add up)",
    ),
    key(
        "radio.loss_threshold_db",
        "waterfall threshold m: an upload is lost with probability 1 − exp(−m·σ²/(P·β)), whatever its rate",
        "a number; if left out: no such loss",
    ),
    key(
        "radio.report_floor",
        "capacity below which a device does not report and cannot be scheduled, bits a symbol",
        "> 0; if left out: 0.1",
    ),
    key("radio.access", "how the scheduled devices share the band", A_PART),
    key("radio.slots", "whether shares of symbols are real or whole numbers", "\"real\" | \"whole\""),
    key(
        "radio.wire",
        "whether scheduled devices encode their updates to bytes and the server decodes them; the result is \
         the same",
        "false | true",
    ),
    key("cell.layout", "where the devices are, the server being at the origin", A_PART),
    key("cell.radius_m", "radius of the cell (half the side of a square), m", "> 0; if left out: 500"),
    key(
        "cell.min_m",
        "smallest distance of a device to the server, m",
        "≥ 0; if left out: that of the path loss law (35 for 3gpp-macro, 10 for 3gpp-pico, umi and uma, else \
         1), at most half the radius",
    ),
    key("cell.pathloss", "the law of path loss", A_PART),
    key("cell.height_bs_m", "height of the server's antenna, m", "> 0; if left out: that of the law"),
    key("cell.height_ut_m", "height of a device, m", "> 0; if left out: 1.5"),
    key(
        "cell.los",
        "which devices are in line of sight, for laws that ask",
        "\"drawn\" (by distance; if left out) | \"always\" | \"never\"",
    ),
    key("cell.extrapolate", "whether a law of path loss may be used outside of its domain", "false | true"),
    key("cell.shadowing_db", "standard deviation of the shadowing, dB; its mean is 0 dB, not 1", "≥ 0"),
    key(
        "cell.correlation_m",
        "distance at which shadowing is correlated by 1/e; 0: independent over devices",
        "≥ 0",
    ),
    key("cell.drift", "whether devices move, each in its direction with radio.speed_kmh", "false | true"),
    key("clock.compute", "how long local training takes", A_PART),
    key("clock.spread", "how training times differ between devices", A_PART),
    key("clock.jitter", "how training times differ from round to round", A_PART),
    key("clock.downlink", "how the model reaches the devices", A_PART),
    key(
        "clock.report_bits",
        "bits of each number that a candidate reports before selection",
        "≥ 0 (0: free)",
    ),
    key(
        "clock.report_efficiency",
        "bits a symbol of the channel that carries reports, one after another",
        "> 0; if left out: 0.1523",
    ),
    key(
        "clock.deadline_s",
        "seconds after which a round ends: who cannot have sent by then has trained for nothing",
        "> 0; if left out: none",
    ),
    key(
        "clock.pipeline",
        "whether devices send as soon as they have trained; for policies that ask no report, with TDMA",
        "false | true",
    ),
    key("energy.compute_w", "watts of a device while it trains", "≥ 0; if left out: 0.8"),
    key("energy.kappa", "κ of clock.compute = \"cycles\": joules are κ·cycles·f²", "≥ 0; if left out: 1e-28"),
    key("energy.circuit_w", "watts of a device's circuits while it sends, besides what it radiates", "≥ 0"),
    key("energy.pa_efficiency", "share of the power amplifier's input that is radiated", "> 0 and ≤ 1"),
    key("energy.receive_w", "watts of a device while it receives the model", "≥ 0"),
    key("energy.idle_w", "watts of a device while it waits", "≥ 0"),
    key(
        "energy.battery_j",
        "joules in a device's battery; a device that cannot pay a round is left out",
        "≥ 0 (0: no end)",
    ),
    key("schedule.policy", "who sends", A_PART),
    key("schedule.k", "K, the largest number of devices scheduled in a round", "1 ..= data.devices"),
    key(
        "schedule.decay",
        "β, by which K falls: in round t (from 0) at most K_t = max(K_min, ⌈K·e^(−β·t)⌉) are scheduled, \
         by any policy, with the power of a run with K_t",
        "≥ 0 (0: K stays)",
    ),
    key("schedule.k_min", "K_min, below which schedule.decay does not take K", "1 ..= schedule.k"),
    key(
        "schedule.report_bits",
        "bits of each number that a candidate reports before selection, sent over its own link in symbols of \
         the round",
        "0 (free) | 8 (logarithmic, steps of 9 %) | 16 (half precision) | 32",
    ),
    key("compress.scheme", "how an update is compressed", A_PART),
    key("compress.feedback", "what a device keeps of an update that was not sent in full", A_PART),
    key(
        "compress.budget",
        "what must fit into a device's bits: the scheme's count, or the encoded payload, to the bit",
        "\"formula\" | \"wire\" (the highest level not above the formula's whose payload fits)",
    ),
    key(
        "compress.level",
        "which of the levels that fit is sent; only where all kept entries have one value (d-sgd, stc)",
        "\"largest\" | \"best\" (the most energy: entries below about half of the mean are left out)",
    ),
    key("adversary.share", "share of the devices that are adversarial, the same in every round", "0 ..= 1"),
    key(
        "adversary.kind",
        "what an adversarial device does; garbage, stolen and replay act on bytes and need radio.wire = true",
        A_PART,
    ),
    key(
        "defense.audit",
        "whether uploads that contradict the device's report are dropped, and devices excluded that do it \
         again",
        "false | true",
    ),
    key("defense.strikes", "uploads that the audit drops until it excludes the device", "≥ 1"),
    key(
        "defense.clip",
        "the norm to which updates are clipped",
        "\"off\" | a norm > 0 | \"median\" (of the latest 101 that arrived)",
    ),
    key(
        "defense.participation_cap",
        "whether no device is scheduled in more than its share K/M of the rounds, so that none spends more \
         than P̄",
        "false | true",
    ),
    key("defense.cap_slack", "transmissions that a device may be ahead of that share before the end", "≥ 1"),
    key(
        "privacy.noise",
        "z: noise of deviation z·S is added to every entry of the sum of the updates, S being \
         defense.clip; 0: none",
        "≥ 0",
    ),
    key("privacy.delta", "δ, at which ε is given", "> 0 and < 1"),
    key("privacy.at", "where noise is added", "\"server\""),
    key("run.rounds", "T, rounds to run", "≥ 1"),
    key("run.evaluate_every", "rounds between evaluations; the last round is always evaluated", "≥ 1"),
    key("run.seed", "the first seed", "≥ 0"),
    key("run.seeds", "how many seeds, counted up from run.seed", "≥ 1"),
    key(
        "run.target",
        "the test accuracy that tables and claims count rounds and bits to; it changes no run",
        "> 0 and < 1",
    ),
    key(
        "run.fairness",
        "whether evaluations record the accuracy of each class, of the worst class and of the worst tenth \
         of the devices, and how evenly devices are scheduled",
        "false | true",
    ),
];

/// Keys of version 0.1 and what they are called now.
pub(super) const RENAMED: &[(&str, &str)] = &[
    ("data.classes_per_device", "data.classes.per_device"),
    ("data.alpha", "data.dirichlet.alpha"),
    ("data.sizes", "data.dirichlet.sizes"),
    ("data.shards_per_device", "data.shards.per_device"),
    ("data.size_spread", "data.quantity.spread"),
    ("data.sharing", "data.iid.sharing or data.quantity.sharing"),
    ("learn.hidden", "learn.mlp.hidden"),
    ("learn.momentum", "learn.sgd.momentum"),
    ("learn.beta1", "learn.adam.beta1"),
    ("learn.beta2", "learn.adam.beta2"),
    ("learn.epsilon", "learn.adam.epsilon or learn.adagrad.epsilon"),
    ("learn.initial_accumulator", "learn.adagrad.initial_accumulator"),
    ("radio.channel", "radio.fading"),
    ("schedule.kc", "schedule.bc-bn2.kc"),
    ("adversary.report", "adversary.inflated-norm.report"),
    ("adversary.amount", "adversary.inflated-norm.amount or adversary.huge.amount"),
    ("adversary.upload", "adversary.inflated-norm.upload"),
    ("defence.aggregate", "learn.aggregate"),
    ("defence.trim", "learn.trimmed-mean.trim"),
    ("defence.audit", "defense.audit"),
    ("defence.strikes", "defense.strikes"),
    ("defence.clip", "defense.clip"),
    ("defence.participation_cap", "defense.participation_cap"),
    ("defence.cap_slack", "defense.cap_slack"),
    ("defence", "defense"),
];

/// The sections that make a [`Config`], in the order of the file. `custom` names parts that
/// are not this library's.
pub const SECTIONS: [&str; 13] = [
    "data",
    "learn",
    "radio",
    "cell",
    "clock",
    "energy",
    "schedule",
    "compress",
    "adversary",
    "defense",
    "privacy",
    "run",
    "custom",
];

/// Every key that there is, `section.name` and `section.part.name`.
pub fn all_keys() -> &'static [String] {
    static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
        let own = kinds().iter().flat_map(|kind| {
            kind.parts.iter().flat_map(|part| {
                part.keys.iter().map(|key| format!("{}.{}.{}", kind.table, part.name, key.name))
            })
        });
        KEYS.iter().map(|key| key.name.to_owned()).chain(own).collect()
    });
    &ALL
}

/// What a key of the sections takes; for one that chooses among parts, their names.
pub fn allowed(key: &Key) -> String {
    if key.allowed != A_PART {
        return key.allowed.to_owned();
    }
    let kind = kinds().iter().find(|kind| kind.key == key.name);
    let names: Vec<String> =
        kind.into_iter().flat_map(|kind| &kind.parts).map(|part| format!("\"{}\"", part.name)).collect();
    names.join(" | ")
}

/// The error of a key that nobody knows: what it is called now, or what it was most likely meant to be.
pub fn unknown_key(key: &str) -> ConfigError {
    if let Some((_, now)) = RENAMED.iter().find(|(old, _)| *old == key) {
        return ConfigError::new(key, format!("is now called {now}"));
    }
    let known = all_keys();
    let near = nearest(key, known.iter().map(String::as_str)).map(|near| format!("did you mean {near}?"));
    let hint = near.unwrap_or_else(|| {
        let section = key.split('.').next().unwrap_or(key);
        let inside = known.iter().filter_map(|known| known.strip_prefix(section)?.strip_prefix('.'));
        let names: Vec<&str> = inside.collect();
        if names.is_empty() {
            format!("write section.name, the sections being {}", SECTIONS.join(", "))
        } else {
            format!("the keys of {section} are {}", names.join(", "))
        }
    });
    ConfigError::new(key, format!("is not a key; {hint}"))
}

/// The error of a section that nobody knows; `more` are sections that the caller knows besides.
pub fn unknown_section(section: &str, more: &[&str]) -> ConfigError {
    let known = SECTIONS.iter().chain(more).copied();
    let hint = match RENAMED.iter().find(|(old, _)| *old == section) {
        Some((_, now)) => format!("it is now called [{now}]"),
        None => match nearest(section, known.clone()) {
            Some(near) => format!("did you mean [{near}]?"),
            None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
        },
    };
    ConfigError::new(section, format!("is not a section; {hint}"))
}

/// Checks that `name` is one of the parts that `key` chooses among, or a custom one of `config`; other keys
/// take any.
pub fn check_name(key: &str, name: &str, config: &Config) -> Result<(), ConfigError> {
    match kinds().iter().find(|kind| kind.key == key) {
        Some(kind) if !config.custom.contains_key(name) => kind.check_name(name),
        _ => Ok(()),
    }
}

/// The configuration as TOML with a comment on every key: of the parts, those that are chosen.
pub fn commented_toml(config: &Config) -> String {
    let table = config.to_table();
    let kinds = kinds();
    let mut text = String::new();
    for section in SECTIONS {
        let Some(Value::Table(values)) = table.get(section) else { continue };
        if section == "custom" {
            if !values.is_empty() {
                let _ = writeln!(
                    text,
                    "\n# Parts that are not this library's, and where they come from.\n[custom]\n{values}"
                );
            }
            continue;
        }
        let _ = writeln!(text, "{}[{section}]", if text.is_empty() { "" } else { "\n" });
        for key in KEYS {
            let Some((in_section, name)) = key.name.split_once('.') else { continue };
            if in_section == section {
                // A key without a default is shown as it would be set.
                let line = match values.get(name) {
                    Some(value) => format!("{name} = {value}"),
                    None => format!("# {name} = …"),
                };
                let _ = writeln!(text, "# {}: {}\n{line}", key.meaning, allowed(key));
            }
        }
        for kind in kinds.iter().filter(|kind| kind.key.starts_with(&format!("{section}."))) {
            for part in &kind.parts {
                let own = config.own_table(kind.table, part.name);
                write_own(&mut text, &format!("{}.{}", kind.table, part.name), part.keys, own);
            }
        }
        for (path, own) in config.custom_tables(section) {
            write_own(&mut text, path, &[], own);
        }
    }
    text
}

/// A key as TOML writes it: bare if it can be, else in quotes on one line.
///
/// ```
/// use fedlink::config::toml_key;
/// let keys = ["beta", "schedule.k", "a \"b\"\n"];
/// assert_eq!(keys.map(toml_key), ["beta", r#""schedule.k""#, r#""a \"b\"\u000a""#]);
/// ```
pub fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(bare) {
        return key.to_owned();
    }
    let mut text = "\"".to_owned();
    for c in key.chars() {
        let _ = match c {
            '"' | '\\' => write!(text, "\\{c}"),
            c if c.is_control() => write!(text, "\\u{:04x}", u32::from(c)),
            c => write!(text, "{c}"),
        };
    }
    text + "\""
}

/// A part's own table, if there is anything in it.
fn write_own(text: &mut String, path: &str, keys: &[Key], own: &Table) {
    if own.is_empty() {
        return;
    }
    let path: Vec<String> = path.split('.').map(toml_key).collect();
    let _ = writeln!(text, "\n[{}]", path.join("."));
    for (name, value) in own {
        if let Some(key) = keys.iter().find(|key| key.name == name) {
            let _ = writeln!(text, "# {}: {}", key.meaning, key.allowed);
        }
        let _ = writeln!(text, "{} = {value}", toml_key(name));
    }
}

/// The defaults of a part's own keys, as they are where nothing else is set; none if there is no such part.
pub fn own_defaults(kind: &Listing, name: &str) -> Option<Table> {
    kind.defaults(name, &Scope::default())
}
