use std::path::PathBuf;

/// Why TLS cannot be spoken: one of the files that the options name is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("-o {option}={}: it cannot be read: {source}", .path.display())]
    Read {
        option: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file has not what it should.
    #[error("-o {option}={}: {what}", .path.display())]
    Content {
        option: &'static str,
        path: PathBuf,
        what: String,
    },
    /// Versions and suites leave nothing that could be spoken.
    #[error("-o {option}: {what}")]
    Settings { option: &'static str, what: String },
}
