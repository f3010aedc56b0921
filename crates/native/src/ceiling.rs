//! Bindings for the `ceiling` crate.
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::lock::lock;
use ceiling::bandwidth::{Kind, measure_bandwidth};
use ceiling::instructions;
use ceiling::latency;
use ceiling::loopback;
use ceiling::speedometer::Speedometer;
use ceiling::stalls::StallMeter;
use ceiling::team::{Rounds, median, usable_cores};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Longest that one call may measure: an interrupt from the keyboard is only seen between calls.
const LONGEST_SECONDS: f64 = 60.0;

/// Threads that watch cores until they are stopped: see `_native.pyi`.
macro_rules! watcher {
    ($class:ident, $name:literal, $watcher:ident, $row:ty, $reading:expr) => {
        #[pyclass(name = $name, module = "rackscope._native", frozen)]
        pub(crate) struct $class(Mutex<$watcher>);

        #[pymethods]
        impl $class {
            #[new]
            fn new(py: Python<'_>, cores: Vec<usize>) -> PyResult<Self> {
                py.detach(|| $watcher::start(&cores))
                    .map(|watcher| Self(Mutex::new(watcher)))
                    .map_err(raise)
            }

            fn read(&self, py: Python<'_>) -> Vec<$row> {
                let readings = py.detach(|| lock(&self.0).read());
                readings.into_iter().map($reading).collect()
            }

            fn stop(&self, py: Python<'_>) {
                py.detach(|| lock(&self.0).stop());
            }
        }
    };
}

watcher!(
    PySpeedometer,
    "Speedometer",
    Speedometer,
    (u64, f64),
    |one| (one.instructions, one.busy.as_secs_f64())
);
watcher!(PyStallMeter, "StallMeter", StallMeter, (f64, f64), |one| (
    one.stalled.as_secs_f64(),
    one.watched.as_secs_f64()
));

/// Instructions a second of a kernel with a known number of instructions, on all `cores` at once.
#[pyfunction]
pub(crate) fn measure_instruction_rate(
    py: Python<'_>,
    seconds: f64,
    cores: Vec<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let budget = budget(seconds)?;
    let measured = py
        .detach(|| instructions::measure_instruction_rate(&cores, budget))
        .map_err(raise)?;
    let result = describe(py, &measured.rounds, "instructions_per_second", |rate| rate)?;
    result.set_item("instructions", measured.rounds.amount())?;
    result.set_item("exact", measured.exact)?;
    Ok(result)
}

/// The clock of one core from a chain of dependent additions, or `None` where there is no such kernel.
#[pyfunction]
pub(crate) fn measure_core_clock(
    py: Python<'_>,
    seconds: f64,
    core: usize,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let budget = budget(seconds)?;
    let measured = py
        .detach(|| instructions::measure_core_clock(core, budget))
        .map_err(raise)?;
    measured
        .map(|rounds| describe(py, &rounds, "hertz", |rate| rate))
        .transpose()
}

/// Spins until `parent` is this process's parent no more.
#[pyfunction]
pub(crate) fn stay_awake(py: Python<'_>, parent: i32) {
    py.detach(|| ceiling::awake::stay_awake(parent));
}

/// Bytes a second that `threads` pinned threads read, write or copy; on `cores`, or on the first that may be used.
#[pyfunction]
#[pyo3(signature = (kind, threads, bytes_per_thread, seconds, cores=None))]
pub(crate) fn measure_dram_bandwidth<'py>(
    py: Python<'py>,
    kind: &str,
    threads: usize,
    bytes_per_thread: usize,
    seconds: f64,
    cores: Option<Vec<usize>>,
) -> PyResult<Bound<'py, PyDict>> {
    let kind: Kind = kind.parse().map_err(raise)?;
    let budget = budget(seconds)?;
    let mut cores = cores.map_or_else(usable_cores, Ok).map_err(raise)?;
    if threads == 0 || threads > cores.len() {
        return Err(PyValueError::new_err(format!(
            "{threads} threads cannot each have a core of their own: there are {} cores to use",
            cores.len()
        )));
    }
    cores.truncate(threads);
    let measured = py
        .detach(|| measure_bandwidth(kind, &cores, bytes_per_thread, budget))
        .map_err(raise)?;
    let result = describe(py, &measured.rounds, "bytes_per_second", |rate| rate)?;
    result.set_item("bytes_moved", measured.rounds.amount())?;
    result.set_item("buffer_bytes", measured.buffer_bytes)?;
    result.set_item("huge_page_bytes", measured.huge_page_bytes)?;
    result.set_item("instruction_set", measured.instructions)?;
    result.set_item("stores", measured.stores)?;
    Ok(result)
}

