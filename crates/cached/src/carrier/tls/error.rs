/// Why TLS cannot be spoken: one of the files that the options name is of no use, or they leave nothing to be spoken.
#[derive(Debug, thiserror::Error)]
#[error("-o {0}")]
pub struct Error(pub(super) String);
