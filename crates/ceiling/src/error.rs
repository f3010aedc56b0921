//! What can go wrong while measuring a ceiling.

use std::io;

/// Why a ceiling could not be measured. The text is a full clause that names the core, size or address concerned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument that no measurement can be made with.
    #[error("{0}")]
    Argument(String),
    /// A thread could not be placed on the core that was asked for.
    #[error("core {core} cannot be used by this process: {source}")]
    Core {
        /// The core that was asked for.
        core: usize,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The kernel did not give the memory.
    #[error("{bytes} bytes of memory could not be mapped: {source}")]
    Memory {
        /// Bytes that were asked for.
        bytes: usize,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("a measuring thread for core {core} could not be started: {source}")]
    Thread {
        /// The core that it was meant for.
        core: usize,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The right to real-time priority is missing.
    #[error("a thread could not be given real-time priority: {0}")]
    Priority(#[source] io::Error),
    /// A loopback connection failed.
    #[error("the loopback connection failed while {doing}: {source}")]
    Loopback {
        /// What was being done, such as "listening on 127.0.0.1".
        doing: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
}
