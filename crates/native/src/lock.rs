use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock, also after a panic: what is guarded here is whole between any two of its calls.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
