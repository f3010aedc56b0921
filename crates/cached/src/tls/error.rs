use std::path::PathBuf;

/// Why TLS cannot be spoken: one of the files that the options name is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("-o {option}={}: it cannot be read: {source}", .path.display())]
    Read {
        /// The option that names it.
        option: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file has not what it should.
    #[error("-o {option}={}: {what}", .path.display())]
    Content {
        /// The option that names it.
        option: &'static str,
        /// Its path.
        path: PathBuf,
        /// What is wrong with it, and what it should be.
        what: String,
    },
    /// Versions and suites leave nothing that could be spoken.
    #[error("-o {option}: {what}")]
    Settings {
        /// The option that asks for it.
        option: &'static str,
        /// Why it cannot be.
        what: String,
    },
}
