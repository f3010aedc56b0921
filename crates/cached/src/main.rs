//! The cache engine as a program.
fn main() {}
