//! Where it is kept.
