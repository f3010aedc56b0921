//! The one door between Rust and Python; thin on purpose.
use pyo3::prelude::*;

mod antagonist;
mod ceiling;
mod load;
mod lock;
mod probe;

/// `rackscope._native`: probes, load generation, ceiling kernels and antagonists.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    probe::register(module)?;
    load::register(module)?;
    ceiling::register(module)?;
    antagonist::register(module)?;
    Ok(())
}
