//! The details of a round that only logs have: the numbers that a policy decided by, and the channel as it
//! is.

use super::columns::{Cell, CellKind, Column};

/// A number that a policy decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// The number that the devices are ranked by.
    Score,
    /// p, the probability that the device is scheduled, or that of a draw where several are made.
    Probability,
    /// The level that devices are compared with: a threshold, or the multiplier λ.
    Threshold,
    /// The virtual queue of the device.
    Queue,
    /// The position of the device in the draw, from 1.
    Order,
}

impl Quantity {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 5] = [Self::Score, Self::Probability, Self::Threshold, Self::Queue, Self::Order];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        DECISION_COLUMNS[self as usize].name
    }
}

/// The numbers that a policy decided by in a round, of one device; none where the policy noted none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision([Option<f64>; 5]);

impl Decision {
    /// One of the numbers.
    pub fn of(&self, quantity: Quantity) -> Option<f64> {
        self.0[quantity as usize]
    }

    /// Notes one of the numbers.
    pub fn note(&mut self, quantity: Quantity, value: f64) {
        self.0[quantity as usize] = Some(value);
    }
}

/// The details of a round, by device.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Details {
    /// The numbers that the policy decided by; empty unless all devices are logged.
    pub decisions: Vec<Decision>,
    /// β·g of each resource block as it is, device after device; empty where the band is not made of blocks.
    pub block_gains: Vec<f64>,
    /// √β·h, real and imaginary part, by device, antenna and block (one where the band is flat); empty where
    /// the fading law draws powers alone.
    pub amplitudes: Vec<[f64; 2]>,
}

impl Details {
    /// The decision about the device at `index`.
    pub fn decision(&self, index: usize) -> Decision {
        self.decisions.get(index).copied().unwrap_or_default()
    }

    /// The gains of the blocks of the device at `index`.
    pub fn blocks_of(&self, index: usize) -> &[f64] {
        part(&self.block_gains, self.decisions.len(), index)
    }

    /// The amplitudes of the device at `index`.
    pub fn amplitudes_of(&self, index: usize) -> &[[f64; 2]] {
        part(&self.amplitudes, self.decisions.len(), index)
    }

    /// The fields of a line of `rounds-all.csv` after those of the transmission, for the device at `index`.
    pub fn fields(&self, index: usize) -> Vec<String> {
        let decision = self.decision(index);
        let mut fields: Vec<String> =
            DECISION_COLUMNS.iter().map(|column| (column.value)(&decision).text()).collect();
        let words = |words: Vec<String>| words.join(" ");
        fields.push(words(self.blocks_of(index).iter().map(f64::to_string).collect()));
        fields.push(words(self.amplitudes_of(index).iter().map(|[re, im]| format!("{re}{im:+}j")).collect()));
        fields
    }

    /// The names of [`Details::fields`].
    pub fn names() -> impl Iterator<Item = &'static str> {
        DECISION_COLUMNS.iter().map(|column| column.name).chain(["block_gains", "amplitudes"])
    }
}

/// The part of a table that belongs to one of `devices`.
fn part<T>(all: &[T], devices: usize, index: usize) -> &[T] {
    let each = all.len() / devices.max(1);
    all.get(index * each..(index + 1) * each).unwrap_or_default()
}

macro_rules! decision {
    ($quantity:ident, $name:literal, $meaning:literal) => {
        Column::new($name, "", CellKind::Real, $meaning, |row: &Decision| {
            row.of(Quantity::$quantity).map_or(Cell::Empty, Cell::Real)
        })
        .optional()
    };
}

/// The columns of a [`Decision`], in the order of [`Quantity::ALL`].
pub static DECISION_COLUMNS: &[Column<Decision>] = &[
    decision!(Score, "score", "the number that the policy ranks the device by"),
    decision!(
        Probability,
        "probability",
        "p, the probability that the policy schedules the device, or that of a draw"
    ),
    decision!(Threshold, "threshold", "the level that the policy compares devices with, or its multiplier λ"),
    decision!(Queue, "queue", "the policy's virtual queue of the device, when it decided"),
    decision!(Order, "order", "the position of the device in the policy's draw, from 1"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_column_of_its_name() {
        for (index, quantity) in Quantity::ALL.into_iter().enumerate() {
            assert_eq!((quantity as usize, quantity.name()), (index, DECISION_COLUMNS[index].name));
            let mut decision = Decision::default();
            decision.note(quantity, 2.5);
            let details = Details { decisions: vec![Decision::default(), decision], ..Details::default() };
            let mut wanted = vec![String::new(); 7];
            assert_eq!(details.fields(0), wanted);
            wanted[index] = "2.5".into();
            assert_eq!(details.fields(1), wanted);
        }
        assert_eq!(Details::names().count(), 7);
    }

    #[test]
    fn lists_are_cut_by_device() {
        let details = Details {
            decisions: vec![Decision::default(); 2],
            block_gains: vec![1.0, 2.0, 3.0, 4.0],
            amplitudes: vec![[1.0, -2.0], [0.5, 0.25]],
        };
        assert_eq!(details.fields(1)[5..], ["3 4", "0.5+0.25j"]);
        assert_eq!(details.fields(0)[5..], ["1 2", "1-2j"]);
    }
}
