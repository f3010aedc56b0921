//! The one door between Rust and Python; thin on purpose.

mod antagonist;
mod ceiling;
mod load;
mod lock;
mod probe;

/// `rackscope._native`: probes, load generation, ceiling kernels and antagonists.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::antagonist::{
        PyAntagonist, PyChannelHold, PyRegulatedChannel, last_level_cache_bytes,
    };
    #[pymodule_export]
    use crate::ceiling::{
        PySpeedometer, PyStallMeter, measure_core_clock, measure_dram_bandwidth,
        measure_dram_latency, measure_instruction_rate, measure_loopback_bandwidth, stay_awake,
    };
    #[pymodule_export]
    use crate::load::{PyLoadClient, PyNullResponder};
    #[pymodule_export]
    use crate::probe::{Sampler, list_probes};
}
