//! Bindings for the `antagonist` crate.
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::lock::lock;
use ::antagonist::channel::{Channel, Hold};
use ::antagonist::threads::{Antagonist, Options};
use ::antagonist::{Error, cache};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Longest that one call may measure: an interrupt from the keyboard is only seen between calls.
const LONGEST_SECONDS: f64 = 60.0;

/// See `_native.pyi`.
#[pyclass(name = "Antagonist", module = "rackscope._native", frozen)]
pub(crate) struct PyAntagonist(Mutex<Antagonist>);

#[pymethods]
impl PyAntagonist {
    #[new]
    #[pyo3(signature = (kind, cores, *, duty=1.0, bytes_per_second=None, buffer_bytes=None, nice=0))]
    fn new(
        py: Python<'_>,
        kind: &str,
        cores: Vec<usize>,
        duty: f64,
        bytes_per_second: Option<f64>,
        buffer_bytes: Option<usize>,
        nice: i32,
    ) -> PyResult<Self> {
        let options = Options {
            kind: kind.parse().map_err(raise)?,
            cores,
            duty,
            bytes_per_second,
            buffer_bytes,
            nice,
        };
        py.detach(|| Antagonist::start(&options))
            .map(|antagonist| Self(Mutex::new(antagonist)))
            .map_err(raise)
    }

    #[getter]
    fn moved_bytes(&self, py: Python<'_>) -> u64 {
        py.detach(|| lock(&self.0).moved_bytes())
    }

    #[getter]
    fn busy_seconds(&self, py: Python<'_>) -> f64 {
        py.detach(|| lock(&self.0).busy().as_secs_f64())
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| lock(&self.0).stop());
    }
}

/// See `_native.pyi`.
#[pyclass(name = "RegulatedChannel", module = "rackscope._native", frozen)]
pub(crate) struct PyRegulatedChannel {
    path: PathBuf,
    channel: Channel,
}

#[pymethods]
impl PyRegulatedChannel {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let channel = py.detach(|| Channel::open(&path)).map_err(raise)?;
        Ok(Self { path, channel })
    }

    #[getter]
    fn bytes_per_second(&self) -> u64 {
        self.channel.bytes_per_second()
    }

    #[getter]
    fn bytes_per_second_left(&self) -> u64 {
        self.channel.bytes_per_second_left()
    }

    #[getter]
    fn carried_bytes(&self) -> u64 {
        self.channel.carried_bytes()
    }

    fn measure(&self, py: Python<'_>, seconds: f64) -> PyResult<f64> {
        if !(seconds > 0.0 && seconds <= LONGEST_SECONDS) {
            return Err(PyValueError::new_err(format!(
                "a measurement of {seconds} s is not possible: above 0 and up to {LONGEST_SECONDS} s are"
            )));
        }
        let (bytes, time) = py.detach(|| self.channel.measure(Duration::from_secs_f64(seconds)));
        Ok(bytes as f64 / time.as_secs_f64())
    }

    fn hold(&self, py: Python<'_>, fraction: f64) -> PyResult<PyChannelHold> {
        py.detach(|| Hold::start(&self.path, fraction))
            .map(|hold| PyChannelHold(Mutex::new(hold)))
            .map_err(raise)
    }
}

/// See `_native.pyi`.
#[pyclass(name = "ChannelHold", module = "rackscope._native", frozen)]
pub(crate) struct PyChannelHold(Mutex<Hold>);

#[pymethods]
impl PyChannelHold {
    fn stop(&self, py: Python<'_>) -> u64 {
        py.detach(|| lock(&self.0).stop())
    }
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (root=PathBuf::from("/")))]
pub(crate) fn last_level_cache_bytes(py: Python<'_>, root: PathBuf) -> Option<usize> {
    py.detach(|| cache::last_level_cache_bytes(&root))
}

fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Argument(_) | Error::Host(ceiling::Error::Argument(_)) => {
            PyValueError::new_err(text)
        }
        Error::Held(_) => PyRuntimeError::new_err(text),
        Error::Host(_) => PyOSError::new_err(text),
    }
}
