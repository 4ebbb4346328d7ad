//! Any bytes are a log of rounds (`rounds.csv`) as columns of one length, or an error.

use fedlink_report::parquet::{Column, round_log_columns};

pub fn run(bytes: &[u8]) {
    let Ok(columns) = round_log_columns(bytes) else { return };
    let length = |column: &Column| match column {
        Column::Text(_, values) => values.len(),
        Column::Whole(_, values) => values.len(),
        Column::Real(_, values) => values.len(),
    };
    assert!(columns.windows(2).all(|pair| length(&pair[0]) == length(&pair[1])));
}
