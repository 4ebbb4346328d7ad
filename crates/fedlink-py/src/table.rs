//! Tables by the Arrow C stream interface: pyarrow, polars, DuckDB and pandas read them without copying.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType};
use fedlink::record::{RoundRecord, Transmission};
use fedlink::units::Power;
use numpy::PyArray1;
use pyo3::exceptions::{PyImportError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Arc;

/// Named columns of equal length.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Table {
    batch: RecordBatch,
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

    /// One column as an array; what is missing is NaN.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.batch.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!(
                "there is no column {name:?}; there are {}",
                self.column_names().join(", ")
            ))
        })?;
        Ok(match column.data_type() {
            DataType::UInt32 => {
                PyArray1::from_slice(py, column.as_primitive::<UInt32Type>().values()).into_any()
            }
            DataType::UInt64 => {
                PyArray1::from_slice(py, column.as_primitive::<UInt64Type>().values()).into_any()
            }
            DataType::Float32 => {
                PyArray1::from_slice(py, column.as_primitive::<Float32Type>().values()).into_any()
            }
            _ => {
                let values = column.as_primitive::<Float64Type>().iter();
                PyArray1::from_vec(py, values.map(|value| value.unwrap_or(f64::NAN)).collect()).into_any()
            }
        })
    }

    /// The table as a `pyarrow.Table`, without copying.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = slf.py().import("pyarrow").map_err(|error| {
            let missing = PyImportError::new_err("to_arrow needs pyarrow: pip install fedlink[arrow]");
            missing.set_cause(slf.py(), Some(error));
            missing
        })?;
        pyarrow.call_method1("table", (slf,))
    }

    /// The table as a `pandas.DataFrame`; what is missing is NaN.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let pandas = py.import("pandas").map_err(|error| {
            let missing = PyImportError::new_err("to_pandas needs pandas: pip install fedlink[pandas]");
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

fn table(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
    RecordBatch::try_from_iter(columns)
        .map(|batch| Table { batch })
        .map_err(|error: ArrowError| PyRuntimeError::new_err(error.to_string()))
}

/// One row for each round.
pub fn rounds(records: &[RoundRecord]) -> PyResult<Table> {
    let sent = |record: &RoundRecord| record.transmissions.iter().map(|sent| sent.bits.0).sum::<f64>();
    let mut so_far = 0.0;
    let total: Vec<f64> = records
        .iter()
        .map(|record| {
            // In the order in which the run itself adds them up.
            record.transmissions.iter().for_each(|sent| so_far += sent.bits.0);
            so_far
        })
        .collect();
    let mean_q = |record: &RoundRecord| {
        record.transmissions.iter().map(|sent| sent.q as f64).sum::<f64>() / record.transmissions.len() as f64
    };
    let silent = |record: &RoundRecord| record.transmissions.iter().filter(|sent| sent.q == 0).count() as u64;
    let evaluated = |value: fn(&fedlink::record::Evaluation) -> f64| {
        optional(records.iter().map(|record| record.evaluation.as_ref().map(value)))
    };
    table(vec![
        ("round", whole(records.iter().map(|record| record.round))),
        ("test_accuracy", evaluated(|evaluation| evaluation.accuracy)),
        ("test_loss", evaluated(|evaluation| evaluation.loss)),
        ("train_loss", real(records.iter().map(|record| record.train_loss))),
        ("trained", whole(records.iter().map(|record| record.trained as u64))),
        ("bits", real(records.iter().map(sent))),
        ("total_bits", real(total)),
        ("mean_q", real(records.iter().map(mean_q))),
        ("silent_devices", whole(records.iter().map(silent))),
    ])
}

/// One row for each transmission: the columns of `rounds.csv`.
pub fn transmissions(records: &[RoundRecord], power: Power) -> PyResult<Table> {
    let rows = || {
        records.iter().flat_map(|record| record.transmissions.iter().map(move |sent| (record.round, sent)))
    };
    let column = |value: fn(&Transmission) -> f64| real(rows().map(|(_, sent)| value(sent)));
    let devices = arrow_array::UInt32Array::from_iter_values(rows().map(|(_, sent)| sent.device.0));
    let reports = arrow_array::Float32Array::from_iter_values(rows().map(|(_, sent)| sent.report));
    table(vec![
        ("round", whole(rows().map(|(round, _)| round))),
        ("device", Arc::new(devices)),
        ("gain", column(|sent| sent.gain)),
        ("capacity", column(|sent| sent.capacity)),
        ("report", Arc::new(reports)),
        ("weight", column(|sent| sent.weight)),
        ("symbols", column(|sent| sent.symbols.0)),
        ("budget", column(|sent| sent.budget.0)),
        ("q", whole(rows().map(|(_, sent)| sent.q as u64))),
        ("bits", column(|sent| sent.bits.0)),
        ("entries", whole(rows().map(|(_, sent)| sent.entries as u64))),
        ("power", real(rows().map(|_| power.0))),
    ])
}

fn whole(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(arrow_array::UInt64Array::from_iter_values(values))
}

fn real(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(arrow_array::Float64Array::from_iter_values(values))
}

fn optional(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(arrow_array::Float64Array::from_iter(values))
}
