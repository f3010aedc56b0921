//! Bindings for the `probe` crate.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ::probe::{Host, MeterSpec, Probe, ProbeError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sampler>()?;
    module.add_function(wrap_pyfunction!(list_probes, module)?)
}

/// Samples the host on a thread of its own, on absolute ticks.
#[pyclass(module = "rackscope._native")]
struct Sampler(Mutex<::probe::Sampler>);

impl Sampler {
    fn lock(&self) -> MutexGuard<'_, ::probe::Sampler> {
        // A sampler is whole between any two of its calls, so that a panic in one does not spoil it.
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

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
        py.detach(|| self.lock().columns().to_vec())
    }

    #[getter]
    fn probes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let probes = py.detach(|| self.lock().probes().to_vec());
        probes.iter().map(|probe| as_dict(py, probe)).collect()
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().start()).map_err(raise)
    }

    fn drain<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let (timestamps, values) = py.detach(|| {
            let rows = self.lock().drain();
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

    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = py.detach(|| self.lock().stop()).map_err(raise)?;
        let dict = PyDict::new(py);
        dict.set_item("ticks", summary.ticks as f64)?;
        dict.set_item("missed_ticks", summary.missed_ticks as f64)?;
        dict.set_item("dropped_rows", summary.dropped_rows as f64)?;
        dict.set_item("cpu_seconds", summary.cpu_seconds)?;
        dict.set_item("wall_seconds", summary.wall_seconds)?;
        dict.set_item("worst_lateness_seconds", summary.worst_lateness_seconds)?;
        dict.set_item("nice", f64::from(summary.nice))?;
        Ok(dict)
    }
}

/// What `Sampler.probes` would say, without starting one.
#[pyfunction]
#[pyo3(signature = (root="/".to_owned(), meters_json=None))]
fn list_probes(
    py: Python<'_>,
    root: String,
    meters_json: Option<String>,
) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let host = Host {
        meters: meters(meters_json)?,
        ..Host::at(root)
    };
    let probes = py.detach(|| ::probe::list_probes(&host));
    probes.iter().map(|probe| as_dict(py, probe)).collect()
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

fn as_dict<'py>(py: Python<'py>, probe: &Probe) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &probe.name)?;
    dict.set_item("status", probe.status.as_str())?;
    dict.set_item("reason", &probe.reason)?;
    dict.set_item("needs", probe.needs)?;
    dict.set_item("columns", &probe.columns)?;
    dict.set_item("seconds_per_read", probe.seconds_per_read)?;
    Ok(dict)
}

fn raise(error: ProbeError) -> PyErr {
    match error {
        ProbeError::Interval { .. } => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
