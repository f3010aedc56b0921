//! Bindings for the `load` crate.
use crate::lock::lock;
use ::load::{Error, LoadClient, NullResponder};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use std::sync::Mutex;
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
pub(crate) struct PyLoadClient(LoadClient);

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

    fn phase_result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let result = py.detach(|| self.0.phase_result()).map_err(to_python)?;
        Ok(pythonize(py, &result)?)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// See `_native.pyi`.
#[pyclass(name = "NullResponder", module = "rackscope._native", frozen)]
pub(crate) struct PyNullResponder {
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
        py.detach(|| lock(&self.responder).stop());
    }
}
