//! The columns of a record, declared once: CSV, Parquet, Arrow, JSON, the report, the digest and the tables
//! of the documentation follow.

use super::{Arrival, Row, Transmission};

/// One value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// A whole number.
    Whole(u64),
    /// A real number.
    Real(f64),
    /// A real number of single precision.
    Single(f32),
    /// A word.
    Text(&'static str),
    /// Empty: it was not measured.
    Empty,
}

/// The values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// [`Cell::Whole`], and [`Cell::Empty`] where it is optional.
    Whole,
    /// [`Cell::Real`], and [`Cell::Empty`] where it is optional.
    Real,
    /// [`Cell::Single`].
    Single,
    /// [`Cell::Text`].
    Text,
}

impl Cell {
    /// The bits that a digest takes of it.
    fn word(self) -> u64 {
        match self {
            Self::Whole(number) => number,
            Self::Real(number) => number.to_bits(),
            Self::Single(number) => u64::from(number.to_bits()),
            Self::Text(_) | Self::Empty => 0,
        }
    }

    /// Its text in CSV: the shortest that reads back as the same number, empty if there is no value.
    pub fn text(self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Single(number) => number.to_string(),
            Self::Text(word) => word.to_owned(),
            Self::Empty => String::new(),
        }
    }

    /// The cell as a number; NaN where it is none.
    pub fn number(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
            Self::Single(number) => f64::from(number),
            Self::Text(_) | Self::Empty => f64::NAN,
        }
    }
}

/// A column of a table whose rows are `R`.
#[non_exhaustive]
pub struct Column<R: 'static> {
    /// Its heading.
    pub name: &'static str,
    /// Its unit; empty for counts, ratios and names.
    pub unit: &'static str,
    /// The meaning of its values.
    pub meaning: &'static str,
    /// Its values.
    pub kind: CellKind,
    /// Whether a value may be missing.
    pub optional: bool,
    /// The value of a row.
    pub value: fn(&R) -> Cell,
    /// Adds a row to the digest of a run; a value that is the neutral one of its column adds nothing.
    digest: fn(&Column<R>, &R) -> Option<u64>,
}

impl<R> Column<R> {
    pub(super) const fn new(
        name: &'static str,
        unit: &'static str,
        kind: CellKind,
        meaning: &'static str,
        value: fn(&R) -> Cell,
    ) -> Self {
        Self { name, unit, meaning, kind, optional: false, value, digest: |_, _| None }
    }

    pub(super) const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Every value is part of the digest.
    const fn digested(mut self) -> Self {
        self.digest = |column, row| Some((column.value)(row).word());
        self
    }

    /// The part of the digest that `word` gives.
    const fn digested_as(mut self, word: fn(&Column<R>, &R) -> Option<u64>) -> Self {
        self.digest = word;
        self
    }

    /// Adds `row` to the digest of a run.
    pub(super) fn digest_word(&self, row: &R) -> Option<u64> {
        (self.digest)(self, row)
    }
}

/// A column of seconds or joules, empty where the radio has no units.
macro_rules! cost {
    ($name:ident, $unit:literal, $meaning:literal) => {
        Column::new(stringify!($name), $unit, CellKind::Real, $meaning, |row: &Row| {
            row.$name.map_or(Cell::Empty, Cell::Real)
        })
        .optional()
    };
}

