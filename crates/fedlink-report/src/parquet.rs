//! Tables as Parquet, for pandas, polars, DuckDB, R and the like: typed columns that need no parsing.
//!
//! Numbers are stored as they are (i64, so that differences may be negative, and f64), text as UTF-8, nothing
//! compressed: repeated values take a few bits each through the format's dictionaries, and measurements do
//! not shrink. The same table always gives the same bytes.

use crate::error::Error;
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use fedlink::record::{Cell, CellKind, Row, TRANSMISSION_COLUMNS};
use fedlink_study::results::{CurveResult, RunResult, metric_columns, row_columns, swept_columns};
use std::io::Write;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// Rows that a reader gets at a time.
const GROUP: usize = 1 << 20;

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// UTF-8 strings.
    Text(String, Vec<String>),
    /// 64-bit integers.
    Whole(String, Vec<i64>),
    /// 64-bit floats; NaN is a missing value.
    Real(String, Vec<f64>),
}

impl Column {
    fn name(&self) -> &str {
        match self {
            Self::Text(name, _) | Self::Whole(name, _) | Self::Real(name, _) => name,
        }
    }

    /// A column without rows for values of this kind. Whole numbers that may be missing are real: NaN is a
    /// missing value.
    fn empty(name: &str, kind: CellKind, optional: bool) -> Self {
        match kind {
            CellKind::Text => Self::Text(name.into(), Vec::new()),
            CellKind::Whole if !optional => Self::Whole(name.into(), Vec::new()),
            CellKind::Whole | CellKind::Real | CellKind::Single => Self::Real(name.into(), Vec::new()),
        }
    }

    fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Text(_, values), cell) => values.push(cell.text()),
            (Self::Whole(_, values), Cell::Whole(number)) => values.push(number.cast_signed()),
            (Self::Whole(_, values), cell) => values.push(cell.number() as i64),
            (Self::Real(_, values), cell) => values.push(cell.number()),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Text(_, values) => values.len(),
            Self::Whole(_, values) => values.len(),
            Self::Real(_, values) => values.len(),
        }
    }

    fn field(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Self::Text(..) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Whole(..) => (Physical::INT64, Some(LogicalType::integer(64, true))),
            Self::Real(..) => (Physical::DOUBLE, None),
        };
        let builder = Type::primitive_type_builder(self.name(), physical);
        Ok(Arc::new(builder.with_repetition(Repetition::REQUIRED).with_logical_type(logical).build()?))
    }

    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<impl Write + Send>,
        rows: Range<usize>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Text(_, values) => {
                let values: Vec<ByteArray> = values[rows].iter().map(|text| text.as_str().into()).collect();
                write_values::<ByteArrayType>(group, &values)
            }
            Self::Whole(_, values) => write_values::<Int64Type>(group, &values[rows]),
            Self::Real(_, values) => write_values::<DoubleType>(group, &values[rows]),
        }
    }
}

fn write_values<T: DataType>(
    group: &mut SerializedRowGroupWriter<impl Write + Send>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, None, None)?;
        column.close()?;
    }
    Ok(())
}

/// The table as a Parquet file. All columns must have the same number of rows.
pub fn write(columns: &[Column]) -> Result<Vec<u8>, Error> {
    if columns.is_empty() {
        return Err(Error::Table("a Parquet file needs at least one column".into()));
    }
    let rows = columns[0].rows();
    for column in columns {
        let (name, own, first) = (column.name(), column.rows(), columns[0].name());
        if own != rows {
            return Err(Error::Table(format!("column {name} has {own} rows where {first} has {rows}")));
        }
    }
    let fields = columns.iter().map(Column::field).collect::<Result<_, ParquetError>>()?;
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let program = format!("fedlink {}", env!("CARGO_PKG_VERSION"));
    let properties = WriterProperties::builder().set_created_by(program).build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for start in (0..rows).step_by(GROUP) {
        let mut group = file.next_row_group()?;
        for column in columns {
            column.write(&mut group, start..rows.min(start + GROUP))?;
        }
        group.close()?;
    }
    Ok(file.into_inner()?)
}

