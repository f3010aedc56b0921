//! Runs one system and outlives nobody.
fn main() {}