/// The columns of `rounds.csv`: a row for each transmission. The digest takes them in this order.
pub static TRANSMISSION_COLUMNS: &[Column<Transmission>] = {
    use CellKind::{Real, Single, Text, Whole};
    &[
        Column::new("round", "", Whole, "round, from 1", |s: &Transmission| Cell::Whole(s.round)),
        Column::new("device", "", Whole, "who sent, from 0", |s: &Transmission| {
            Cell::Whole(s.device.0.into())
        })
        .digested(),
        Column::new(
            "report",
            "",
            Single,
            "what the device reported before selection, the first number if there are several; \
             0 if nothing is asked of it",
            |s: &Transmission| Cell::Single(s.report),
        )
        .digested(),
        Column::new("gain", "", Real, "g, the channel's power gain", |s: &Transmission| Cell::Real(s.gain))
            .digested(),
        Column::new("capacity", "bit/symbol", Real, "C, what the link carries", |s: &Transmission| {
            Cell::Real(s.capacity)
        })
        .digested(),
        Column::new(
            "bit_weight",
            "",
            Real,
            "w: the bits of the round are granted in proportion to it",
            |s: &Transmission| Cell::Real(s.bit_weight),
        )
        .digested(),
        Column::new("symbols", "symbols", Real, "n_m, its symbols of the round", |s: &Transmission| {
            Cell::Real(s.symbols.0)
        })
        .digested(),
        Column::new("budget", "bit", Real, "R = n_m·C, what it may send", |s: &Transmission| {
            Cell::Real(s.budget.0)
        })
        .digested(),
        Column::new(
            "bits",
            "bit",
            Real,
            "what it sent by the scheme's count; 0 if silent",
            |s: &Transmission| Cell::Real(s.bits.0),
        )
        .digested(),
        Column::new(
            "q",
            "",
            Whole,
            "the level of the compression (entries, for the sparse schemes); \
             0 means that the budget held nothing",
            |s: &Transmission| Cell::Whole(s.q as u64),
        )
        .digested(),
        Column::new("entries", "", Whole, "entries of Δ̂ that are sent", |s: &Transmission| {
            Cell::Whole(s.entries as u64)
        })
        .digested(),
        // The digest contains nothing of the bytes, so that a run on bytes can be compared with one without.
        Column::new(
            "wire_bits",
            "bit",
            Whole,
            "length of the payload, if updates are encoded (radio.wire, or compress.budget = \"wire\")",
            |s: &Transmission| s.wire_bits.map_or(Cell::Empty, Cell::Whole),
        )
        .optional(),
        Column::new(
            "arrival",
            "",
            Text,
            "its fate: used, silent, undecodable, flagged, lost, outage, late; not-scheduled without one",
            |s: &Transmission| Cell::Text(s.arrival.name()),
        )
        .digested_as(|_, s| match s.arrival {
            Arrival::Used | Arrival::Silent | Arrival::NotScheduled => None,
            Arrival::Undecodable => Some(u64::MAX),
            Arrival::Flagged => Some(u64::MAX - 1),
            Arrival::Lost => Some(u64::MAX - 2),
            Arrival::Outage => Some(u64::MAX - 3),
            Arrival::Late => Some(u64::MAX - 4),
        }),
        // Power and airtime follow from the configuration, the gain and the symbols.
        Column::new(
            "power",
            "",
            Real,
            "P, the transmit power while it sends, in watts if radio.bandwidth_hz is set, else in noise \
             variances",
            |s: &Transmission| Cell::Real(s.power.0),
        ),
        Column::new("airtime", "symbol durations", Real, "how long it sends", |s: &Transmission| {
            Cell::Real(s.airtime.0)
        }),
        Column::new(
            "weight",
            "",
            Real,
            "the weight that the policy gave its update in θ(t+1); empty: as learn.aggregate specifies",
            |s: &Transmission| s.weight.map_or(Cell::Empty, Cell::Real),
        )
        .optional()
        .digested_as(|_, s| s.weight.map(f64::to_bits)),
        Column::new(
            "report_symbols",
            "symbols",
            Whole,
            "what the reports of all candidates of the round took: with the symbols of its rows they are n; \
             0 if free",
            |s: &Transmission| Cell::Whole(s.report_symbols),
        )
        .digested_as(|_, s| (s.report_symbols > 0).then_some(s.report_symbols)),
    ]
};

