use super::*;
use crate::presets::preset;
use fedlink::parts::Parts;
use fedlink::spec::Config;

/// The curves and runs.
fn expand(experiment: &Experiment) -> Sweep {
    experiment.clone().expand(&Parts::default()).unwrap()
}

/// The content of `config.toml`.
fn written(experiment: &Experiment) -> String {
    expand(experiment).to_toml().to_owned()
}

fn error(text: &str) -> String {
    let expanded = Experiment::parse("my.toml", text).and_then(|it| it.expand(&Parts::default()));
    expanded.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn the_demo_races_the_four_policies() {
    let curves = expand(&Experiment::preset("demo").unwrap()).curves;
    let labels: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
    assert_eq!(labels, ["bc", "bn2", "bc-bn2", "bn2-c"]);
}

#[test]
fn every_file_of_experiments_and_every_preset_is_valid() {
    let mut read = Vec::new();
    for folder in ["/../../experiments", "/presets"] {
        for entry in std::fs::read_dir(format!("{}{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            // These are about the bound, and have a format of their own.
            if !["fig3", "fig4", "theorem"].contains(&name.as_str()) {
                let text = std::fs::read_to_string(&path).unwrap();
                let text_again = written(&Experiment::parse(&name, &text).unwrap());
                let (again, first) = (Experiment::parse(&name, &text_again), Experiment::parse(&name, &text));
                assert_eq!(expand(&again.unwrap()).runs.len(), expand(&first.unwrap()).runs.len(), "{name}");
                read.push(name);
            }
        }
    }
    assert!(
        ["demo", "fig1", "fig2", "calibration-figure2"].iter().all(|name| read.iter().any(|r| r == name))
    );
}

#[test]
fn setting_a_swept_key_narrows_the_sweep() {
    let mut demo = Experiment::preset("demo").unwrap();
    demo.set("schedule.policy", "bc").unwrap();
    let curves = expand(&demo).curves;
    assert_eq!(curves.len(), 1);
    assert_eq!(curves[0].spec.schedule.policy, "bc");
}

#[test]
fn a_sweep_over_two_keys_makes_every_combination() {
    let text = "[sweep]\n\"schedule.policy\" = [\"bc\", \"bn2\"]\n\"schedule.k\" = [1, 10, 20]\n";
    let curves = expand(&Experiment::parse("x", text).unwrap()).curves;
    let labels: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
    assert_eq!(labels, ["bc k=1", "bc k=10", "bc k=20", "bn2 k=1", "bn2 k=10", "bn2 k=20"]);
    assert_eq!(curves[5].spec.schedule.k, 20);
}

const GRID: &str = "[sweep]\n\"schedule.policy\" = [\"bc\", \"bc-bn2\"]\n\"schedule.k\" = [1, 10]\n";

#[test]
fn excluded_combinations_are_no_curves() {
    let text = format!("{GRID}[[exclude]]\n\"schedule.policy\" = \"bc\"\nschedule.k = 10.0\n");
    let curves = expand(&Experiment::parse("x", &text).unwrap()).curves;
    let labels: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
    assert_eq!(labels, ["bc k=1", "bc-bn2 k=1", "bc-bn2 k=10"]);
    assert!(error(&format!("{GRID}[[exclude]]\nrun.seed = 0\n")).contains("leaves no curve"));
}

#[test]
fn a_rule_with_a_list_matches_any_of_its_values() {
    let grid = GRID.replace("[1, 10]", "[1, 5, 10]");
    let text = format!("{grid}[[exclude]]\n\"schedule.policy\" = \"bc\"\n\"schedule.k\" = [5, 10]\n");
    let experiment = Experiment::parse("x", &text).unwrap();
    let labels = |e: &Experiment| -> Vec<String> { expand(e).curves.into_iter().map(|c| c.label).collect() };
    assert_eq!(labels(&experiment), ["bc k=1", "bc-bn2 k=1", "bc-bn2 k=5", "bc-bn2 k=10"]);
    let again = Experiment::parse("x", &written(&experiment)).unwrap();
    assert_eq!(labels(&again), labels(&experiment));
    let message = error(&format!("{GRID}[[exclude]]\n\"schedule.k\" = [1, \"ten\"]\n"));
    assert!(message.contains("exclude: schedule.k: ") && !message.contains("line"), "{message}");
    let message = error(&format!(
        "{GRID}[[override]]\nwhen = {{ \"schedule.k\" = [1, 10] }}\nset = {{ \"run.seed\" = [1, 2] }}"
    ));
    assert!(message.contains("override: run.seed: "), "{message}");
}

#[test]
fn an_override_holds_for_its_curves_only_and_yields_to_a_setting() {
    let text = format!(
        "{GRID}[[override]]\nwhen = {{ schedule.policy = \"bc-bn2\", schedule.k = 10 }}\n\
         set = {{ schedule.bc-bn2.kc = 33 }}\n"
    );
    let mut experiment = Experiment::parse("x", &text).unwrap();
    // The value that the part derives from its table; BC has none.
    let kc = |e: &Experiment| -> Vec<Option<i64>> {
        let of =
            |curve: &Curve| curve.spec.resolved().own_table("schedule", "bc-bn2").get("kc")?.as_integer();
        expand(e).curves.iter().map(of).collect()
    };
    assert_eq!(kc(&experiment), [None, None, Some(10), Some(33)]);
    let again = Experiment::parse("x", &written(&experiment)).unwrap();
    assert_eq!(kc(&again), [None, None, Some(10), Some(33)]);
    experiment.set("schedule.bc-bn2.kc", "12").unwrap();
    assert_eq!(kc(&experiment), [None, None, Some(12), Some(12)]);
}

#[test]
fn a_rule_that_matches_nothing_is_an_error() {
    let message = error(&format!("{GRID}[[exclude]]\n\"schedule.k\" = 5\n"));
    assert!(message.contains("no curve has schedule.k = 5"), "{message}");
    let message =
        error(&format!("{GRID}[[override]]\nwhen = {{ \"schedule.k\" = 2 }}\nset = {{ \"run.seed\" = 1 }}"));
    assert!(message.contains("no curve has schedule.k = 2"), "{message}");
    let message = error(&format!("{GRID}[[exclude]]\n\"schedule.kk\" = 5\n"));
    assert!(message.contains("did you mean schedule.k?"), "{message}");
    assert!(error(&format!("{GRID}[[exclude]]\n")).contains("without keys"));
    assert!(error(&format!("{GRID}[[override]]\nwhen = {{ \"schedule.k\" = 1 }}\n")).contains("set"));
}

#[test]
fn quick_changes_the_keys_of_its_section() {
    let text = format!("{GRID}[quick]\n\"run.rounds\" = 3\n\"schedule.k\" = 2\n");
    let mut experiment = Experiment::parse("x", &text).unwrap();
    assert!(experiment.has_quick());
    assert_eq!(expand(&experiment).curves[0].spec.run.rounds, 500);
    experiment.expected.push(("bc@k=1".into(), Expected::parse("bc@k=1", 0.9).unwrap()));
    experiment.apply_quick().unwrap();
    assert_eq!(experiment.expected().count(), 0);
    let curves = expand(&experiment).curves;
    assert_eq!((curves.len(), curves[1].spec.run.rounds, curves[1].spec.schedule.k), (2, 3, 2));
    assert!(error("[quick]\n\"run.round\" = 3\n").contains("did you mean run.rounds?"));
    assert!(error("[quick]\n\"run.rounds\" = 0\n").contains("run.rounds: is 0"));
}

#[test]
fn claims_name_existing_curves_and_are_removed_with_them() {
    let text = format!(
        "{GRID}[expected]\n\"bc@k=1\" = 0.9\n[claims]\n\
         \"a \\\"b\\\"\" = \"k=1 final > k=10 final for every policy\"\n\
         c = \"bc@k=1 final > 0.5\"\n"
    );
    let mut experiment = Experiment::parse("x", &text).unwrap();
    assert_eq!((experiment.claims().len(), experiment.expected().count()), (2, 1));
    let again = Experiment::parse("x", &written(&experiment)).unwrap();
    assert_eq!(again.claims(), experiment.claims());
    experiment.set("schedule.k", "1").unwrap();
    assert_eq!(experiment.claims().len(), 0);
    Experiment::parse("x", &written(&experiment)).unwrap();
    let message = error(&format!("{GRID}[claims]\nc = \"bn2@k=1 final > 0.5\"\n"));
    assert!(message.contains("claims.\"c\"") && message.contains("bc"), "{message}");
    assert!(error(&format!("{GRID}[claims]\nc = 1\n")).contains("must be text"));
    let message = error(&format!("{GRID}[claims]\nc = \"bc@k=1 joules-to-0.9 < 5\"\n"));
    assert!(message.contains("claims.\"c\"") && message.contains("set radio.bandwidth_hz"), "{message}");
    assert!(error(&format!("{GRID}[expected]\n\"bc@k=1\" = 91.2\n")).contains("share"));
}

#[test]
fn a_run_is_a_curve_at_a_seed() {
    let text = format!("{GRID}[run]\nseed = 5\nseeds = 3\n");
    let runs = expand(&Experiment::parse("x", &text).unwrap()).runs;
    let pairs: Vec<(usize, u64)> = runs.iter().map(|run| (run.curve, run.spec.run.seed)).collect();
    assert_eq!(pairs[..4], [(0, 5), (0, 6), (0, 7), (1, 5)]);
    assert_eq!(pairs.len(), 12);
}

#[test]
fn values_are_read_as_toml_and_otherwise_as_text() {
    let mut experiment = Experiment::default();
    for (key, value) in [
        ("learn.rate", "1e-2"),
        ("learn.mlp.hidden", "[64, 32]"),
        ("radio.symbols", "1e5"),
        ("learn.batch", "full"),
        ("schedule.policy", "\"bn2\""),
    ] {
        experiment.set(key, value).unwrap();
    }
    let config = experiment.only_spec(&Parts::default()).unwrap();
    assert_eq!(config.rate(), 1e-2);
    assert_eq!(config.own_table("learn", "mlp")["hidden"].to_string(), "[64, 32]");
    assert_eq!(config.radio.symbols, 100_000);
    assert_eq!(config.learn.batch, fedlink::spec::BatchSize::Full);
    assert_eq!(config.schedule.policy, "bn2");
}

#[test]
fn the_written_file_reads_back_as_the_same_curves() {
    let mut demo = Experiment::preset("demo").unwrap();
    demo.set("run.rounds", "7").unwrap();
    let again = Experiment::parse("demo", &written(&demo)).unwrap();
    let configs = |e: &Experiment| -> Vec<Config> {
        expand(e).curves.into_iter().map(|curve| curve.spec.resolved()).collect()
    };
    assert_eq!(configs(&demo), configs(&again));
    demo.set("schedule.policy", "bc-bn2").unwrap();
    let again = Experiment::parse("demo", &written(&demo)).unwrap();
    assert_eq!(configs(&demo), configs(&again));
}

#[test]
fn errors_in_a_file_name_the_line_and_the_likely_key() {
    let message = error("[schedule]\nk = 1\npolcy = \"bc\"\n");
    assert!(message.contains("line 3") && message.contains("did you mean schedule.policy?"), "{message}");
    let message = error("[shedule]\nk = 1\n");
    assert!(message.contains("line 1") && message.contains("did you mean [schedule]?"), "{message}");
    let message = error("[claim]\na = \"b\"\n");
    assert!(message.contains("line 1") && message.contains("did you mean [claims]?"), "{message}");
    assert!(error("[boud]\nk = 1\n").contains("did you mean [bound]?"));
    let twice = error("[sweep]\n\"learn.rate\" = [0.1, 0.10]\n");
    assert!(twice.contains("has 0.1 twice; write every value once"), "{twice}");
    let message = error("[schedule]\nk = \"many\"\n");
    assert!(message.contains("line 2") && message.contains("whole number"), "{message}");
    let message = error("[schedule]\npolicy = \"best\"\n");
    assert!(message.contains("line 2") && message.contains("bn2-c"), "{message}");
    let message = error("[schedule\nk = 1\n");
    assert!(message.contains("line 1"), "{message}");
}

#[test]
fn errors_in_a_sweep_or_a_setting_name_the_key() {
    assert!(error("[sweep]\n\"schedule.kk\" = [1]\n").contains("did you mean schedule.k?"));
    assert!(error("[sweep]\n\"schedule.k\" = []\n").contains("at least one value"));
    assert!(error("[sweep]\n\"schedule.k\" = [1, 99]\n").contains("my.toml, line 2: schedule.k: is 99"));
    assert!(error("[radio]\nnoise = -1\n").contains("my.toml, line 2: radio.noise: is -1"));
    assert!(error("[sweep]\n\"schedule.k\" = [1, \"x\"]\n").contains("schedule.k"));
    let set = |key, value| Experiment::default().set(key, value).unwrap_err().to_string();
    assert!(set("schedule.polcy", "bc").contains("did you mean schedule.policy?"));
    assert!(
        set("schedule.whatever", "1")
            .contains("the keys of schedule are policy, k, decay, k_min, report_bits, bc-bn2.kc")
    );
    assert!(set("whatever", "1").contains("the sections being data, learn, radio"));
    assert!(set("schedule.k", "many").starts_with("schedule.k: "));
    assert!(set("schedule.policy", "best").contains("bn2-c"));
}

fn labels(experiment: &Experiment) -> Vec<String> {
    expand(experiment).curves.into_iter().map(|curve| curve.label).collect()
}

fn custom(names: &[&str]) -> Parts {
    names.iter().fold(Parts::default(), |parts, name| {
        parts.policy(*name, "a test", |_, _| Ok(Box::new(fedlink::schedule::policy::Random {})))
    })
}

#[test]
fn a_list_of_values_for_a_key_that_takes_one_is_swept() {
    let mut demo = Experiment::preset("demo").unwrap();
    demo.set("schedule.policy", "[\"bc\", \"random\"]").unwrap();
    demo.set("schedule.k", "[1, 2]").unwrap();
    assert_eq!(labels(&demo), ["bc k=1", "bc k=2", "random k=1", "random k=2"]);
    // This key takes a list.
    demo.set("learn.mlp.hidden", "[32, 16]").unwrap();
    assert_eq!(labels(&demo).len(), 4);
    assert!(demo.set("schedule.policy", "[\"bc\", \"nobody\"]").is_err());
}

#[test]
fn custom_parts_that_an_experiment_does_not_name_become_further_curves() {
    let parts = custom(&["mine", "yours"]);
    let mut demo = Experiment::parse_with("demo", preset("demo").unwrap().text, &parts).unwrap();
    let before = labels(&demo);
    demo.add_unnamed(&parts).unwrap();
    assert_eq!(labels(&demo), [&before[..], &["mine".to_owned(), "yours".to_owned()]].concat());
    // The written experiment is the same one.
    let again = Experiment::parse("again", &written(&demo)).unwrap();
    assert_eq!(labels(&again), labels(&demo));

    let text = "[sweep]\n\"schedule.policy\" = [\"bc\", \"mine\"]\n";
    let mut named = Experiment::parse_with("x", text, &parts).unwrap();
    named.add_unnamed(&parts).unwrap();
    assert_eq!(labels(&named), ["bc", "mine"]);
}

#[test]
fn a_shortened_experiment_and_its_file_record_the_original_length() {
    let text = format!("{GRID}[run]\nrounds = 500\nseeds = 10\n[claims]\nc = \"bc@k=1 final > 0.5\"\n");
    let whole = Experiment::parse("x", &text).unwrap();
    assert_eq!(expand(&whole).shortened(), None);
    assert!(!written(&whole).contains("[original]"));
    let mut longer = whole.clone();
    longer.set("run.rounds", "600").unwrap();
    assert_eq!(expand(&longer).shortened(), None);
    let mut short = whole.clone();
    short.set("run.rounds", "60").unwrap();
    short.set("run.seeds", "3").unwrap();
    assert_eq!(expand(&short).shortened().unwrap().to_string(), "60 of 500 rounds, 3 of 10 seeds");
    // The folder's config.toml is the experiment that ran, with its origin.
    let again = Experiment::parse("x", &written(&short)).unwrap();
    assert_eq!(expand(&again).shortened(), expand(&short).shortened());
    assert_eq!(expand(&again).curves[0].spec.run.rounds, 60);
    short.set("run.rounds", "500").unwrap();
    short.set("run.seeds", "10").unwrap();
    assert_eq!(expand(&short).shortened(), None);
    assert!(error(&format!("{GRID}[original]\nround = 5\n")).contains("original"));
}

#[test]
fn the_quick_variant_is_shortened_and_keeps_the_published_values() {
    let text = format!("{GRID}[expected]\n\"bc@k=1\" = 0.9\n[quick]\n\"run.rounds\" = 3\n");
    let mut experiment = Experiment::parse("x", &text).unwrap();
    experiment.apply_quick().unwrap();
    assert_eq!(experiment.expected().count(), 1);
    let shortened = expand(&experiment).shortened().unwrap().to_string();
    assert_eq!(shortened, "quick variant, 3 of 500 rounds, 1 of 1 seeds");
    let again = Experiment::parse("x", &written(&experiment)).unwrap();
    assert_eq!(expand(&again).shortened(), expand(&experiment).shortened());
}

#[test]
fn a_file_of_claims_alone_is_judged_by_other_curves() {
    let file = ClaimsFile::parse("c.toml", "[claims]\na = \"bc@k=1 final > bc@k=10 final\"\n").unwrap();
    let mut sweep = expand(&Experiment::parse("x", GRID).unwrap());
    sweep.claim_as(&file).unwrap();
    assert_eq!(sweep.experiment.claims().len(), 1);
    let other = ClaimsFile::parse("c.toml", "[claims]\na = \"bc@k=3 final > 0.5\"\n").unwrap();
    assert!(sweep.claim_as(&other).unwrap_err().to_string().contains("no curve has schedule.k = 3"));
    let nothing = ClaimsFile::parse("c.toml", "[run]\nrounds = 5\n").unwrap_err().to_string();
    assert!(nothing.contains("neither claims nor expected"), "{nothing}");
    assert!(ClaimsFile::parse("c.toml", "claims = 3\n").unwrap_err().to_string().contains("[claims]"));
    assert!(ClaimsFile::open("fig1").unwrap().expects());
}

#[test]
fn a_sweep_larger_than_any_memory_is_refused_at_once() {
    let values = (1..=100).map(|k| k.to_string()).collect::<Vec<_>>().join(", ");
    let keys = ["schedule.k", "run.rounds", "radio.symbols", "learn.local_steps", "data.samples_per_device"];
    let line = |key: &&str| format!("\"{key}\" = [{values}]\n");
    let sweep = |keys: &[&str]| keys.iter().map(line).collect::<Vec<_>>().concat();
    let text = format!("[data]\ndevices = 100\n[sweep]\n{}", sweep(&keys[..2]));
    assert_eq!(expand(&Experiment::parse("x", &text).unwrap()).curves.len(), 10_000);
    let message = error(&format!("[sweep]\n{}", sweep(&keys)));
    assert!(message.contains("sweep: 10000000000 combinations ("), "{message}");
}

#[test]
fn a_key_of_many_parts_is_unknown_at_any_number() {
    let mut experiment = Experiment::parse("x", "[custom]\nmine = \"here\"\n").unwrap();
    experiment.set("schedule.mine.x", "1").unwrap();
    for depth in [4, 100_000] {
        let key = format!("schedule{}.mine.x", ".a".repeat(depth));
        assert!(experiment.set(&key, "1").is_err());
        assert!(fedlink::spec::Config::default().set(&key, 1).is_err());
        // The same as a dotted key of a file.
        assert!(Experiment::parse("x", &format!("{key} = 1\n")).is_err());
        assert!(Experiment::parse("x", &format!("[{key}]\n")).is_err());
    }
}

/// An SNR holds at the bandwidth and the power of the file; changes by `--set` and `[sweep]` move it.
#[test]
fn snrs_keep_the_bandwidth_and_the_power_of_the_file() {
    let hall = "[radio]\nbandwidth_hz = 1e6\nsnr_db = [20, 0]\n";
    let references = |text: &str, settings: &[(&str, &str)]| {
        let mut experiment = Experiment::parse("hall", text).unwrap();
        for (key, value) in settings {
            experiment.set(key, value).unwrap();
        }
        let sweep = experiment.expand(&Parts::default()).unwrap();
        let of = |text: &str| Experiment::parse("again", text).unwrap().expand(&Parts::default()).unwrap();
        let radio = |sweep: &Sweep| {
            let radio = sweep.curves.last().unwrap().spec.radio.clone();
            (radio.snr_bandwidth_hz, radio.snr_power_dbm, radio.bandwidth_hz)
        };
        // The folder's config.toml holds them too.
        assert_eq!(radio(&of(sweep.to_toml())), radio(&sweep));
        radio(&sweep)
    };
    assert_eq!(references(hall, &[]), (None, None, Some(1e6)));
    let wide = ("radio.bandwidth_hz", "5e6");
    assert_eq!(references(hall, &[wide]), (Some(1e6), None, Some(5e6)));
    let swept = format!("{hall}[sweep]\n\"radio.bandwidth_hz\" = [1e6, 5e6]\n");
    assert_eq!(references(&swept, &[]), (Some(1e6), None, Some(5e6)));
    // 7.8 dBm is the power of a file that states none.
    assert_eq!(references(hall, &[("radio.power_dbm", "20.0")]), (None, Some(7.8), Some(1e6)));
    // A reference that is written counts, and a file without a bandwidth has none.
    let own = ("radio.snr_bandwidth_hz", "2e6");
    assert_eq!(references(hall, &[wide, own]), (Some(2e6), None, Some(5e6)));
    assert_eq!(references("[radio]\nsnr_db = 3\n", &[wide]), (None, None, Some(5e6)));
    let unknown = "[radio]\nsnr_db = 3\n[sweep]\n\"radio.bandwidth_hz\" = [1e6, 5e6]\n";
    let error = Experiment::parse("x", unknown).unwrap().expand(&Parts::default()).err().unwrap();
    assert!(error.to_string().contains("radio.snr_bandwidth_hz: is missing"), "{error}");
}

/// A configuration that is printed, changed and read again has the defaults that follow from the change.
#[test]
fn defaults_that_follow_from_other_keys_are_comments_of_a_printed_configuration() {
    let text = "[schedule]\npolicy = \"bc-bn2\"\n";
    let print = |text: &str| expand(&Experiment::parse("x", text).unwrap()).to_editable_toml();
    let printed = print(text);
    for key in ["rate = ", "kc = "] {
        let line =
            printed.lines().find(|line| line.contains(key) && line.contains("follows from other keys"));
        assert!(line.is_some_and(|line| line.starts_with("# ")), "{key}: {printed}");
    }
    let spec = |text: &str| expand(&Experiment::parse("x", text).unwrap()).curves[0].spec.clone();
    let changed = printed.replace("\noptimizer = \"adam\"", "\noptimizer = \"sgd\"");
    assert_ne!(changed, printed);
    assert_eq!(spec(&changed).rate(), spec(&format!("{text}[learn]\noptimizer = \"sgd\"")).rate());
    assert_ne!(spec(&changed).rate(), spec(&printed).rate());
    assert_eq!(spec(&printed).resolved(), spec(text).resolved());
    // A value that was written stays.
    assert!(print("[learn]\nrate = 0.25\n").contains("\nrate = 0.25\n"));
}

/// Two policies of one list, one of which has a key of its own that is swept, and K.
const FOREIGN: &str = "[sweep]\n\"schedule.policy\" = [\"random\", \"bc-bn2\"]\n\
                       \"schedule.bc-bn2.kc\" = [10, 20]\n\"schedule.k\" = [1, 5]\n";

#[test]
fn a_key_of_a_part_that_a_curve_does_not_choose_is_no_key_of_it() {
    let experiment = Experiment::parse("x", FOREIGN).unwrap();
    let all = ["random k=1", "random k=5", "bc-bn2 kc=10 k=1", "bc-bn2 kc=10 k=5", "bc-bn2 kc=20 k=1"];
    assert_eq!(labels(&experiment)[..5], all);
    assert_eq!((labels(&experiment).len(), expand(&experiment).runs.len()), (6, 6));
    let digests: std::collections::BTreeSet<_> = expand(&experiment)
        .runs
        .iter()
        .map(|run| fedlink::spec::identity::config_digest(&run.spec))
        .collect();
    assert_eq!(digests.len(), 6, "no two runs are the same");
    let keys: Vec<String> = expand(&experiment).curves[0].keys.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys, ["schedule.policy", "schedule.k"]);
    // A file that was written reads back as the same curves.
    let again = Experiment::parse("x", &written(&experiment)).unwrap();
    assert_eq!(labels(&again), labels(&experiment));
    // A sweep of a key that no curve chooses makes no copies.
    let none = "[sweep]\n\"schedule.bc-bn2.kc\" = [10, 20]\n\"schedule.policy\" = [\"bc\", \"random\"]\n";
    assert_eq!(labels(&Experiment::parse("x", none).unwrap()), ["bc", "random"]);
}

#[test]
fn a_key_of_a_custom_part_belongs_to_its_curves_alone() {
    let text = "[custom]\nna = \"mine.py\"\n[sweep]\n\"schedule.policy\" = [\"random\", \"na\", \"bc\"]\n\
                \"schedule.na.beta\" = [0.0, 0.5]\n";
    let experiment = Experiment::parse("x", text).unwrap();
    let sweep = experiment.expand(&custom(&["na"])).unwrap();
    let labels: Vec<&str> = sweep.curves.iter().map(|curve| curve.label.as_str()).collect();
    assert_eq!(labels, ["random", "na beta=0.0", "na beta=0.5", "bc"]);
    // A rule on the key concerns the curves that choose the part, and no other.
    let without = format!("{text}[[exclude]]\n\"schedule.na.beta\" = 0.5\n");
    let sweep = Experiment::parse("x", &without).unwrap().expand(&custom(&["na"])).unwrap();
    let labels: Vec<&str> = sweep.curves.iter().map(|curve| curve.label.as_str()).collect();
    assert_eq!(labels, ["random", "na beta=0.0", "bc"]);
}

#[test]
fn rules_on_a_key_of_a_part_concern_the_curves_that_choose_it() {
    let rule = "[[exclude]]\n\"schedule.bc-bn2.kc\" = 10\n\"schedule.k\" = 5\n";
    let experiment = Experiment::parse("x", &format!("{FOREIGN}{rule}")).unwrap();
    let all = ["random k=1", "random k=5", "bc-bn2 kc=10 k=1", "bc-bn2 kc=20 k=1", "bc-bn2 kc=20 k=5"];
    assert_eq!(labels(&experiment), all);
    let rule = "[[exclude]]\n\"schedule.bc-bn2.kc\" = 10\n\"schedule.policy\" = \"random\"\n";
    let error = error(&format!("{FOREIGN}{rule}"));
    assert!(
        error.contains("no curve has schedule.bc-bn2.kc = 10 and schedule.policy = \"random\""),
        "{error}"
    );
    let rule = "[[override]]\nwhen = { \"schedule.bc-bn2.kc\" = 10 }\nset = { \"learn.local_steps\" = 7 }\n";
    let curves = expand(&Experiment::parse("x", &format!("{FOREIGN}{rule}")).unwrap()).curves;
    let steps = |curve: &Curve| (curve.label.clone(), curve.spec.learn.local_steps);
    let seven: Vec<String> =
        curves.iter().map(steps).filter(|(_, steps)| *steps == 7).map(|it| it.0).collect();
    assert_eq!(seven, ["bc-bn2 kc=10 k=1", "bc-bn2 kc=10 k=5"]);
}

#[test]
fn claims_of_earlier_files_that_give_a_curve_a_foreign_key_still_name_it() {
    let names = |claim: &str| {
        let claims = format!("[claims]\na = \"{claim}\"\n");
        Experiment::parse("x", &format!("{FOREIGN}{claims}")).map(|_| ()).map_err(|error| error.to_string())
    };
    for claim in [
        "bc-bn2@kc=10@k=1 final > random@k=1 final",
        "bc-bn2@kc=10@k=1 final > random@kc=10@k=1 final",
        "bc-bn2 final > random final for every k, kc",
        "bc-bn2@kc=20 final > random@kc=20 final for every k",
    ] {
        assert_eq!(names(claim), Ok(()), "{claim}");
    }
    assert!(names("random@kc=30@k=1 final > 0.5").unwrap_err().contains("no curve has"));
    // Removing K from the sweep keeps the claims that are still about curves.
    let claims = "[claims]\na = \"bc-bn2@kc=10 final > random final\"\n";
    let swept = FOREIGN.replace("\"schedule.k\" = [1, 5]\n", "\"learn.rate\" = [0.1, 0.2]\n");
    let mut experiment = Experiment::parse(
        "x",
        &format!("{swept}{claims}").replace("final > random final", "final > random final for every rate"),
    )
    .unwrap();
    experiment.set("schedule.k", "2").unwrap();
    assert_eq!(experiment.claims().len(), 1);
}

#[test]
fn choosing_another_part_by_a_setting_keeps_the_file_valid() {
    let text = "[radio]\nbandwidth_hz = 1e6\nuplink_s = 0.01\n[energy]\nreceive_w = 0.3\n\
                [clock]\ndownlink = \"broadcast\"\n[clock.broadcast]\nquantile = 0.5\n";
    let mut experiment = Experiment::parse("x", text).unwrap();
    assert!(expand(&experiment).check_effects().is_ok());
    experiment.set("clock.downlink", "ideal").unwrap();
    let sweep = expand(&experiment);
    sweep.check_effects().unwrap();
    let cautions = sweep.curves[0].spec.cautions();
    assert!(
        cautions.iter().any(|it| it.starts_with("energy.receive_w is 0.3 and has no effect")),
        "{cautions:?}"
    );
    // Written so in a file, or set as well, it is a mistake.
    experiment.set("clock.broadcast.quantile", "0.4").unwrap();
    assert!(expand(&experiment).check_effects().is_err());
    let file = Experiment::parse("x", &text.replace("\"broadcast\"", "\"ideal\"")).unwrap();
    assert!(expand(&file).check_effects().unwrap_err().to_string().contains("clock.broadcast.quantile"));
}

#[test]
fn a_setting_that_switches_off_what_goals_need_is_an_error() {
    let text = "[run]\nfairness = true\n[sweep]\n\"schedule.policy\" = [\"bc\", \"random\"]\n\
                [goals]\nfast = \"rounds until worst-device >= 0.5\"\n\
                [claims]\na = \"bc worst-class > random worst-class\"\n";
    let mut experiment = Experiment::parse("x", text).unwrap();
    assert!(experiment.clone().expand(&Parts::default()).is_ok());
    experiment.set("run.fairness", "false").unwrap();
    let error = experiment.expand(&Parts::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("goals.\"fast\"") && error.contains("worst-device"), "{error}");
}