/// The rows of `results.csv` as columns.
pub fn result_columns(results: &[CurveResult]) -> Vec<Column> {
    let rows = || results.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.rows);
    let text = |name: &str, value: &dyn Fn(&CurveResult) -> String| {
        Column::Text(name.into(), repeated(results, |curve, _| value(curve)))
    };
    let mut columns = vec![
        text("curve", &|curve| curve.label.clone()),
        text("policy", &|curve| curve.spec.schedule.policy.clone()),
        Column::Whole("k".into(), repeated(results, |curve, _| curve.spec.schedule.k.cast_signed())),
    ];
    columns.extend(swept_columns(results).into_iter().map(|key| swept_column(results, key)));
    columns.push(Column::Whole("seed".into(), repeated(results, |_, run| run.seed.cast_signed())));
    for declared in row_columns(results) {
        let mut column = Column::empty(declared.name, declared.kind, declared.optional);
        rows().for_each(|row| column.push((declared.value)(row)));
        columns.push(column);
    }
    for name in metric_columns(results) {
        let value = |row: &Row| {
            row.metrics.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| *value)
        };
        columns.push(Column::Real(name.clone(), rows().map(value).collect()));
    }
    columns
}

/// `rounds.csv` as typed columns; those before the seed are swept keys, as text.
pub fn round_log_columns(log: &[u8]) -> Result<Vec<Column>, Error> {
    let mut reader = csv::Reader::from_reader(log);
    let declared = |name: &str| TRANSMISSION_COLUMNS.iter().find(|column| column.name == name);
    let mut columns: Vec<Column> = reader
        .headers()?
        .iter()
        .map(|name| match declared(name) {
            Some(column) => Column::empty(name, column.kind, column.optional),
            None if name == "seed" => Column::Whole(name.into(), Vec::new()),
            None => Column::Text(name.into(), Vec::new()),
        })
        .collect();
    for line in reader.records() {
        for (column, word) in columns.iter_mut().zip(&line?) {
            match column {
                Column::Text(_, values) => values.push(word.to_owned()),
                Column::Whole(_, values) => values.push(word.parse()?),
                // A value that was not measured is NaN.
                Column::Real(_, values) if word.is_empty() => values.push(f64::NAN),
                Column::Real(_, values) => values.push(word.parse()?),
            }
        }
    }
    Ok(columns)
}

/// The values of a swept key: whole numbers if all are, real ones if all are numbers, otherwise their text.
fn swept_column(results: &[CurveResult], key: &str) -> Column {
    fn all<T: Clone + FromStr>(results: &[CurveResult], key: &str) -> Option<Vec<T>> {
        repeated(results, |curve, _| curve.swept(key).parse().ok()).into_iter().collect()
    }
    let name = || key.to_owned();
    let whole = || Some(Column::Whole(name(), all(results, key)?));
    let real = || Some(Column::Real(name(), all(results, key)?));
    let text = || Column::Text(name(), repeated(results, |curve, _| curve.swept(key).to_owned()));
    whole().or_else(real).unwrap_or_else(text)
}