/// The columns of `results.csv`: a row for each evaluated round (in Python also for each round).
pub static ROW_COLUMNS: &[Column<Row>] = {
    use CellKind::{Real, Whole};
    /// NaN marks a value that was not measured.
    fn measured(value: f64) -> Cell {
        if value.is_nan() { Cell::Empty } else { Cell::Real(value) }
    }
    &[
        Column::new("round", "", Whole, "rounds done", |row: &Row| Cell::Whole(row.round)),
        Column::new("test_accuracy", "", Real, "share of right answers on the test set", |row: &Row| {
            measured(row.test_accuracy)
        })
        .optional(),
        Column::new("test_loss", "", Real, "mean loss on the test set", |row: &Row| measured(row.test_loss))
            .optional(),
        Column::new("train_loss", "", Real, "mean local training loss since the row before", |row: &Row| {
            Cell::Real(row.train_loss)
        }),
        Column::new("trained", "", Whole, "local trainings since the row before", |row: &Row| {
            Cell::Whole(row.trained)
        }),
        Column::new("bits", "bit", Real, "bits sent in a round, mean since the row before", |row: &Row| {
            Cell::Real(row.bits)
        }),
        Column::new("total_bits", "bit", Real, "bits sent in all rounds so far", |row: &Row| {
            Cell::Real(row.total_bits)
        }),
        Column::new("mean_q", "", Real, "mean q over the transmissions since the row before", |row: &Row| {
            Cell::Real(row.mean_q)
        }),
        Column::new(
            "silent_devices",
            "",
            Whole,
            "scheduled devices since the row before whose budget held nothing",
            |row: &Row| Cell::Whole(row.silent_devices),
        ),
        Column::new(
            "wire_bits",
            "bit",
            Real,
            "bits of the payloads sent in a round, mean since the row before; empty if nothing is encoded",
            |row: &Row| row.wire_bits.map_or(Cell::Empty, Cell::Real),
        )
        .optional(),
        Column::new(
            "undecodable",
            "",
            Whole,
            "uploads since the row before that could not be decoded",
            |row: &Row| Cell::Whole(row.undecodable),
        ),
        Column::new(
            "flagged",
            "",
            Whole,
            "uploads since the row before that the audit dropped",
            |row: &Row| Cell::Whole(row.flagged),
        ),
        Column::new("lost", "", Whole, "uploads since the row before that did not arrive", |row: &Row| {
            Cell::Whole(row.lost)
        }),
        Column::new(
            "outages",
            "",
            Whole,
            "uploads since the row before that the channel did not carry",
            |row: &Row| Cell::Whole(row.outages),
        ),
        Column::new(
            "late",
            "",
            Whole,
            "devices since the row before that trained and could not finish before the deadline",
            |row: &Row| Cell::Whole(row.late),
        ),
        Column::new(
            "report_symbols",
            "symbols",
            Real,
            "symbols that the reports of a round took, mean since the row before; 0 if reports are free",
            |row: &Row| Cell::Real(row.report_symbols),
        ),
        cost!(total_seconds, "s", "seconds of all rounds so far; empty without radio.bandwidth_hz"),
        cost!(down_s, "s", "downlink of a round, mean since the row before"),
        cost!(train_s, "s", "local training before selection in a round, mean since the row before"),
        cost!(report_s, "s", "reports of a round, mean since the row before"),
        cost!(up_s, "s", "uplink of a round, mean since the row before"),
        cost!(total_joules, "J", "joules of all devices in all rounds so far"),
        cost!(compute_j, "J", "local training in a round, all devices, mean since the row before"),
        cost!(report_j, "J", "sending reports in a round, all devices, mean since the row before"),
        cost!(transmit_j, "J", "sending updates in a round, all devices, mean since the row before"),
        cost!(receive_j, "J", "receiving the model in a round, all devices, mean since the row before"),
        cost!(idle_j, "J", "waiting in a round, all devices, mean since the row before"),
        cost!(worst_device_joules, "J", "joules so far of the device that has spent the most"),
        Column::new(
            "empty",
            "",
            Whole,
            "devices whose batteries do not last for another training and upload; empty without a battery",
            |row: &Row| row.empty.map_or(Cell::Empty, Cell::Whole),
        )
        .optional(),
    ]
};
