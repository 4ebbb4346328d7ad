//! Every field of a record is a column, and the digest covers it.

use super::*;
use crate::base::state::State;
use crate::learn::task::Evaluation;
use std::collections::BTreeSet;

fn transmission() -> Transmission {
    Transmission {
        round: 3,
        device: DeviceId(4),
        report: 0.5,
        gain: 1.25,
        capacity: 2.5,
        bit_weight: 0.75,
        symbols: Symbols(10.0),
        power: Power(12.0),
        airtime: Airtime(13.0),
        budget: Bits(25.0),
        bits: Bits(24.5),
        q: 6,
        entries: 5,
        weight: Some(0.125),
        report_symbols: 14,
        wire_bits: Some(27),
        arrival: Arrival::Used,
    }
}

fn row() -> Row {
    Row {
        report_symbols: 7.5,
        round: 20,
        test_accuracy: 0.5,
        test_loss: 1.5,
        train_loss: 2.5,
        trained: 40,
        bits: 100.5,
        total_bits: 2010.0,
        mean_q: 3.25,
        silent_devices: 2,
        wire_bits: Some(111.5),
        undecodable: 3,
        flagged: 4,
        lost: 5,
        outages: 6,
        late: 7,
        total_seconds: Some(8.5),
        down_s: Some(9.5),
        train_s: Some(10.5),
        report_s: Some(11.5),
        up_s: Some(12.5),
        total_joules: Some(13.5),
        compute_j: Some(14.5),
        report_j: Some(15.5),
        transmit_j: Some(16.5),
        receive_j: Some(17.5),
        idle_j: Some(18.5),
        worst_device_joules: Some(19.5),
        empty: Some(8),
        metrics: vec![("f1".into(), 0.25)],
    }
}

fn record() -> RoundRecord {
    RoundRecord {
        report_symbols: 0,
        round: 3,
        transmissions: vec![transmission()],
        others: Vec::new(),
        details: Details::default(),
        training: Training { devices: 7, loss: 0.25 },
        cost: None,
        evaluation: Some(Evaluation::new(0.75, 1.5).with("f1", 0.5)),
    }
}

fn digest(record: &RoundRecord) -> String {
    let mut ledger = Ledger::new(10, None);
    ledger.add(record);
    ledger.outcome(&[1.0, 2.0], 0.8).digest
}

#[track_caller]
fn assert_columns<R>(columns: &[Column<R>], row: &R, expected: &[(&str, Cell)]) {
    let cells: Vec<(&str, Cell)> = columns.iter().map(|column| (column.name, (column.value)(row))).collect();
    assert_eq!(cells, expected);
    let names: BTreeSet<&str> = columns.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), columns.len(), "names are unique");
    for column in columns {
        assert!(!column.meaning.is_empty() && !column.name.is_empty());
        let fits = match (column.value)(row) {
            Cell::Whole(_) => column.kind == CellKind::Whole,
            Cell::Real(_) => column.kind == CellKind::Real,
            Cell::Single(_) => column.kind == CellKind::Single,
            Cell::Text(_) => column.kind == CellKind::Text,
            Cell::Empty => column.optional,
        };
        assert!(fits, "{}", column.name);
    }
}

