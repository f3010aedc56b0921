//! Atomics: the model checker has [others](../tests/sync.rs).

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