/// Seconds a load of a dependent chain over `working_set_bytes`.
#[pyfunction]
#[pyo3(signature = (working_set_bytes, seconds, core=None))]
pub(crate) fn measure_dram_latency(
    py: Python<'_>,
    working_set_bytes: usize,
    seconds: f64,
    core: Option<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let budget = budget(seconds)?;
    let first = || Ok(usable_cores()?.first().copied().unwrap_or_default());
    let core = core.map_or_else(first, Ok).map_err(raise)?;
    let measured = py
        .detach(|| latency::measure_latency(core, working_set_bytes, budget))
        .map_err(raise)?;
    let result = describe(py, &measured.rounds, "seconds_per_load", f64::recip)?;
    result.set_item("loads", measured.rounds.amount())?;
    result.set_item("working_set_bytes", measured.working_set_bytes)?;
    result.set_item("huge_page_bytes", measured.huge_page_bytes)?;
    Ok(result)
}

/// Bytes a second through one TCP connection over 127.0.0.1.
#[pyfunction]
pub(crate) fn measure_loopback_bandwidth(
    py: Python<'_>,
    seconds: f64,
    sender_core: usize,
    receiver_core: usize,
) -> PyResult<Bound<'_, PyDict>> {
    let budget = budget(seconds)?;
    let transfer = py
        .detach(|| loopback::measure_loopback_bandwidth(sender_core, receiver_core, budget))
        .map_err(raise)?;
    let seconds = transfer.duration.as_secs_f64();
    let result = PyDict::new(py);
    result.set_item("bytes_per_second", transfer.bytes as f64 / seconds)?;
    result.set_item("bytes_moved", transfer.bytes)?;
    result.set_item("seconds", seconds)?;
    Ok(result)
}

/// What every measurement by rounds says about itself, with the `figure` that `of` makes of the best and the median rate.
fn describe<'py, State>(
    py: Python<'py>,
    rounds: &Rounds<State>,
    figure: &str,
    of: fn(f64) -> f64,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let rates = rounds.rates();
    let best = rates.iter().copied().fold(f64::NAN, f64::max);
    result.set_item(figure, of(best))?;
    result.set_item(format!("median_{figure}"), of(median(&rates)))?;
    result.set_item("seconds", rounds.duration().as_secs_f64())?;
    result.set_item("start_ns", wall_clock_ns(rounds.window.0))?;
    result.set_item("end_ns", wall_clock_ns(rounds.window.1))?;
    result.set_item("rates_per_second", rates)?;
    Ok(result)
}

/// Nanoseconds since the epoch of a past instant, by the monotonic clock from now back.
fn wall_clock_ns(instant: Instant) -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(instant.elapsed()).as_nanos() as u64
}

fn budget(seconds: f64) -> PyResult<Duration> {
    if (0.0..=LONGEST_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(PyValueError::new_err(format!(
        "a measurement of {seconds} s is not possible: between 0 and {LONGEST_SECONDS} s are"
    )))
}

fn raise(error: ceiling::Error) -> PyErr {
    let text = error.to_string();
    match error {
        ceiling::Error::Argument(_) => PyValueError::new_err(text),
        ceiling::Error::Host { .. } => PyOSError::new_err(text),
    }
}
