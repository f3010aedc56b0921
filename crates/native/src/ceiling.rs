//! Bindings for the `ceiling` crate.
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ceiling::bandwidth::{Kind, Stores, measure_bandwidth};
use ceiling::instructions;
use ceiling::latency;
use ceiling::loopback;
use ceiling::speedometer::Speedometer;
use ceiling::stalls::StallMeter;
use ceiling::team::{Rounds, median, usable_cores};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Longest that one call may measure: an interrupt from the keyboard is only seen between calls.
const LONGEST_SECONDS: f64 = 60.0;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySpeedometer>()?;
    module.add_class::<PyStallMeter>()?;
    module.add_function(wrap_pyfunction!(measure_instruction_rate, module)?)?;
    module.add_function(wrap_pyfunction!(measure_core_clock, module)?)?;
    module.add_function(wrap_pyfunction!(measure_dram_bandwidth, module)?)?;
    module.add_function(wrap_pyfunction!(measure_dram_latency, module)?)?;
    module.add_function(wrap_pyfunction!(measure_loopback_bandwidth, module)?)?;
    module.add_function(wrap_pyfunction!(stay_awake, module)?)?;
    Ok(())
}

/// See `_native.pyi`.
#[pyclass(name = "Speedometer", module = "rackscope._native", frozen)]
struct PySpeedometer(Mutex<Speedometer>);

impl PySpeedometer {
    fn lock(&self) -> MutexGuard<'_, Speedometer> {
        // It is whole between any two of its calls, so that a panic in one does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PySpeedometer {
    #[new]
    fn new(py: Python<'_>, cores: Vec<usize>) -> PyResult<Self> {
        py.detach(|| Speedometer::start(&cores))
            .map(|speedometer| Self(Mutex::new(speedometer)))
            .map_err(raise)
    }

    fn read(&self, py: Python<'_>) -> Vec<(u64, f64)> {
        py.detach(|| self.lock().read())
            .into_iter()
            .map(|reading| (reading.instructions, reading.busy.as_secs_f64()))
            .collect()
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.lock().stop());
    }
}

/// See `_native.pyi`.
#[pyclass(name = "StallMeter", module = "rackscope._native", frozen)]
struct PyStallMeter(Mutex<StallMeter>);

impl PyStallMeter {
    fn lock(&self) -> MutexGuard<'_, StallMeter> {
        // As above.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyStallMeter {
    #[new]
    fn new(py: Python<'_>, cores: Vec<usize>) -> PyResult<Self> {
        py.detach(|| StallMeter::start(&cores))
            .map(|meter| Self(Mutex::new(meter)))
            .map_err(raise)
    }

    fn read(&self, py: Python<'_>) -> Vec<(f64, f64)> {
        py.detach(|| self.lock().read())
            .into_iter()
            .map(|reading| (reading.stalled.as_secs_f64(), reading.watched.as_secs_f64()))
            .collect()
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.lock().stop());
    }
}

/// Instructions a second of a kernel with a known number of instructions, on all `cores` at once.
#[pyfunction]
fn measure_instruction_rate(
    py: Python<'_>,
    seconds: f64,
    cores: Vec<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let budget = budget(seconds)?;
    let measured = py
        .detach(|| instructions::measure_instruction_rate(&cores, budget))
        .map_err(raise)?;
    let result = PyDict::new(py);
    let rates = describe(&result, &measured.rounds)?;
    result.set_item("instructions_per_second", best(&rates))?;
    result.set_item("median_instructions_per_second", median(&rates))?;
    result.set_item("instructions", measured.rounds.amount())?;
    result.set_item("exact", measured.exact)?;
    Ok(result)
}

/// The clock of one core from a chain of dependent additions, or `None` where there is no such kernel.
#[pyfunction]
fn measure_core_clock(
    py: Python<'_>,
    seconds: f64,
    core: usize,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let budget = budget(seconds)?;
    let measured = py
        .detach(|| instructions::measure_core_clock(core, budget))
        .map_err(raise)?;
    let Some(rounds) = measured else {
        return Ok(None);
    };
    let result = PyDict::new(py);
    let rates = describe(&result, &rounds)?;
    result.set_item("hertz", best(&rates))?;
    result.set_item("median_hertz", median(&rates))?;
    Ok(Some(result))
}

/// Spins until `parent` is this process's parent no more.
#[pyfunction]
fn stay_awake(py: Python<'_>, parent: i32) {
    py.detach(|| ceiling::awake::stay_awake(parent));
}

/// Bytes a second that `threads` pinned threads read, write or copy; on `cores`, or on the first that may be used.
#[pyfunction]
#[pyo3(signature = (kind, threads, bytes_per_thread, seconds, cores=None))]
fn measure_dram_bandwidth<'py>(
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
    let result = PyDict::new(py);
    let rates = describe(&result, &measured.rounds)?;
    result.set_item("bytes_per_second", best(&rates))?;
    result.set_item("median_bytes_per_second", median(&rates))?;
    result.set_item("bytes_moved", measured.rounds.amount())?;
    result.set_item("buffer_bytes", measured.buffer_bytes)?;
    result.set_item("huge_page_bytes", measured.huge_page_bytes)?;
    result.set_item("instruction_set", measured.instructions)?;
    let stores = measured.stores.map(|stores| match stores {
        Stores::NonTemporal => "non-temporal",
        Stores::Ordinary => "ordinary",
    });
    result.set_item("stores", stores)?;
    Ok(result)
}

/// Seconds a load of a dependent chain over `working_set_bytes`.
#[pyfunction]
#[pyo3(signature = (working_set_bytes, seconds, core=None))]
fn measure_dram_latency(
    py: Python<'_>,
    working_set_bytes: usize,
    seconds: f64,
    core: Option<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let budget = budget(seconds)?;
    let core = match core {
        Some(core) => core,
        None => usable_cores()
            .map_err(raise)?
            .first()
            .copied()
            .unwrap_or_default(),
    };
    let measured = py
        .detach(|| latency::measure_latency(core, working_set_bytes, budget))
        .map_err(raise)?;
    let result = PyDict::new(py);
    let rates = describe(&result, &measured.rounds)?;
    result.set_item("seconds_per_load", best(&rates).recip())?;
    result.set_item("median_seconds_per_load", median(&rates).recip())?;
    result.set_item("loads", measured.rounds.amount())?;
    result.set_item("working_set_bytes", measured.working_set_bytes)?;
    result.set_item("huge_page_bytes", measured.huge_page_bytes)?;
    Ok(result)
}

/// Bytes a second through one TCP connection over 127.0.0.1.
#[pyfunction]
fn measure_loopback_bandwidth(
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

/// Writes what every measurement by rounds says about itself; returns the rates.
fn describe<State>(result: &Bound<'_, PyDict>, rounds: &Rounds<State>) -> PyResult<Vec<f64>> {
    let rates = rounds.rates();
    result.set_item("seconds", rounds.duration().as_secs_f64())?;
    result.set_item("start_ns", wall_clock_ns(rounds.window.0))?;
    result.set_item("end_ns", wall_clock_ns(rounds.window.1))?;
    result.set_item("rates_per_second", &rates)?;
    Ok(rates)
}

/// Nanoseconds since the epoch of a past instant, by the monotonic clock from now back.
fn wall_clock_ns(instant: Instant) -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(instant.elapsed()).as_nanos() as u64
}

fn best(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(f64::NAN, f64::max)
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
        ceiling::Error::Core { .. }
        | ceiling::Error::Memory { .. }
        | ceiling::Error::Thread { .. }
        | ceiling::Error::Priority(_)
        | ceiling::Error::Loopback { .. } => PyOSError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}
