//! What a benchmark was asked for.

/// The command line, without the program's name and what cargo adds.
pub fn arguments() -> Vec<String> {
    std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect()
}
