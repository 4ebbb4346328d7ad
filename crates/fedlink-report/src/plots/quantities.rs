//! The quantities of the axes of curves.

use crate::chart::Quantity;
use fedlink::record::Row;
use fedlink_study::results::CurveResult;

/// A quantity of the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    Rounds,
    Bits,
    Symbols,
    Seconds,
    Joules,
}

impl Across {
    /// All of them, with their names in the data of the page.
    pub const ALL: [(&'static str, Self); 5] = [
        ("rounds", Self::Rounds),
        ("bits", Self::Bits),
        ("symbols", Self::Symbols),
        ("seconds", Self::Seconds),
        ("joules", Self::Joules),
    ];

    /// Whether only runs in physical units have it.
    pub fn needs_units(self) -> bool {
        matches!(self, Self::Seconds | Self::Joules)
    }

    /// Its axis.
    pub fn quantity(self) -> Quantity {
        let quantity = match self {
            Self::Rounds => Quantity::plain("round"),
            Self::Bits => Quantity::count("bits sent so far"),
            Self::Symbols => Quantity::count("channel symbols used so far"),
            Self::Seconds => Quantity::plain("seconds so far"),
            Self::Joules => Quantity::plain("joules of all devices so far"),
        };
        quantity.from_zero().margin(0.0)
    }

    /// Its mean over the seeds at each evaluation that all of them have reached; NaN where a seed has none.
    pub fn values(self, curve: &CurveResult) -> Vec<f64> {
        let value: fn(&Row) -> f64 = match self {
            Self::Rounds => |row| row.round as f64,
            Self::Bits => |row| row.total_bits,
            Self::Symbols => return curve.symbols_by_row(),
            Self::Seconds => |row| row.total_seconds.unwrap_or(f64::NAN),
            Self::Joules => |row| row.total_joules.unwrap_or(f64::NAN),
        };
        curve.by_row(value).iter().map(|estimate| estimate.mean).collect()
    }
}

/// A quantity of the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    Accuracy,
    Loss,
    TrainLoss,
    MeanQ,
    BitsPerRound,
}

impl Up {
    /// The quantities of the page, with their names in its data.
    pub const PAGE: [(&'static str, Self); 4] = [
        ("accuracy", Self::Accuracy),
        ("loss", Self::Loss),
        ("mean_q", Self::MeanQ),
        ("bits_per_round", Self::BitsPerRound),
    ];

    /// Its axis.
    pub fn quantity(self) -> Quantity {
        match self {
            Self::Accuracy => Quantity::share("test accuracy"),
            Self::Loss => Quantity::plain("test loss"),
            Self::TrainLoss => Quantity::plain("training loss"),
            Self::MeanQ => Quantity::count("mean q since the last evaluation"),
            Self::BitsPerRound => Quantity::count("bits per round, mean since the last evaluation"),
        }
    }

    /// Its range.
    pub fn range(self) -> (f64, f64) {
        (0.0, if self == Self::Accuracy { 1.0 } else { f64::INFINITY })
    }

    /// Its value at an evaluation.
    pub fn value(self, row: &Row) -> f64 {
        match self {
            Self::Accuracy => row.test_accuracy,
            Self::Loss => row.test_loss,
            Self::TrainLoss => row.train_loss,
            Self::MeanQ => row.mean_q,
            Self::BitsPerRound => row.bits,
        }
    }
}
