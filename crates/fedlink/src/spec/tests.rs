//! The rules of a configuration, the errors where one is broken, and its text.

use super::*;
use crate::aggregate::Clip;
use crate::parts::{Kind as _, Parts};
use crate::schedule::Policy;

fn problem(change: impl FnOnce(&mut Config)) -> String {
    let mut config = Config::default();
    change(&mut config);
    config.validate().expect_err("the change breaks a rule").to_string()
}

/// The error if `key` is `value` and, for a key of a part, `choose` chooses that part.
fn problem_of(choose: &str, key: &str, value: impl Into<Value>) -> String {
    let mut config = Config::default();
    if let Some((kind, part)) = choose.split_once('=') {
        config.set(kind.trim(), part.trim()).unwrap();
    }
    config.set(key, value).unwrap();
    config.validate().expect_err("the change breaks a rule").to_string()
}

#[track_caller]
fn assert_starts(problems: impl IntoIterator<Item = (String, &'static str)>) {
    let wrong = problems.into_iter().filter(|(message, start)| !message.starts_with(start));
    let wrong: Vec<String> =
        wrong.map(|(message, start)| format!("{message:?} does not start with {start:?}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The message of a text that is no valid configuration.
fn refused(text: &str) -> String {
    Config::from_toml(text).expect_err("the text is refused").to_string()
}

#[test]
fn the_defaults_are_valid() {
    assert_eq!(Config::default().validate(), Ok(()));
}

#[test]
fn every_broken_rule_names_its_key_and_the_allowed_range() {
    let bc_bn2 = "schedule.policy = bc-bn2";
    assert_starts([
        (problem(|c| c.schedule.k = 41), "schedule.k: is 41, but must be in 1..=40"),
        (problem(|c| c.schedule.k = 0), "schedule.k: is 0, but must be in 1..=40"),
        (problem_of(bc_bn2, "schedule.bc-bn2.kc", 41), "schedule.bc-bn2.kc: is 41, but must be in 1..=40"),
        (
            problem(|c| {
                c.schedule.policy = "bc-bn2".into();
                c.schedule.k = 5;
                c.set("schedule.bc-bn2.kc", 4).unwrap();
            }),
            "schedule.bc-bn2.kc: is 4, but must be in 5..=40",
        ),
        (problem(|c| c.data.samples_per_device = 0), "data.samples_per_device: is 0"),
        (problem(|c| c.data.devices = 0), "data.devices: is 0"),
        (problem(|c| c.radio.noise = -1.0), "radio.noise: is -1, but must be > 0"),
        (problem(|c| c.radio.noise = f64::NAN), "radio.noise: is NaN"),
        (problem(|c| c.radio.power = f64::INFINITY), "radio.power: is inf"),
        (problem(|c| c.radio.symbols = 0), "radio.symbols: is 0"),
        (problem(|c| c.learn.rate = Some(f64::NAN)), "learn.rate: is NaN"),
        (problem(|c| c.learn.server_rate = 0.0), "learn.server_rate: is 0, but must be > 0"),
        (problem(|c| c.learn.local_steps = 0), "learn.local_steps: is 0"),
        (problem_of("", "learn.adam.beta2", 1.0), "learn.adam.beta2: is 1, but must be ≥ 0 and < 1"),
        (problem(|c| c.learn.batch = BatchSize::Count(0)), "learn.batch: is 0"),
        (problem_of("", "learn.mlp.hidden", Vec::<i64>::new()), "learn.mlp.hidden: is empty"),
        (problem_of("", "learn.mlp.hidden", vec![16, 0]), "learn.mlp.hidden: is 0"),
        (problem(|c| c.run.rounds = 0), "run.rounds: is 0"),
        (problem(|c| c.run.evaluate_every = 0), "run.evaluate_every: is 0"),
        (problem(|c| c.run.seeds = 0), "run.seeds: is 0"),
        (problem(|c| c.run.seed = i64::MAX as u64), "run.seed: is 9223372036854775807"),
        (
            problem_of("learn.server_optimizer = momentum", "learn.server.momentum.beta", 1.0),
            "learn.server.momentum.beta: is 1, but must be ≥ 0 and < 1",
        ),
        (
            problem_of("radio.fading = rician", "radio.rician.k_factor", -1.0),
            "radio.rician.k_factor: is -1, but must be in 0..=1e12",
        ),
    ]);
}

#[test]
fn every_broken_rule_of_a_split_names_its_key_and_the_allowed_range() {
    let of = |part: &str, key: &str, value: f64| {
        problem_of(&format!("data.partition = {part}"), &format!("data.{part}.{key}"), value)
    };
    assert_starts([
        (of("classes", "per_device", 0.0), "data.classes.per_device: is 0, but must be in 1..=256"),
        (of("dirichlet", "alpha", 0.0), "data.dirichlet.alpha: is 0, but must be in 1e-9..=1e9"),
        (of("dirichlet", "alpha", -1.0), "data.dirichlet.alpha: is -1"),
        (of("dirichlet", "alpha", f64::NAN), "data.dirichlet.alpha: is NaN"),
        (of("dirichlet", "alpha", f64::INFINITY), "data.dirichlet.alpha: is inf"),
        (of("shards", "per_device", 0.0), "data.shards.per_device: is 0, but must be ≥ 1"),
        (of("quantity", "spread", -0.1), "data.quantity.spread: is -0.1, but must be in 0..=5"),
        (of("quantity", "spread", f64::NAN), "data.quantity.spread: is NaN"),
    ]);
}

#[test]
fn every_broken_rule_of_attack_and_defense_names_its_key_and_the_remedy() {
    let huge = "adversary.kind = huge";
    assert_starts([
        (problem(|c| c.adversary.share = 1.1), "adversary.share: is 1.1, but must be in 0..=1"),
        (problem(|c| c.adversary.share = f64::NAN), "adversary.share: is NaN"),
        (
            problem_of("", "adversary.inflated-norm.amount", 0.0),
            "adversary.inflated-norm.amount: is 0, but must be > 0",
        ),
        (problem_of(huge, "adversary.huge.amount", 0.0), "adversary.huge.amount: is 0, but must be > 0"),
        (problem_of(huge, "adversary.huge.amount", 1e39), "adversary.huge.amount: is inf"),
        (problem(|c| c.defense.strikes = 0), "defense.strikes: is 0, but must be ≥ 1"),
        (problem(|c| c.defense.clip = Clip::Norm(0.0)), "defense.clip: is 0, but must be a finite number"),
        (problem(|c| c.defense.clip = Clip::Norm(f64::NAN)), "defense.clip: is NaN"),
        (
            problem_of("learn.aggregate = trimmed-mean", "learn.trimmed-mean.trim", 0.5),
            "learn.trimmed-mean.trim: is 0.5, but must be ≥ 0 and < 0.5",
        ),
        (problem(|c| c.defense.cap_slack = 0), "defense.cap_slack: is 0, but must be ≥ 1"),
    ]);
    for kind in ["garbage", "stolen", "replay"] {
        let message = problem(|c| (c.adversary.share, c.adversary.kind) = (0.1, kind.into()));
        assert!(message.ends_with("but none are sent; write radio.wire = true"), "{message}");
    }
    let mut config = Config::default();
    (config.adversary.share, config.adversary.kind) = (0.1, "not-a-number".into());
    assert_eq!(config.validate(), Ok(()));
}

#[test]
fn hidden_layers_matter_to_the_mlp_only() {
    for model in ["softmax", "cnn"] {
        let mut config = Config::default();
        config.learn.model = model.into();
        config.set("learn.mlp.hidden", Vec::<i64>::new()).unwrap();
        assert_eq!(config.validate(), Ok(()));
    }
}

#[test]
fn a_table_of_a_part_that_is_not_chosen_has_its_names_and_types_checked() {
    let chosen_elsewhere = "[schedule.bc-bn2]\nkc = 7\n";
    assert!(Config::from_toml(chosen_elsewhere).is_ok());
    assert_starts([
        (
            refused("[schedule.bc-bn2]\nkcc = 7"),
            "config, line 2: schedule.bc-bn2.kcc: is not a key; did you mean schedule.bc-bn2.kc?",
        ),
        (
            refused("[schedule.bc-bn2]\nkc = \"seven\""),
            "config, line 2: schedule.bc-bn2.kc: is \"seven\", but must be a whole number",
        ),
        (
            refused("[schedule.random]\nk = 7"),
            "config, line 2: schedule.random.k: is not a key; \"random\" has no",
        ),
    ]);
}

#[test]
fn the_list_of_keys_is_the_configuration_s_own() {
    let table = Config::default().resolved().to_table();
    let mut own: Vec<String> = Vec::new();
    for (section, keys) in &table {
        let plain = keys.as_table().unwrap().iter().filter(|(_, value)| !value.is_table());
        own.extend(plain.map(|(name, _)| format!("{section}.{name}")));
    }
    let mut listed: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    own.sort();
    listed.sort_unstable();
    assert!(own.iter().all(|key| listed.contains(&key.as_str())), "{own:?}");
    // A listed key without a default is a key too: some kind of value can be set.
    for key in listed.iter().filter(|key| !own.iter().any(|known| known == *key)) {
        let list = Value::Array(vec![Value::Integer(1)]);
        let values = [
            Value::Float(1.0),
            list.clone(),
            Value::Array(vec![list]),
            Value::Array(vec![Value::String("near".into())]),
            Value::String("never".into()),
        ];
        let set = |value: Value| Config::default().set(key, value).is_ok();
        assert!(values.into_iter().any(set), "{key} takes no value");
    }
    let sections = KEYS.iter().map(|key| key.name.split_once('.').unwrap().0);
    assert!(sections.clone().all(|section| SECTIONS.contains(&section)));
    assert!(
        SECTIONS
            .iter()
            .all(|section| *section == "custom" || sections.clone().any(|other| other == *section))
    );
}

#[test]
fn every_key_has_a_meaning_and_its_values() {
    for key in KEYS {
        assert!(!key.meaning.is_empty() && !allowed(key).is_empty(), "{}", key.name);
    }
    let policy = KEYS.iter().find(|key| key.name == "schedule.policy").unwrap();
    assert!(allowed(policy).starts_with("\"bc\" | \"bn2\" | "), "{}", allowed(policy));
}

#[test]
fn the_commented_text_reads_back_as_the_same_configuration() {
    let mut config = Config::default();
    config.schedule.k = 7;
    config.learn.batch = BatchSize::Full;
    config.set("learn.mlp.hidden", vec![32, 16]).unwrap();
    config.set("learn.server.momentum.beta", 0.5).unwrap();
    config.set("schedule.bc-bn2.kc", 12).unwrap();
    assert_eq!(Config::from_toml(&commented_toml(&config)).unwrap(), config);
    let resolved = config.resolved();
    assert_eq!(Config::from_toml(&commented_toml(&resolved)).unwrap(), resolved);
    assert_eq!(resolved.resolved(), resolved, "there is nothing left to resolve");
    for kind in kinds() {
        for part in &kind.parts {
            let config = example::with_part(kind.key, part.name);
            let resolved = config.resolved();
            let text = commented_toml(&resolved);
            assert_eq!(Config::from_toml(&text).unwrap(), resolved, "{}", part.name);
            for key in part.keys {
                let comment = format!("# {}: {}", key.meaning, key.allowed);
                assert!(text.contains(&comment), "{} is not explained in\n{text}", key.name);
            }
        }
    }
}

#[test]
fn a_misspelled_key_finds_its_neighbor() {
    let names = || KEYS.iter().map(|key| key.name);
    assert_eq!(nearest("schedule.polcy", names()), Some("schedule.policy"));
    assert_eq!(nearest("run.policy", names()), Some("schedule.policy"));
    assert_eq!(nearest("learn.lr", names()), None);
    assert_eq!(nearest("schedule.kk", names()), Some("schedule.k"));
    assert_eq!(nearest("radio.symbol", names()), Some("radio.symbols"));
}

#[test]
fn a_mistake_in_a_file_is_reported_with_its_line_and_the_remedy() {
    assert_starts([
        (refused("k = 5"), "config, line 1: k: is not a key; did you mean schedule.k?"),
        (refused("[shedule]\nk = 5"), "config, line 1: shedule: is not a section; did you mean [schedule]?"),
        (refused("[schedule]\nK = 5"), "config, line 2: schedule.K: is not a key; did you mean schedule.k?"),
        (
            refused("[schedule]\npolicy = \"BC\""),
            "config, line 2: schedule.policy: is \"BC\", which is not one of the policies; \
             did you mean \"bc\"?",
        ),
        (
            refused("[defence]\naudit = true"),
            "config, line 1: defence: is not a section; it is now called [defense]",
        ),
        (
            refused("[adversray]\nshare = 0.1"),
            "config, line 1: adversray: is not a section; did you mean [adversary]?",
        ),
        (
            refused("\n\n[schedule]\nk = 50"),
            "config, line 4: schedule.k: is 50, but must be in 1..=40 (data.devices",
        ),
        (
            refused("[schedule]\nk = \"five\""),
            "config, line 2: schedule.k: is \"five\", but must be a whole number",
        ),
        (
            refused("schedule = 5"),
            "config, line 1: schedule: is a section: write [schedule] and its keys below",
        ),
        (
            refused("[schedule.bc-bm2]\nkc = 5"),
            "config, line 1: schedule.bc-bm2: is not a part; did you mean [sch",
        ),
        (
            refused("[defense.median]"),
            "config, line 1: defense.median: is not a part; [defense] has no tables",
        ),
        (
            refused("[learn.server.momentun]\nbeta = 0.5"),
            "config, line 1: learn.server.momentun: is not a part; did you mean [learn.server.momentum]?",
        ),
        (
            refused("[learn.server]\nbeta = 0.5"),
            "config, line 2: learn.server.beta: is not a key; did you mean learn.server.momentum.beta?",
        ),
        (refused("[radio]\nsymbols = 1e-3"), "config, line 2: radio.symbols: invalid value"),
        (refused("[learn]\nbatch = \"half\""), "config, line 2: learn.batch: invalid value"),
        (refused("[defense]\nclip = \"on\""), "config, line 2: defense.clip: invalid value"),
    ]);
    let message = refused("[schedule]\nk = five");
    assert!(message.contains("line 2") && message.ends_with("write text in quotes: \"five\""), "{message}");
}

#[test]
fn setting_a_key_that_does_not_exist_names_which_one_was_meant() {
    let set = |key: &str, value: Value| Config::default().set(key, value).unwrap_err().to_string();
    assert_starts([
        (set("k", 5.into()), "k: is not a key; did you mean schedule.k?"),
        (set("shedule.k", 5.into()), "shedule.k: is not a key; did you mean schedule.k?"),
        (set("schedule.K", 5.into()), "schedule.K: is not a key; did you mean schedule.k?"),
        (set("schedule.k", "five".into()), "schedule.k: is \"five\", but must be a whole number"),
        (set("schedule.k.max", 5.into()), "schedule.k.max: schedule.k: is not a part"),
        (set("schedule.kc", 5.into()), "schedule.kc: is now called schedule.bc-bn2.kc"),
        (
            refused("[learn]\nserver_optimizer = \"add\""),
            "config, line 2: learn.server_optimizer: is \"add\", which is now called \"sgd\"",
        ),
        (set("learn.lr", 0.1.into()), "learn.lr: is not a key; the keys of learn are"),
        (set("lr", 0.1.into()), "lr: is not a key; write section.name, the sections being data, learn"),
    ]);
    let mut config = Config::default();
    config.set("schedule.policy", "BC").unwrap();
    let message = config.validate().unwrap_err().to_string();
    assert!(message.ends_with("did you mean \"bc\"?"), "{message}");
}

#[test]
fn every_key_of_version_0_1_is_refused_with_its_new_name() {
    for (old, new) in keys::RENAMED {
        let refused = Config::default().set(old, 1).unwrap_err().to_string();
        assert_eq!(refused, format!("{old}: is now called {new}"));
        // The new names exist.
        for new in new.split(" or ").filter(|new| new.contains('.')) {
            assert!(all_keys().iter().any(|key| key == new), "{old} is called {new}, which is no key");
        }
        assert!(!all_keys().iter().any(|key| key == old), "{old} is a key");
    }
}

#[test]
fn whole_numbers_may_be_written_as_floats_and_powers_of_ten() {
    let config =
        Config::from_toml("[radio]\nsymbols = 1e5\n[run]\nrounds = 20.0\n[learn]\nbatch = 1e1").unwrap();
    assert_eq!((config.radio.symbols, config.run.rounds), (100_000, 20));
    assert_eq!(config.learn.batch, BatchSize::Count(10));
    for text in ["[run]\nrounds = 2.5", "[run]\nrounds = -1", "[run]\nrounds = 1e300"] {
        assert!(refused(text).contains("a whole number of at least 0"), "{}", refused(text));
    }
}

#[test]
fn custom_parts_are_taken_on_trust_and_kept_with_their_tables() {
    let text =
        "[schedule]\npolicy = \"mine\"\n[schedule.mine]\nwindow = 3\n[custom]\nmine = \"my_policy.py\"\n";
    let config = Config::from_toml(text).unwrap();
    assert_eq!(config.custom["mine"], "my_policy.py");
    assert_eq!(config.own_table("schedule", "mine")["window"].as_integer(), Some(3));
    for text in [commented_toml(&config), config.to_table().to_string()] {
        assert_eq!(Config::from_toml(&text).unwrap(), config, "{text}");
    }
    // Without the section it is an unknown part.
    let message = refused("[schedule]\npolicy = \"mine\"");
    assert!(message.contains("is \"mine\", which is not one of the policies"), "{message}");
    // The part was not given to this run.
    let spec = config.resolve(&Parts::default()).unwrap();
    let message = spec.parts().policy.build(&spec.scope(), &()).map(|_| ()).unwrap_err().to_string();
    let expected =
        "schedule.policy: is \"mine\", a custom part (my_policy.py) that was not given to this run";
    assert_eq!(message, expected);
}

#[test]
fn a_part_that_is_chosen_writes_its_defaults_out_and_others_disappear_when_resolved() {
    let mut config = Config::default();
    config.set("learn.sgd.momentum", 0.5).unwrap();
    let resolved = config.resolved();
    assert_eq!(resolved.learn.rate, Some(1e-3));
    assert_eq!(resolved.own_table("learn", "mlp")["hidden"].as_array().map(Vec::len), Some(1));
    assert!(resolved.own_table("learn", "sgd").is_empty(), "it is not chosen");
    config.learn.optimizer = "sgd".into();
    assert_eq!(config.resolved().own_table("learn", "sgd")["momentum"].as_float(), Some(0.5));
    assert_eq!(config.resolve(&Parts::default()).unwrap().rate(), 0.1);
}

#[test]
fn every_broken_rule_of_the_radio_names_its_key_and_the_remedy() {
    let units = "[radio]\nbandwidth_hz = 1e6\n";
    let cases = [
        ("[radio]\nfading = \"nakagami\"\n[radio.nakagami]\nshape = 0.4", "radio.nakagami.shape: is 0.4"),
        ("[radio]\nantennas = 0", "radio.antennas: is 0, but must be in 1..=1024"),
        ("[radio]\nantennas = 1025", "radio.antennas: is 1025"),
        ("[radio]\ncorrelation = 1.0", "radio.correlation: is 1, but must be > -1 and < 1"),
        (
            "[radio]\ncorrelation = 0.5\nspeed_kmh = 3.0\ncarrier_hz = 2e9\nperiod_s = 0.1",
            "radio.correlation: and radio.speed_kmh both set how fading goes on",
        ),
        (
            "[radio]\nfading = \"trace\"\ncorrelation = 0.5",
            "radio.correlation: has no effect on radio.fading = \"trace\", whose gains come with their \
             antennas",
        ),
        ("[radio]\nspeed_kmh = -1.0", "radio.speed_kmh: is -1"),
        ("[radio]\nspeed_kmh = 3.0\nperiod_s = 1.0", "radio.speed_kmh: is 3, which needs radio.carrier_hz"),
        ("[radio]\nspeed_kmh = 3.0\ncarrier_hz = 2e9", "radio.speed_kmh: is 3, which needs radio.period_s"),
        ("[radio]\nbandwidth_hz = 0.0", "radio.bandwidth_hz: is 0, but must be > 0"),
        ("[radio]\nbandwidth_hz = 1e6\nsymbols = 100", "radio.symbols: belongs to the radio without units"),
        ("[radio]\nbandwidth_hz = 1e6\npower = 2.0", "radio.power: belongs to the radio without units"),
        ("[radio]\nbandwidth_hz = 1e6\nnoise = 2.0", "radio.noise: belongs to the radio without units"),
        (
            "[radio]\nbandwidth_hz = 10.0\nuplink_s = 0.01",
            "radio.uplink_s: gives n = bandwidth_hz·uplink_s·(1 − overhead) = 0.1 symbols",
        ),
        (
            "[radio]\nbandwidth_hz = 1e6\npower_dbm = 25.0\npower_max_dbm = 20.0",
            "radio.power_dbm: is 25, above radio.power_max_dbm, which is 20",
        ),
        (
            "[radio]\nbandwidth_hz = 1e6\npower_dbm = 30.0",
            "radio.power_dbm: is 30, above radio.power_max_dbm, which is 23 if it is left out",
        ),
        (
            "[radio]\nbandwidth_hz = 1e6\npower_max_dbm = 5.0",
            "radio.power_max_dbm: is 5, below radio.power_dbm, which is 7.8 if it is left out",
        ),
        ("[radio]\npower = 2.0\npower_max = 1.5", "radio.power_max: is 1.5, below radio.power, which is 2"),
        ("[radio]\npower_dbm = 20.0", "radio.power_dbm: has no effect here: it is in physical units"),
        ("[radio]\ncsi_error = 1.0", "radio.csi_error: is 1, but must be ≥ 0 and < 1"),
        (
            "[radio]\nbackoff_db = 3.0",
            "radio.backoff_db: has no effect here: it is for estimates with an error",
        ),
        (
            "[radio]\nrate = \"finite-blocklength\"\n[radio.finite-blocklength]\nerror = 0.6",
            "radio.finite-blocklength.error: is 0.6",
        ),
        ("[radio]\nrate = \"mcs\"\n[radio.mcs]\nthresholds_db = [1.0, 0.0]", "radio.mcs.thresholds_db: "),
        ("[radio]\nattempts = 3", "radio.attempts: has no effect here: it repeats lost uploads"),
        ("[radio]\naccess = \"ofdma\"", "radio.access: is \"ofdma\", whose resource blocks have a width"),
        (
            "[schedule]\nk = 8\n[radio]\naccess = \"ofdma\"\n\
             bandwidth_hz = 1e6\n[radio.ofdma]\nresource_blocks = 5",
            "radio.ofdma.resource_blocks: is 5",
        ),
        (
            "[radio]\nprofile = \"tdl-a30\"",
            "radio.profile: has no effect here: it is for radio.access = \"ofdma\"",
        ),
        ("[radio]\nmode = \"payload\"", "radio.mode: is \"payload\", whose result is a time"),
        ("[radio]\nsnr_db = [20.0, 0.0]\npower = 2.0", "radio.power: and radio.snr_db both set the SNR"),
        (
            "[radio]\nsnr_db = [20.0, 0.0]\ngroup_sizes = [10, 20]",
            "radio.group_sizes: is [10, 20], but must add up to data.devices, which is 40",
        ),
        ("[radio]\ngroup_sizes = [10, 30]", "radio.group_sizes: has no effect here: it needs a list"),
        (
            "[cell]\npathloss = \"uma\"\nlayout = \"disc\"",
            "cell.pathloss: has no effect here: it is in physical",
        ),
        ("[energy]\nbattery_j = -1.0", "energy.battery_j: is -1"),
        ("[energy]\nidle_w = 0.1", "energy.idle_w: has no effect here: it is in physical units"),
        ("[clock]\ncompute = \"flops\"", "clock.compute: has no effect here: it is in physical units"),
    ];
    assert_starts(cases.map(|(text, start)| (without_line(&refused(text)), start)));
    let with_units = [
        (
            "[cell]\nlayout = \"disc\"",
            "cell.layout: has no effect here: it needs path loss; set cell.pathloss",
        ),
        ("[cell]\npathloss = \"uma\"", "cell.pathloss: is \"uma\", which needs distances: set cell.layout"),
        (
            "[cell]\npathloss = \"uma\"\nlayout = \"disc\"\nradius_m = 50.0\nmin_m = 60.0",
            "cell.min_m: is 60, but must be below cell.radius_m, which is 50",
        ),
        (
            "[cell]\npathloss = \"3gpp-macro\"\nlayout = \"disc\"\nheight_bs_m = 30.0",
            "cell.height_bs_m: has no effect here: it is for laws by distance in space: cell.pathloss",
        ),
        (
            "[clock]\nspread = \"uniform\"",
            "clock.spread: has no effect here: it needs training that takes time; set clock.compute",
        ),
        ("[clock]\ncompute = \"flops\"\n[clock.flops]\nper_s = 0.0", "clock.flops.per_s: is 0"),
        ("[clock]\ndeadline_s = 0.004", "clock.deadline_s: is 0.004, but the uplink alone takes 0.005 s"),
        ("[energy]\nkappa = 1e-28", "energy.kappa: has no effect here: it is for clock.compute = \"cycles\""),
    ];
    assert_starts(with_units.map(|(text, start)| (without_line(&refused(&format!("{units}{text}"))), start)));
}

/// A message without the line of the file that it begins with.
fn without_line(message: &str) -> String {
    let named = message.strip_prefix("config").and_then(|rest| rest.split_once(": "));
    named.map_or(message, |(_, rest)| rest).to_owned()
}

#[test]
fn settings_that_are_allowed_and_seldom_meant_are_named() {
    let cautions =
        |text: &str| Config::from_toml(text).unwrap().resolve(&Parts::default()).unwrap().cautions();
    assert_eq!(cautions(""), [""; 0]);
    let csi = cautions("[radio]\ncsi_error = 0.01");
    assert!(csi[0].contains("about 47 % of the uploads will be lost"), "{csi:?}");
    assert_eq!(cautions("[radio]\ncsi_error = 0.01\nbackoff_db = 1.0"), [""; 0]);
    let old = cautions("[radio]\ncsi_delay_s = 0.01\nspeed_kmh = 3.0\ncarrier_hz = 2e9\nperiod_s = 1.0");
    assert!(old[0].contains("about half of the uploads will be lost"), "{old:?}");
    let blocks = |count: u64| {
        let units = "[radio]\nbandwidth_hz = 20e6\nsnr_db = 5.0\naccess = \"ofdma\"\n";
        cautions(&format!("{units}profile = \"tdl-c300\"\n[radio.ofdma]\nresource_blocks = {count}"))
    };
    assert!(blocks(10)[0].contains("resource blocks of 2000 kHz are not flat over a delay spread of 300 ns"));
    assert_eq!(blocks(100), [""; 0]);
    let payload = cautions("[radio]\nmode = \"payload\"\nbandwidth_hz = 1e6\nsnr_db = 5.0");
    assert!(payload[0].contains("has no finite mean"), "{payload:?}");
    let broadcast = "[radio]\nbandwidth_hz = 1e6\nsnr_db = 5.0\n[clock]\ndownlink = \"broadcast\"\n";
    assert!(cautions(broadcast)[0].contains("means of down_s do not settle"));
    assert_eq!(cautions(&format!("{broadcast}[clock.broadcast]\nquantile = 0.9")), [""; 0]);
    assert_eq!(cautions(&broadcast.replace("1e6", "1e6\nantennas = 2")), [""; 0]);
    let power = cautions("[radio]\nbandwidth_hz = 1e6");
    assert!(power[0].contains("M·P̄/K = 23.8 dBm, but radio.power_max_dbm is 23"), "{power:?}");
    // 7.8 dBm over −174 + 5 + 60 dBm of noise.
    assert!(power[1].contains("the mean SNR at radio.power_dbm is 117 dB, 39 bits per symbol"), "{power:?}");
    assert!(cautions("[radio]\nbandwidth_hz = 1e6\nsnr_db = [20, 90]")[0].contains("radio.snr_db has 90 dB"));
    let cell = |law: &str, more: &str| {
        cautions(&format!(
            "[radio]\nbandwidth_hz = 1e6\npower_policy = \"fixed\"\n[cell]\nlayout = \"disc\"\n\
             pathloss = \"{law}\"\n{more}"
        ))
    };
    assert_eq!(cell("3gpp-macro", ""), [""; 0]);
    assert!(cell("3gpp-macro", "radius_m = 0.5")[0].contains("as near as 0.25 m"));
    assert!(
        cell("umi", "height_bs_m = 60.0")[0]
            .contains("is 60 m, but cell.pathloss = \"umi\" was stated for 10 m")
    );
    assert!(cell("uma", "height_bs_m = 80.0")[0].contains("was stated for 25 m"));
    assert_eq!(cell("3gpp-pico", ""), [""; 0]);
    let vehicles = cautions(
        "[radio]\nbandwidth_hz = 1e6\ncarrier_hz = 5.9e9\npower_policy = \"fixed\"\n[cell]\n\
         layout = \"disc\"\npathloss = \"3gpp-macro\"",
    );
    assert!(vehicles[0].contains("is 5.9 GHz, but cell.pathloss = \"3gpp-macro\" was stated for 2 GHz"));
    let biased = cautions("[schedule]\npolicy = \"optimal\"");
    assert!(biased[0].contains("unbiased schemes are rand-k, ternary"), "{biased:?}");
    for scheme in ["rand-k", "ternary"] {
        let text = format!("[schedule]\npolicy = \"optimal\"\n[compress]\nscheme = \"{scheme}\"");
        assert_eq!(cautions(&text), [""; 0]);
    }
    let unscaled = "[schedule]\npolicy = \"optimal\"\n[compress]\nscheme = \"rand-k\"\n\
                    [compress.rand-k]\nscaled = false";
    assert_eq!(cautions(unscaled).len(), 1);
}

#[test]
fn no_policy_that_picks_by_the_channel_is_cautioned_about_deep_fades() {
    let mut by_channel = Vec::new();
    for entry in <dyn Policy>::entries() {
        let text = "[radio]\nmode = \"payload\"\nbandwidth_hz = 1e6\npower_policy = \"fixed\"";
        let mut config = Config::from_toml(text).unwrap();
        config.schedule.policy = entry.name.into();
        // Policies with slots of a fixed airtime, or that schedule all devices, refuse such a run.
        let Ok(spec) = config.resolve(&Parts::default()) else { continue };
        let cautions = spec.cautions();
        let has_caution = cautions.iter().any(|caution| caution.contains("does not pick by the channel"));
        assert_eq!(has_caution, !spec.facts().policy.selection.by_channel, "{}: {cautions:?}", entry.name);
        by_channel.extend((!has_caution).then_some(entry.name));
    }
    for name in ["bc", "bc-bn2", "proportional-fair", "gradient-channel", "norm-channel"] {
        assert!(by_channel.contains(&name), "{name} is not among {by_channel:?}");
    }
    assert!(!by_channel.contains(&"random"), "{by_channel:?}");
}

#[test]
fn devices_drift_also_under_a_custom_fading_law() {
    let text = "[radio]\nbandwidth_hz = 1e6\nspeed_kmh = 36.0\ncarrier_hz = 2e9\nperiod_s = 1.0\n\
                [cell]\nlayout = \"disc\"\npathloss = \"3gpp-macro\"\ndrift = true";
    let law = || crate::documented::weibull::Weibull { seed: 1, shape: 2.0, antennas: 1 };
    let parts = Parts::default()
        .fading("mine", "a test", move |_, _| Ok(Box::new(law())))
        .add::<crate::documented::weibull::WeibullConfig>("docs/adding-parts.md");
    for name in ["mine", "weibull"] {
        let mut config = Config::from_toml(text).unwrap();
        config.radio.fading = name.into();
        let spec = config.resolve(&parts).unwrap_or_else(|error| panic!("{name}: {error}"));
        crate::system::build::radio(&spec, 1000).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Without it, no device moves.
        config.cell.drift = false;
        let error =
            config.resolve(&parts).and_then(|spec| crate::system::build::radio(&spec, 1000)).map(|_| ());
        assert_eq!(error.unwrap_err().key, "radio.speed_kmh", "{name}");
    }
}

#[test]
fn every_path_in_a_configuration_is_known_to_be_a_file() {
    let of_parts = kinds().iter().flat_map(|kind| kind.parts.iter().flat_map(|part| part.keys));
    let mut files = 0;
    for key in KEYS.iter().chain(of_parts).filter(|key| key.name != "data.dataset") {
        let allowed = key.allowed.replace("path loss", "");
        assert_eq!(allowed.contains("path"), key.is_file, "{}", key.name);
        files += usize::from(key.is_file);
    }
    assert_eq!(files, 5);
}

#[test]
fn a_run_depends_on_the_files_of_the_parts_that_it_chooses() {
    let files = |text: &str| Config::from_toml(text).unwrap().resolve(&Parts::default()).unwrap().files();
    assert!(files("").is_empty());
    assert!(files("[radio.trace]\nfile = \"a.csv\"").is_empty());
    let all = "[radio]\nmean_gains = \"g\"\nfading = \"trace\"\ntrace.file = \"t.npy\"\nbandwidth_hz = 1e6\n\
               [cell]\npathloss = \"3gpp-macro\"\nlayout = \"file\"\nfile.path = \"p.csv\"\n\
               track.path = \"unused.csv\"\n\
               [clock]\ncompute = \"file\"\nfile.path = \"s\"";
    assert_eq!(files(all), ["g", "p.csv", "s", "t.npy"]);
    let moving = "[cell]\npathloss = \"3gpp-macro\"\nlayout = \"track\"\ntrack.path = \"way.csv\"\n\
                  [radio]\nbandwidth_hz = 1e6\nperiod_s = 1.0";
    assert_eq!(files(moving), ["way.csv"]);
}

#[test]
fn a_key_in_another_unit_and_a_value_with_a_unit_are_answered_with_the_number_to_write() {
    let cases = [
        ("[radio]\nuplink_ms = 5", "radio.uplink_ms: is not a key; write radio.uplink_s = 0.005"),
        ("[cell]\nradius_km = 0.5", "cell.radius_km: is not a key; write cell.radius_m = 500"),
        (
            "[radio.rician]\nk_factor_db = 9",
            "radio.rician.k_factor_db: is not a key; write radio.rician.k_factor = 7.943",
        ),
        (
            "[radio]\nbandwidth_hz = \"20MHz\"",
            "radio.bandwidth_hz: is \"20MHz\", but must be a number; write 20e6",
        ),
        ("[learn]\nrate = \"0,001\"", "learn.rate: is \"0,001\", but must be a number; write 0.001"),
        (
            "[radio]\nfading = \"rician\"\nrician.k_factor = \"9 dB\"",
            "radio.rician.k_factor: is \"9 dB\", but must be a number; write 7.943",
        ),
        ("[data]\ndevices = \"forty\"", "data.devices: is \"forty\", but must be a whole number"),
    ];
    for (text, message) in cases {
        assert_eq!(without_line(&refused(text)), message);
    }
    assert_eq!(
        unknown_key("radio.uplink_ms").to_string(),
        "radio.uplink_ms: is not a key; write radio.uplink_s, in s: 1 ms is 0.001 s"
    );
    let error = Config::default().set("radio.bandwidth_mhz", 20).unwrap_err().to_string();
    assert_eq!(error, "radio.bandwidth_mhz: is not a key; write radio.bandwidth_hz = 20e6");
}

/// States of EF21 that do not contract diverge; residuals may. A custom scheme has no declared properties.
#[test]
fn error_feedback_needs_a_scheme_that_does_not_lengthen_an_update() {
    for scheme in ["rand-k", "ternary", "qsgd", "eden"] {
        let with = |feedback: &str| format!("[compress]\nscheme = \"{scheme}\"\nfeedback = \"{feedback}\"");
        let error = refused(&with("ef21"));
        assert!(error.contains(&format!("compress.scheme = \"{scheme}\" may lengthen it")), "{error}");
        let spec = Config::from_toml(&with("scheduled")).unwrap().resolve(&Parts::default()).unwrap();
        assert!(spec.cautions()[0].contains("so that the rest may grow without bound"), "{scheme}");
        assert!(spec.divergence_remedy().contains("choose a projection"), "{scheme}");
    }
    for text in [
        "scheme = \"d-sgd\"",
        "scheme = \"stc\"",
        "scheme = \"sign\"",
        "scheme = \"low-rank\"",
        "scheme = \"rand-k\"\nrand-k.scaled = false",
        "scheme = \"eden\"\neden.scale = \"projection\"",
    ] {
        for feedback in ["ef21", "scheduled"] {
            let text = format!("[compress]\nfeedback = \"{feedback}\"\n{text}");
            let spec = Config::from_toml(&text).unwrap().resolve(&Parts::default()).unwrap();
            assert_eq!(spec.cautions(), [""; 0], "{text}");
            assert_eq!(spec.divergence_remedy(), "lower learn.rate", "{text}");
        }
    }
}
