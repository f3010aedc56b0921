/// Bytes that no server of this protocol sends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: \"{excerpt}\"")]
pub struct Malformed {
    what: &'static str,
    /// How they begin, escaped.
    excerpt: String,
}

#[cold]
pub(crate) fn malformed(what: &'static str, stream: &[u8]) -> Malformed {
    let excerpt = stream[..stream.len().min(60)].escape_ascii().to_string();
    Malformed { what, excerpt }
}
