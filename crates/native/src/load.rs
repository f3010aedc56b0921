//! Bindings for the `load` crate.
use ::load::{Error, LoadClient, NullResponder, PhaseResult};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long to be without a look at Python's signals.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

fn to_python(error: Error) -> PyErr {
    let sentence = error.to_string();
    match error {
        Error::Config(_) => PyValueError::new_err(sentence),
        Error::Net(_) | Error::Xdp(_) | Error::System { .. } => PyOSError::new_err(sentence),
        Error::State(_) => PyRuntimeError::new_err(sentence),
    }
}

/// See `_native.pyi`.
#[pyclass(name = "LoadClient", module = "rackscope._native", frozen)]
struct PyLoadClient(LoadClient);

#[pymethods]
impl PyLoadClient {
    #[new]
    fn new(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        let client = py.detach(|| LoadClient::new(config_json));
        client.map(Self).map_err(to_python)
    }

    fn start_phase(&self, py: Python<'_>, phase_json: &str) -> PyResult<()> {
        py.detach(|| self.0.start_phase(phase_json))
            .map_err(to_python)
    }

    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.0.poll().into_iter().map(|interval| {
            let row = PyDict::new(py);
            row.set_item("timestamp_ns", interval.timestamp_ns)?;
            for (name, value) in interval.metrics {
                row.set_item(name, value)?;
            }
            Ok(row)
        });
        rows.collect()
    }

    fn wait(&self, py: Python<'_>, timeout_seconds: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout_seconds).map_err(|_| {
            PyValueError::new_err("timeout_seconds must be a number of seconds, 0 or more")
        })?;
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if py.detach(|| self.0.wait(left.min(SIGNAL_CHECK))) {
                return Ok(true);
            }
            py.check_signals()?;
            if left <= SIGNAL_CHECK {
                return Ok(false);
            }
        }
    }

    fn stop_phase(&self, py: Python<'_>) {
        py.detach(|| self.0.stop_phase());
    }

    fn phase_result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let result = py.detach(|| self.0.phase_result()).map_err(to_python)?;
        result_dict(py, result)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

fn result_dict(py: Python<'_>, result: PhaseResult) -> PyResult<Bound<'_, PyDict>> {
    let per_operation = PyDict::new(py);
    for (operation, counts) in result.per_operation {
        let dict = PyDict::new(py);
        dict.set_item("count", counts.count)?;
        dict.set_item("errors", counts.errors)?;
        dict.set_item("hits", counts.hits)?;
        dict.set_item("misses", counts.misses)?;
        per_operation.set_item(operation.name(), dict)?;
    }
    let histograms = result.histograms.into_iter().map(|histogram| {
        let dict = PyDict::new(py);
        dict.set_item("operation", histogram.operation.name())?;
        dict.set_item("kind", histogram.kind)?;
        dict.set_item("grouping_power", histogram.grouping_power)?;
        dict.set_item("max_value_power", histogram.max_value_power)?;
        dict.set_item("index", histogram.index)?;
        dict.set_item("count", histogram.count)?;
        dict.set_item("mean_seconds", histogram.mean_seconds)?;
        dict.set_item("max_seconds", histogram.max_seconds)?;
        Ok(dict)
    });
    let histograms: Vec<Bound<'_, PyDict>> = histograms.collect::<PyResult<_>>()?;
    let dict = PyDict::new(py);
    dict.set_item("name", result.name)?;
    dict.set_item("start_ns", result.start_ns)?;
    dict.set_item("end_ns", result.end_ns)?;
    dict.set_item("duration_seconds", result.duration_seconds)?;
    dict.set_item("operations", result.operations)?;
    dict.set_item("errors", result.errors)?;
    dict.set_item("hits", result.hits)?;
    dict.set_item("misses", result.misses)?;
    dict.set_item("wrong_values", result.wrong_values)?;
    dict.set_item("first_wrong", result.first_wrong)?;
    dict.set_item("first_error", result.first_error)?;
    dict.set_item("bytes_sent", result.bytes_sent)?;
    dict.set_item("bytes_received", result.bytes_received)?;
    dict.set_item(
        "offered_operations_per_second",
        result.offered_operations_per_second,
    )?;
    dict.set_item("unsent_operations", result.unsent_operations)?;
    dict.set_item("generator_cpu_seconds", result.generator_cpu_seconds)?;
    dict.set_item("generator_idle_ratio", result.generator_idle_ratio)?;
    dict.set_item("lag_p99_seconds", result.lag_p99_seconds)?;
    dict.set_item("failed", result.failed)?;
    dict.set_item("per_operation", per_operation)?;
    dict.set_item("histograms", histograms)?;
    Ok(dict)
}

/// See `_native.pyi`.
#[pyclass(name = "NullResponder", module = "rackscope._native", frozen)]
struct PyNullResponder {
    endpoint: String,
    responder: Mutex<NullResponder>,
}

#[pymethods]
impl PyNullResponder {
    #[new]
    #[pyo3(signature = (protocol, endpoint_json, core=None))]
    fn new(
        py: Python<'_>,
        protocol: &str,
        endpoint_json: &str,
        core: Option<usize>,
    ) -> PyResult<Self> {
        let responder = py
            .detach(|| NullResponder::new(protocol, endpoint_json, core))
            .map_err(to_python)?;
        Ok(Self {
            endpoint: responder.endpoint(),
            responder: Mutex::new(responder),
        })
    }

    #[getter]
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            self.responder
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .stop();
        });
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLoadClient>()?;
    module.add_class::<PyNullResponder>()
}
