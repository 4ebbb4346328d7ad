//! Tables by the Arrow C stream interface: pyarrow, polars, DuckDB and pandas read them without copying.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{ArrowError, DataType};
use fedlink::record::{
    Cell, CellKind, Column, DECISION_COLUMNS, Decision, ROW_COLUMNS, Row, TRANSMISSION_COLUMNS, Transmission,
};
use numpy::PyArray1;
use pyo3::exceptions::{PyImportError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Arc;

/// Rows that are shown of a table.
const SHOWN: usize = 8;

/// Named columns of equal length.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// One row as text.
    fn row(&self, row: usize) -> Vec<String> {
        let cell = |column: &ArrayRef| match column.data_type() {
            _ if column.is_null(row) => String::new(),
            DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
            DataType::Float32 => short(column.as_primitive::<Float32Type>().value(row).into()),
            DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
            DataType::Boolean => if column.as_boolean().value(row) { "yes" } else { "no" }.to_owned(),
            _ => short(column.as_primitive::<Float64Type>().value(row)),
        };
        self.batch.columns().iter().map(cell).collect()
    }
}

/// A number in six digits.
fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-4..1e9).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// One column as an array; a missing value is NaN.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.batch.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!(
                "there is no column {name:?}; there are {}",
                self.column_names().join(", ")
            ))
        })?;
        Ok(match column.data_type() {
            DataType::Int64 => {
                PyArray1::from_slice(py, column.as_primitive::<Int64Type>().values()).into_any()
            }
            DataType::Float32 => {
                PyArray1::from_slice(py, column.as_primitive::<Float32Type>().values()).into_any()
            }
            DataType::Utf8 => {
                let words: Vec<Option<&str>> = column.as_string::<i32>().iter().collect();
                py.import("numpy")?.call_method1("array", (words,))?
            }
            DataType::Boolean => {
                PyArray1::from_vec(py, column.as_boolean().values().iter().collect()).into_any()
            }
            _ => {
                let values = column.as_primitive::<Float64Type>().iter();
                PyArray1::from_vec(py, values.map(|value| value.unwrap_or(f64::NAN)).collect()).into_any()
            }
        })
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.batch.num_rows(), self.batch.num_columns());
        let header = self.column_names();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let shown: Vec<Vec<String>> = (0..rows.min(SHOWN)).map(|row| self.row(row)).collect();
        let more = if rows > SHOWN { format!("… {} more rows\n", rows - SHOWN) } else { String::new() };
        let table = fedlink_study::table::table(&header, &shown);
        format!("<fedlink.Table: {rows} rows × {columns} columns>\n{table}{more}").trim_end().to_owned()
    }

    fn _repr_html_(&self) -> String {
        let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let line = |cells: &[String], tag: &str| {
            let cells: Vec<String> =
                cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            let cells = cells.concat();
            format!("<tr>{cells}</tr>")
        };
        let rows = self.batch.num_rows();
        let head = line(&self.column_names(), "th");
        let body: String = (0..rows.min(SHOWN)).map(|row| line(&self.row(row), "td")).collect();
        let more =
            if rows > SHOWN { format!("<p>… {} more rows</p>", rows - SHOWN) } else { String::new() };
        format!("<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}")
    }

    /// The table as a `pyarrow.Table`, without copying.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = slf.py().import("pyarrow").map_err(|error| {
            let missing = PyImportError::new_err("to_arrow needs pyarrow: pip install pyarrow");
            missing.set_cause(slf.py(), Some(error));
            missing
        })?;
        pyarrow.call_method1("table", (slf,))
    }

    /// The table as a `pandas.DataFrame`; a missing value is NaN.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let pandas = py.import("pandas").map_err(|error| {
            let missing = PyImportError::new_err("to_pandas needs pandas: pip install pandas");
            missing.set_cause(py, Some(error));
            missing
        })?;
        if py.import("pyarrow").is_ok() {
            return Self::to_arrow(slf)?.call_method0("to_pandas");
        }
        let columns = PyDict::new(py);
        for name in slf.get().column_names() {
            columns.set_item(&name, slf.get().__getitem__(py, &name)?)?;
        }
        pandas.call_method1("DataFrame", (columns,))
    }

    /// The table as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the wish for another schema.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// A table of `rows` by its columns.
fn table<R>(rows: &[R], columns: &[Column<R>], more: Vec<(String, ArrayRef)>) -> PyResult<Table> {
    let column = |column: &Column<R>| (column.name.to_owned(), values(rows, column));
    let columns = columns.iter().map(column).chain(more);
    RecordBatch::try_from_iter(columns)
        .map(|batch| Table { batch })
        .map_err(|error: ArrowError| PyRuntimeError::new_err(error.to_string()))
}

/// A table of columns of equal length.
pub fn columns(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
    RecordBatch::try_from_iter(columns)
        .map(|batch| Table { batch })
        .map_err(|error: ArrowError| PyRuntimeError::new_err(error.to_string()))
}

/// One column. Whole numbers are signed, so that differences of them are right.
fn values<R>(rows: &[R], column: &Column<R>) -> ArrayRef {
    let cells = || rows.iter().map(|row| (column.value)(row));
    let real = |cell: Cell| match cell {
        Cell::Empty => None,
        cell => Some(cell.number()),
    };
    match column.kind {
        // A missing value is NaN in NumPy, which integers do not have.
        CellKind::Whole if column.optional => Arc::new(cells().map(real).collect::<Float64Array>()),
        CellKind::Whole => Arc::new(
            cells()
                .map(|cell| match cell {
                    Cell::Whole(number) => i64::try_from(number).ok(),
                    _ => None,
                })
                .collect::<Int64Array>(),
        ),
        CellKind::Real => Arc::new(cells().map(real).collect::<Float64Array>()),
        CellKind::Single => Arc::new(
            cells()
                .map(|cell| match cell {
                    Cell::Single(number) => Some(number),
                    _ => None,
                })
                .collect::<Float32Array>(),
        ),
        CellKind::Text => Arc::new(
            cells()
                .map(|cell| match cell {
                    Cell::Text(word) => Some(word),
                    _ => None,
                })
                .collect::<StringArray>(),
        ),
    }
}

/// One row for each round: the columns of `results.csv`, and one for each further metric of the task.
pub fn rounds(rows: &[Row]) -> PyResult<Table> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.metrics) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let metric = |name: &&str| {
        let value = |row: &Row| row.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let values: ArrayRef = Arc::new(rows.iter().map(value).collect::<Float64Array>());
        ((*name).to_owned(), values)
    };
    table(rows, ROW_COLUMNS, names.iter().map(metric).collect())
}

/// One row for each transmission: the columns of `rounds.csv`.
pub fn transmissions(rows: &[Transmission]) -> PyResult<Table> {
    table(rows, TRANSMISSION_COLUMNS, Vec::new())
}

/// The same with the numbers that the policy decided by: the columns of `rounds.csv` with `--log-rounds all`.
pub fn decisions(rows: &[Transmission], decisions: &[Decision]) -> PyResult<Table> {
    let more = DECISION_COLUMNS.iter().map(|column| (column.name.to_owned(), values(decisions, column)));
    table(rows, TRANSMISSION_COLUMNS, more.collect())
}
