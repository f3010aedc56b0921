//! Bindings for the `probe` crate.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::lock::lock;
use ::probe::{Host, MeterSpec, ProbeError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pythonize::pythonize;

/// Samples the host on a thread of its own, on absolute ticks.
#[pyclass(module = "rackscope._native")]
pub(crate) struct Sampler(Mutex<::probe::Sampler>);

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(signature = (*, root="/".to_owned(), interval_seconds=0.1, processes=None, cgroups=None, perf=true,
                        local_meters=true, meters_json=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        root: String,
        interval_seconds: f64,
        processes: Option<HashMap<String, u32>>,
        cgroups: Option<HashMap<String, String>>,
        perf: bool,
        local_meters: bool,
        meters_json: Option<String>,
    ) -> PyResult<Self> {
        let mut host = Host::at(root);
        host.processes = sorted(processes);
        host.cgroups = sorted(cgroups);
        host.perf = perf;
        host.local_meters = local_meters;
        host.meters = meters(meters_json)?;
        host.interval = Duration::try_from_secs_f64(interval_seconds).map_err(|_| {
            PyValueError::new_err(format!(
                "an interval of {interval_seconds} s is not a valid interval"
            ))
        })?;
        let sampler = py.detach(|| ::probe::Sampler::new(&host)).map_err(raise)?;
        Ok(Self(Mutex::new(sampler)))
    }

    #[getter]
    fn columns(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| lock(&self.0).columns().to_vec())
    }

    #[getter]
    fn probes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let probes = py.detach(|| lock(&self.0).probes().to_vec());
        Ok(pythonize(py, &probes)?)
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.0).start()).map_err(raise)
    }

    fn drain<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let (timestamps, values) = py.detach(|| {
            let rows = lock(&self.0).drain();
            let timestamps: Vec<u8> = rows
                .timestamps
                .iter()
                .flat_map(|time| time.to_ne_bytes())
                .collect();
            let values: Vec<u8> = rows
                .values
                .iter()
                .flat_map(|value| value.to_ne_bytes())
                .collect();
            (timestamps, values)
        });
        (PyBytes::new(py, &timestamps), PyBytes::new(py, &values))
    }

    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary = py.detach(|| lock(&self.0).stop()).map_err(raise)?;
        Ok(pythonize(py, &summary)?)
    }
}

/// What `Sampler.probes` would say, without starting one.
#[pyfunction]
#[pyo3(signature = (root="/".to_owned(), meters_json=None))]
pub(crate) fn list_probes(
    py: Python<'_>,
    root: String,
    meters_json: Option<String>,
) -> PyResult<Bound<'_, PyAny>> {
    let host = Host {
        meters: meters(meters_json)?,
        ..Host::at(root)
    };
    let probes = py.detach(|| ::probe::list_probes(&host));
    Ok(pythonize(py, &probes)?)
}

/// The power meters that the user names.
fn meters(json: Option<String>) -> PyResult<Vec<MeterSpec>> {
    let Some(json) = json else {
        return Ok(Vec::new());
    };
    let meters: Vec<MeterSpec> = serde_json::from_str(&json)
        .map_err(|error| PyValueError::new_err(format!("power meters: {error}")))?;
    for meter in &meters {
        meter
            .check()
            .map_err(|reason| PyValueError::new_err(format!("power meters: {reason}")))?;
    }
    Ok(meters)
}

/// Labels in a fixed order, so that columns are too.
fn sorted<T: Ord>(labelled: Option<HashMap<String, T>>) -> Vec<(String, T)> {
    let mut labelled: Vec<_> = labelled.unwrap_or_default().into_iter().collect();
    labelled.sort_unstable();
    labelled
}

fn raise(error: ProbeError) -> PyErr {
    match error {
        ProbeError::Interval(_) => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
