//! A tick allocates nothing: every allocation of the sampling thread is counted.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use probe::{Host, ReaderSet, Sampler};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Set by threads whose allocations do not count.
    static UNCOUNTED: Cell<bool> = const { Cell::new(false) };
    /// Those of this thread, whether they count or not.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    let _ = OWN.try_with(|own| own.set(own.get() + 1));
    // A thread that is ending has no flag any more, and is not one that ticks.
    if !UNCOUNTED.try_with(Cell::get).unwrap_or(true) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator, which keeps the contract; counting touches no memory that
// is allocated here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Drains until `rows` more rows came.
fn wait_for(sampler: &mut Sampler, rows: usize) {
    let mut seen = 0;
    while seen < rows {
        seen += sampler.drain().timestamps.len();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn reading_power_meters_allocates_nothing() {
    UNCOUNTED.set(true);
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trees/server-2-packages");
    let mut set = ReaderSet::new(&Host::at(tree));
    assert!(
        set.columns()
            .iter()
            .any(|column| column.starts_with("power_watts"))
    );
    assert!(
        set.columns()
            .iter()
            .any(|column| column.starts_with("energy_joules_total"))
    );
    set.read();
    let before = OWN.get();
    for _ in 0..100 {
        set.read();
    }
    assert_eq!(OWN.get() - before, 0);
}

#[test]
fn nothing_is_allocated_per_tick() {
    UNCOUNTED.set(true);
    let host = Host {
        processes: vec![("system".to_owned(), std::process::id())],
        cgroups: vec![("system".to_owned(), "/".to_owned())],
        interval: Duration::from_millis(10),
        ..Host::live()
    };
    let mut sampler = Sampler::new(&host).unwrap();
    sampler.start().unwrap();
    // Two searches for new processes, one of them with this thread in it, lie within the first second.
    wait_for(&mut sampler, 110);
    assert!(
        ALLOCATIONS.load(Ordering::Relaxed) > 0,
        "the start of the thread was not counted"
    );
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    wait_for(&mut sampler, 150);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    sampler.stop().unwrap();
}