/// The fields that serde writes, with their values.
fn fields(value: &impl Serialize) -> BTreeSet<String> {
    let serde_json::Value::Object(fields) = serde_json::to_value(value).unwrap() else { panic!("a struct") };
    fields.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn the_columns_of_a_transmission_are_its_fields() {
    let expected = [
        ("round", Cell::Whole(3)),
        ("device", Cell::Whole(4)),
        ("report", Cell::Single(0.5)),
        ("gain", Cell::Real(1.25)),
        ("capacity", Cell::Real(2.5)),
        ("bit_weight", Cell::Real(0.75)),
        ("symbols", Cell::Real(10.0)),
        ("budget", Cell::Real(25.0)),
        ("bits", Cell::Real(24.5)),
        ("q", Cell::Whole(6)),
        ("entries", Cell::Whole(5)),
        ("wire_bits", Cell::Whole(27)),
        ("arrival", Cell::Text("used")),
        ("power", Cell::Real(12.0)),
        ("airtime", Cell::Real(13.0)),
        ("weight", Cell::Real(0.125)),
        ("report_symbols", Cell::Whole(14)),
    ];
    assert_columns(TRANSMISSION_COLUMNS, &transmission(), &expected);
    let names: BTreeSet<String> = TRANSMISSION_COLUMNS.iter().map(|column| column.name.to_owned()).collect();
    assert_eq!(names, fields(&transmission()));
    let empty = Transmission { weight: None, wire_bits: None, ..transmission() };
    for column in TRANSMISSION_COLUMNS {
        assert_eq!((column.value)(&empty) == Cell::Empty, column.optional, "{}", column.name);
    }
}

#[test]
fn the_columns_of_a_row_are_its_fields() {
    let expected = [
        ("round", Cell::Whole(20)),
        ("test_accuracy", Cell::Real(0.5)),
        ("test_loss", Cell::Real(1.5)),
        ("train_loss", Cell::Real(2.5)),
        ("trained", Cell::Whole(40)),
        ("bits", Cell::Real(100.5)),
        ("total_bits", Cell::Real(2010.0)),
        ("mean_q", Cell::Real(3.25)),
        ("silent_devices", Cell::Whole(2)),
        ("wire_bits", Cell::Real(111.5)),
        ("undecodable", Cell::Whole(3)),
        ("flagged", Cell::Whole(4)),
        ("lost", Cell::Whole(5)),
        ("outages", Cell::Whole(6)),
        ("late", Cell::Whole(7)),
        ("report_symbols", Cell::Real(7.5)),
        ("total_seconds", Cell::Real(8.5)),
        ("down_s", Cell::Real(9.5)),
        ("train_s", Cell::Real(10.5)),
        ("report_s", Cell::Real(11.5)),
        ("up_s", Cell::Real(12.5)),
        ("total_joules", Cell::Real(13.5)),
        ("compute_j", Cell::Real(14.5)),
        ("report_j", Cell::Real(15.5)),
        ("transmit_j", Cell::Real(16.5)),
        ("receive_j", Cell::Real(17.5)),
        ("idle_j", Cell::Real(18.5)),
        ("worst_device_joules", Cell::Real(19.5)),
        ("empty", Cell::Whole(8)),
    ];
    assert_columns(ROW_COLUMNS, &row(), &expected);
    // Metrics have their own names, and so are no column of this list.
    let mut names: BTreeSet<String> = ROW_COLUMNS.iter().map(|column| column.name.to_owned()).collect();
    names.insert("metrics".into());
    assert_eq!(names, fields(&row()));
    let Row { round, train_loss, trained, bits, total_bits, mean_q, silent_devices, .. } = row();
    let empty = Row {
        round,
        train_loss,
        trained,
        bits,
        total_bits,
        mean_q,
        silent_devices,
        test_accuracy: f64::NAN,
        test_loss: f64::NAN,
        ..Row::default()
    };
    for column in ROW_COLUMNS {
        assert_eq!((column.value)(&empty) == Cell::Empty, column.optional, "{}", column.name);
    }
}

#[test]
fn cells_are_written_so_that_they_read_back() {
    assert_eq!(Cell::Whole(u64::MAX).text().parse(), Ok(u64::MAX));
    assert_eq!(Cell::Real(0.1 + 0.2).text().parse(), Ok(0.1 + 0.2));
    assert_eq!(Cell::Single(0.1).text(), "0.1");
    assert_eq!((Cell::Text("lost").text(), Cell::Empty.text()), ("lost".into(), String::new()));
    assert_eq!(
        (Cell::Whole(7).number(), Cell::Real(0.5).number(), Cell::Single(0.5).number()),
        (7.0, 0.5, 0.5)
    );
    assert!(Cell::Text("lost").number().is_nan() && Cell::Empty.number().is_nan());
}

#[test]
fn the_digest_changes_with_every_column_that_it_takes_and_with_no_other() {
    type Change = fn(&mut Transmission);
    let changes: [(&str, bool, Change); 16] = [
        ("device", true, |s| s.device = DeviceId(5)),
        ("report", true, |s| s.report = s.report.next_up()),
        ("gain", true, |s| s.gain = s.gain.next_up()),
        ("capacity", true, |s| s.capacity = s.capacity.next_up()),
        ("bit_weight", true, |s| s.bit_weight = s.bit_weight.next_up()),
        ("symbols", true, |s| s.symbols.0 = s.symbols.0.next_up()),
        ("budget", true, |s| s.budget.0 = s.budget.0.next_up()),
        ("bits", true, |s| s.bits.0 = s.bits.0.next_up()),
        ("q", true, |s| s.q += 1),
        ("entries", true, |s| s.entries += 1),
        ("weight", true, |s| s.weight = None),
        ("arrival", true, |s| s.arrival = Arrival::Lost),
        ("report_symbols", true, |s| s.report_symbols = 0),
        // Bytes are another way to send the same; power and airtime follow from the rest.
        ("wire_bits", false, |s| s.wire_bits = None),
        ("power", false, |s| s.power.0 += 1.0),
        ("airtime", false, |s| s.airtime.0 += 1.0),
    ];
    let before = digest(&record());
    for (name, taken, change) in changes {
        let mut record = record();
        change(&mut record.transmissions[0]);
        assert_eq!(digest(&record) != before, taken, "{name}");
    }
    // The round of a transmission is that of its record, which is taken once.
    let mut names: BTreeSet<&str> = changes.iter().map(|(name, ..)| *name).collect();
    names.insert("round");
    assert_eq!(names, TRANSMISSION_COLUMNS.iter().map(|column| column.name).collect());
}

#[test]
fn the_digest_changes_with_everything_else_of_a_round_and_with_the_model() {
    let changes: [fn(&mut RoundRecord); 15] = [
        |r| r.round = 4,
        |r| r.training.devices = 8,
        |r| r.training.loss = r.training.loss.next_up(),
        |r| r.transmissions.clear(),
        |r| r.transmissions.push(r.transmissions[0]),
        |r| r.cost = Some(Cost::default()),
        |r| r.cost = Some(cost(1.0, 0.0)),
        |r| r.cost = Some(cost(0.0, 1.0)),
        |r| r.cost = Some(cost(1.0, 1.0)),
        |r| r.evaluation = None,
        |r| r.evaluation.as_mut().unwrap().accuracy = 0.5,
        |r| r.evaluation.as_mut().unwrap().loss = 0.5,
        |r| r.evaluation.as_mut().unwrap().metrics[0].1 = 0.25,
        |r| r.evaluation.as_mut().unwrap().metrics[0].0 = "f2".into(),
        |r| r.evaluation.as_mut().unwrap().metrics.clear(),
    ];
    let mut digests = BTreeSet::from([digest(&record())]);
    for change in changes {
        let mut record = record();
        change(&mut record);
        digests.insert(digest(&record));
    }
    for arrival in [Arrival::Undecodable, Arrival::Flagged, Arrival::Lost, Arrival::Outage, Arrival::Late] {
        let mut record = record();
        record.transmissions[0].arrival = arrival;
        digests.insert(digest(&record));
    }
    let mut ledger = Ledger::new(10, None);
    ledger.add(&record());
    digests.insert(ledger.outcome(&[1.0, 2.5], 0.8).digest);
    // A second record is another run.
    ledger.add(&record());
    digests.insert(ledger.outcome(&[1.0, 2.0], 0.8).digest);
    assert_eq!(digests.len(), 1 + changes.len() + 5 + 2);
    // One that was used and one that was silent differ in their bits already.
    let mut silent = record();
    silent.transmissions[0].arrival = Arrival::Silent;
    assert_eq!(digest(&silent), digest(&record()));
}

/// A round in which device 4 sends for this time and spends this energy.
fn cost(up_s: f64, transmit_j: f64) -> Cost {
    let spent = Energy { transmit_j, ..Energy::default() };
    Cost::new(Phases { up_s, ..Phases::default() }, vec![(DeviceId(4), spent)])
}

#[test]
fn costs_add_up_over_rows_and_survive_a_checkpoint_beside_the_plain_rows() {
    let mut ledger = Ledger::new(10, None);
    for round in 1..=4 {
        let mut record = RoundRecord { round, cost: Some(cost(2.0, 3.0)), ..record() };
        record.transmissions[0].arrival = if round == 3 { Arrival::Outage } else { Arrival::Late };
        if round % 2 == 1 {
            record.evaluation = None;
        }
        ledger.add(&record);
    }
    let [first, second] = ledger.rows() else { panic!("two evaluated rounds") };
    assert_eq!((first.total_seconds, second.total_seconds), (Some(4.0), Some(8.0)));
    assert_eq!((first.total_joules, second.total_joules), (Some(6.0), Some(12.0)));
    assert_eq!((second.up_s, second.transmit_j, second.train_s), (Some(2.0), Some(3.0), Some(0.0)));
    assert_eq!((first.worst_device_joules, second.worst_device_joules), (Some(6.0), Some(12.0)));
    assert_eq!((first.outages, first.late, second.outages, second.late), (0, 2, 1, 1));
    let outcome = ledger.outcome(&[0.0], 0.8);
    assert_eq!(
        (outcome.seconds(), outcome.joules(), outcome.worst_device_joules()),
        (Some(8.0), Some(12.0), Some(12.0))
    );
    assert_eq!((outcome.outages, outcome.late), (1, 3));
    // A checkpoint holds the rows without their costs, and the costs beside them.
    let bytes = postcard::to_stdvec(&ledger).unwrap();
    let mut restored: Ledger = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(restored.rows()[0].total_seconds, None);
    let costs = postcard::from_bytes(&postcard::to_stdvec(ledger.costs()).unwrap()).unwrap();
    assert!(restored.restore_costs(costs, BatteryLedger::default()));
    assert_eq!(restored.rows(), ledger.rows());
    assert_eq!(restored.outcome(&[0.0], 0.8), outcome);
    // The costs of an earlier version end before the joules of the worst device: everything else is read.
    let bytes = postcard::to_stdvec(ledger.costs()).unwrap();
    let older = postcard::from_bytes(&bytes[..bytes.len() - 1 - 2 * 8]).unwrap();
    let mut resumed: Ledger = postcard::from_bytes(&postcard::to_stdvec(&ledger).unwrap()).unwrap();
    assert!(resumed.restore_costs(older, BatteryLedger::default()));
    let row = |row: &Row| (row.total_joules, row.worst_device_joules);
    assert_eq!(resumed.rows().iter().map(row).collect::<Vec<_>>(), [(Some(6.0), None), (Some(12.0), None)]);
    resumed.add(&RoundRecord { round: 5, cost: Some(cost(2.0, 3.0)), ..record() });
    assert_eq!(row(&resumed.rows()[2]), (Some(15.0), Some(15.0)));
    // Those of another run do not fit.
    let mut other = Ledger::new(3, None);
    assert!(!other.restore_costs(ledger.costs().clone(), BatteryLedger::default()));
}

#[test]
fn the_rounds_in_which_batteries_run_empty_are_those_of_the_first_the_half_and_the_last() {
    let mut ledger = Ledger::new(5, None);
    for (round, empty) in (1..).zip([0, 0, 1, 2, 3, 2, 5]) {
        let mut record = RoundRecord::of_devices(round, &[]);
        let mut cost = Cost::new(Phases::default(), Vec::new());
        (cost.empty, cost.unreported) = (Some(empty), 2);
        record.cost = Some(cost);
        record.evaluation = round.is_multiple_of(2).then(|| Evaluation::new(0.5, 1.0));
        ledger.add(&record);
    }
    let outcome = ledger.outcome(&[0.0], 0.8);
    let marks = [outcome.first_empty, outcome.half_empty, outcome.last_empty];
    assert_eq!((marks, outcome.empty), ([Some(3), Some(5), Some(7)], Some(5)));
    let rows: Vec<Option<u64>> = ledger.rows().iter().map(|row| row.empty).collect();
    assert_eq!(rows, [Some(0), Some(2), Some(2)]);
    let warning = ledger.outcome(&[0.0], 0.8).battery_warning().unwrap();
    assert!(warning.contains("the first in round 3, half of them in round 5, all in round 7"), "{warning}");
    // Those that trained and could not report count as late.
    assert_eq!(ledger.outcome(&[0.0], 0.8).late, 14);
    let mut restored: Ledger = postcard::from_bytes(&postcard::to_stdvec(&ledger).unwrap()).unwrap();
    assert!(restored.restore_costs(ledger.costs().clone(), ledger.batteries().clone()));
    assert_eq!(restored.outcome(&[0.0], 0.8), ledger.outcome(&[0.0], 0.8));
    assert_eq!(restored.rows(), ledger.rows());
}

#[test]
fn rows_sum_up_the_rounds_since_the_row_before() {
    let mut ledger = Ledger::new(10, None);
    let mut silent = record();
    (silent.round, silent.evaluation) = (1, None);
    silent.transmissions[0] = Transmission {
        q: 0,
        bits: Bits(0.0),
        wire_bits: Some(0),
        arrival: Arrival::Silent,
        power: Power(3.0),
        ..transmission()
    };
    ledger.add(&silent);
    assert_eq!(ledger.rows(), []);
    let mut second = record();
    second.round = 2;
    second.transmissions.push(Transmission {
        device: DeviceId(1),
        arrival: Arrival::Flagged,
        ..transmission()
    });
    ledger.add(&second);
    let [row] = ledger.rows() else { panic!("one evaluated round") };
    assert_eq!((row.round, row.test_accuracy, row.test_loss), (2, 0.75, 1.5));
    assert_eq!((row.trained, row.train_loss), (14, 0.25));
    assert_eq!((row.bits, row.total_bits, row.mean_q), (24.5, 49.0, 4.0));
    assert_eq!((row.silent_devices, row.undecodable, row.flagged, row.lost), (1, 0, 1, 0));
    assert_eq!((row.wire_bits, &row.metrics[..]), (Some(27.0), &[("f1".to_owned(), 0.5)][..]));
    let alone = ledger.round_row(&silent);
    assert!(alone.test_accuracy.is_nan() && alone.metrics.is_empty());
    assert_eq!((alone.round, alone.bits, alone.total_bits, alone.silent_devices), (1, 0.0, 49.0, 1));
    let outcome = ledger.outcome(&[0.0], 0.8);
    assert_eq!((outcome.rounds, outcome.silent_transmissions, outcome.flagged_transmissions), (2, 1, 1));
    assert_eq!(outcome.scheduled[..5], [0, 1, 0, 0, 2]);
    // 3 and 12 over two rounds.
    assert_eq!((outcome.worst_average_power, outcome.worst_device), (Power(7.5), DeviceId(4)));
    assert_eq!(outcome.average_power[..5], [0.0, 6.0, 0.0, 0.0, 7.5]);
    assert_eq!((outcome.bits_per_round, outcome.wire_bits_per_round), (24.5, Some(27.0)));
}

#[test]
fn a_round_without_training_does_not_lower_the_mean_loss() {
    let mut ledger = Ledger::new(10, None);
    let idle = RoundRecord {
        report_symbols: 0,
        round: 1,
        transmissions: vec![],
        others: Vec::new(),
        details: Details::default(),
        training: Training::default(),
        cost: None,
        evaluation: None,
    };
    ledger.add(&idle);
    ledger.add(&RoundRecord { round: 2, ..record() });
    assert_eq!(ledger.rows()[0].train_loss, 0.25);
}

/// Columns come and go; the bytes of a row are those of version 0.2, and later columns are beside them.
#[test]
fn a_history_reads_back_unchanged_and_so_does_that_of_version_0_2() {
    #[derive(serde::Serialize)]
    struct Old {
        round: u64,
        measured: [f64; 3],
        trained: u64,
        bits: [f64; 3],
        silent_devices: u64,
        wire_bits: Option<f64>,
        counts: [u64; 5],
        report_symbols: f64,
        costs: [Option<f64>; 11],
        metrics: Vec<(String, f64)>,
    }
    let mut history = History::default();
    let empty = Row { empty: None, worst_device_joules: None, total_seconds: None, ..row() };
    history.add(row(), &record());
    history.add(empty.clone(), &record());
    assert_eq!(History::read(&history.save()).unwrap(), history);
    let old = |row: &Row| Old {
        round: row.round,
        measured: [row.test_accuracy, row.test_loss, row.train_loss],
        trained: row.trained,
        bits: [row.bits, row.total_bits, row.mean_q],
        silent_devices: row.silent_devices,
        wire_bits: row.wire_bits,
        counts: [row.undecodable, row.flagged, row.lost, row.outages, row.late],
        report_symbols: row.report_symbols,
        costs: [
            row.total_seconds,
            row.down_s,
            row.train_s,
            row.report_s,
            row.up_s,
            row.total_joules,
            row.compute_j,
            row.report_j,
            row.transmit_j,
            row.receive_j,
            row.idle_j,
        ],
        metrics: row.metrics.clone(),
    };
    let bytes = State::of(&(vec![old(&row()), old(&empty)], &history.transmissions));
    let read = History::read(&bytes).unwrap();
    assert_eq!(read.transmissions, history.transmissions);
    let first = Row { empty: None, worst_device_joules: None, ..row() };
    assert_eq!(read.rounds, [first, empty]);
    // A cut is noticed.
    assert!(History::read(&State(bytes.0[..bytes.0.len() - 1].to_vec())).is_err());
}
