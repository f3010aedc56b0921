//! The one door between Rust and Python; thin on purpose.
use pyo3::prelude::*;

mod ceiling;
mod load;
mod probe;

/// `rackscope._native`: probes, load generation and ceiling kernels.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    probe::register(module)?;
    load::register(module)?;
    ceiling::register(module)?;
    Ok(())
}
