//! Atomics of the model checker, in place of `sync`.

use loom::sync::atomic::{AtomicBool as Bool, AtomicU32 as U32, AtomicU64 as U64};
pub(crate) use loom::sync::atomic::{Ordering, fence};
use std::cell::Cell;

loom::thread_local! {
    /// Whether this thread may write, alone or because it has the lock.
    static WRITES: Cell<bool> = Cell::new(false);
}

/// From now on, this thread may write.
#[cfg(test)]
pub(crate) fn become_writer() {
    WRITES.with(|writes| writes.set(true));
}

/// Whoever may write knows what was written last: no other value is tried, and the checker fails if somebody else could
/// have written meanwhile. It also needs these loads apart: of a store, it reverses the order with the last access before
/// it, so that a load by the same thread would hide those of readers.
macro_rules! atomic {
    ($name:ident, $checked:ident, $value:ty) => {
        pub(crate) struct $name($checked);

        impl $name {
            pub fn new(value: $value) -> Self {
                Self($checked::new(value))
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                match WRITES.with(Cell::get) {
                    // SAFETY: checked, as above.
                    true => unsafe { self.0.unsync_load() },
                    false => self.0.load(order),
                }
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                // A value that is there already tells nobody anything but what was done before, which none may rely on.
                if self.load(Ordering::Relaxed) != value {
                    self.0.store(value, order);
                }
            }
        }
    };
}

atomic!(AtomicBool, Bool, bool);
atomic!(AtomicU32, U32, u32);
atomic!(AtomicU64, U64, u64);