/// A value of each run, once for each of its rows.
fn repeated<T: Clone>(results: &[CurveResult], value: impl Fn(&CurveResult, &RunResult) -> T) -> Vec<T> {
    let mut column = Vec::new();
    for curve in results {
        for run in &curve.runs {
            column.resize(column.len() + run.rows.len(), value(curve, run));
        }
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::metadata::RowGroupMetaData;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    use fedlink_study::example::{curve, results};
    use proptest::prelude::*;
    use std::fs::File;

    /// The names, and the cells row by row, as the crate's reader sees them.
    fn read(file: &[u8]) -> (Vec<String>, Vec<Vec<Field>>) {
        let reader = open(file);
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        let names = columns.iter().map(|column| column.name().to_owned()).collect();
        let cells =
            |row: ::parquet::record::Row| row.into_columns().into_iter().map(|(_, cell)| cell).collect();
        (names, reader.get_row_iter(None).unwrap().map(|row| cells(row.unwrap())).collect())
    }

    fn open(bytes: &[u8]) -> SerializedFileReader<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn the_file_has_the_columns_and_rows_of_the_csv() {
        let mut results = results();
        // A swept number, whole or not, and words.
        let swept = [("7", "1e-3", "mean"), ("40", "0.5", "[256, 128]"), ("8", "2", "by-size")];
        for (curve, (devices, rate, word)) in results.iter_mut().zip(swept) {
            curve.keys =
                [("schedule.policy", "bc"), ("data.devices", devices), ("learn.rate", rate), ("x.y", word)]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .to_vec();
        }
        let (names, rows) = read(&write(&result_columns(&results)).unwrap());
        let csv = fedlink_study::results::csv(&results).unwrap();
        let mut reader = csv::Reader::from_reader(&csv[..]);
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names);
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), records.len());
        assert_eq!(names[..7], ["curve", "policy", "k", "data.devices", "learn.rate", "x.y", "seed"]);
        assert_eq!(
            rows[0][3..6],
            [Field::Long(7), Field::Double(0.001), Field::Str("mean".into())],
            "of the types that they have"
        );
        for (row, record) in rows.iter().zip(&records) {
            for (cell, text) in row.iter().zip(record) {
                match cell {
                    Field::Str(cell) => assert_eq!(cell, text),
                    Field::Long(cell) => assert_eq!(*cell, text.parse::<i64>().unwrap()),
                    Field::Double(cell) => assert_eq!(*cell, text.parse::<f64>().unwrap()),
                    other => panic!("{other:?} is of no type that we write"),
                }
            }
        }
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        for results in [vec![], vec![curve("bc", 1, 0)]] {
            let (names, rows) = read(&write(&result_columns(&results)).unwrap());
            assert_eq!((names.len(), rows.len()), (4 + row_columns(&results).len(), 0));
        }
    }

    #[test]
    fn tables_longer_than_a_group_keep_their_order() {
        let numbers: Vec<i64> = (0..GROUP as i64 + 3).collect();
        let file = write(&[Column::Whole("n".into(), numbers)]).unwrap();
        let reader = open(&file);
        let groups = reader.metadata().row_groups().iter();
        let sizes: Vec<i64> = groups.map(RowGroupMetaData::num_rows).collect();
        assert_eq!(sizes, [GROUP as i64, 3]);
        let ordered = reader
            .get_row_iter(None)
            .unwrap()
            .enumerate()
            .all(|(i, row)| row.unwrap().into_columns() == [("n".to_owned(), Field::Long(i as i64))]);
        assert!(ordered);
    }

    #[test]
    fn columns_of_unequal_length_are_an_error_that_names_them() {
        let error =
            write(&[Column::Whole("a".into(), vec![1, 2]), Column::Real("b".into(), vec![0.5])]).unwrap_err();
        assert_eq!(error.to_string(), "column b has 1 rows where a has 2");
        assert!(write(&[]).is_err());
    }

    proptest! {
        #[test]
        fn every_value_reads_back_to_the_bit(
            values in proptest::collection::vec(("\\PC{0,9}", any::<i64>(), any::<u64>()), 0..40),
        ) {
            // Any 64 bits are a real number, NaN and −0 included.
            let texts = values.iter().map(|value| value.0.clone()).collect();
            let wholes = values.iter().map(|value| value.1).collect();
            let reals = values.iter().map(|value| f64::from_bits(value.2)).collect();
            let columns =
                [
                    Column::Text("t".into(), texts),
                    Column::Whole("w".into(), wholes),
                    Column::Real("r".into(), reals),
                ];
            let file = write(&columns).unwrap();
            prop_assert_eq!(&file, &write(&columns).unwrap());
            let (_, rows) = read(&file);
            prop_assert_eq!(rows.len(), values.len());
            for (row, (text, whole, bits)) in rows.iter().zip(&values) {
                let [Field::Str(t), Field::Long(w), Field::Double(r)] = &row[..] else {
                    panic!("{row:?} has other types")
                };
                prop_assert_eq!((t, *w, r.to_bits()), (text, *whole, *bits));
            }
        }
    }
}
