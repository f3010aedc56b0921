//! The cache engine.
