use super::*;
use loom::sync::Arc;
use loom::thread;

struct World {
    versions: Versions,
    words: [AtomicU64; 2],
    /// As the log's head: what is below may be overwritten.
    head: AtomicU64,
}

fn world() -> Arc<World> {
    Arc::new(World {
        versions: Versions::new(),
        words: [AtomicU64::new(0), AtomicU64::new(0)],
        head: AtomicU64::new(0),
    })
}

/// An item is changed in place, twice, while it is read.
#[test]
fn no_reader_accepts_a_torn_item() {
    loom::model(|| {
        let world = world();
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                for value in 1..3 {
                    let _writing = world.versions.write(0);
                    world.words[0].store(value, Relaxed);
                    world.words[1].store(value, Relaxed);
                }
            })
        };
        if let Some(seen) = world.versions.begin(0) {
            let read = [world.words[0].load(Relaxed), world.words[1].load(Relaxed)];
            if world.versions.is_unchanged(0, seen) {
                assert_eq!(read[0], read[1]);
            }
        }
        writer.join().unwrap();
    });
}

/// The log's tail overwrites an item whose bucket it does not touch: the head, moved first, tells.
#[test]
fn no_reader_accepts_an_item_that_the_tail_overwrote() {
    loom::model(|| {
        let world = world();
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.head.store(1, Relaxed);
                fence(Release);
                world.words[0].store(1, Relaxed);
                world.words[1].store(1, Relaxed);
            })
        };
        let read = [world.words[0].load(Relaxed), world.words[1].load(Relaxed)];
        fence(Acquire);
        if world.head.load(Relaxed) == 0 {
            assert_eq!(read, [0, 0]);
        }
        writer.join().unwrap();
    });
}

/// An item is removed; another thread has the lock then, and writes another bucket's item to the same memory.
#[test]
fn no_reader_accepts_what_was_written_to_memory_that_was_given_back() {
    loom::model(|| {
        let world = world();
        // The entry leads to the item while it is 0.
        let entry = Arc::new(AtomicU64::new(0));
        let lock = Arc::new(loom::sync::Mutex::new(false));
        let remover = {
            let (world, entry, lock) = (Arc::clone(&world), Arc::clone(&entry), Arc::clone(&lock));
            thread::spawn(move || {
                let mut is_free = lock.lock().unwrap();
                {
                    let _writing = world.versions.write(0);
                    entry.store(1, Relaxed);
                }
                *is_free = true;
            })
        };
        let next = {
            let (world, lock) = (Arc::clone(&world), Arc::clone(&lock));
            thread::spawn(move || {
                if *lock.lock().unwrap() {
                    // As every change of the heap begins.
                    fence(Release);
                    world.words[0].store(1, Relaxed);
                    world.words[1].store(1, Relaxed);
                    drop(world.versions.write(1));
                }
            })
        };
        if let Some(seen) = world.versions.begin(0)
            && entry.load(Relaxed) == 0
        {
            let read = [world.words[0].load(Relaxed), world.words[1].load(Relaxed)];
            if world.versions.is_unchanged(0, seen) {
                assert_eq!(read, [0, 0]);
            }
        }
        remover.join().unwrap();
        next.join().unwrap();
    });
}

/// An item becomes shorter where it lies, and the room behind it is another's at once.
#[test]
fn no_reader_accepts_what_lies_behind_an_item_that_became_shorter() {
    loom::model(|| {
        let world = world();
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                {
                    let _writing = world.versions.write(0);
                    // The heap's, before the item says that it is shorter.
                    world.words[1].store(7, Relaxed);
                    world.words[0].store(1, Relaxed);
                }
                world.words[1].store(8, Relaxed);
            })
        };
        if let Some(seen) = world.versions.begin(0) {
            let is_long = world.words[0].load(Relaxed) == 0;
            let behind = world.words[1].load(Relaxed);
            if world.versions.is_unchanged(0, seen) && is_long {
                assert_eq!(behind, 0);
            }
        }
        writer.join().unwrap();
    });
}

/// All entries are forgotten at once, and the memory is used again.
#[test]
fn no_reader_accepts_what_was_written_after_everything_was_forgotten() {
    loom::model(|| {
        let world = world();
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                {
                    let _writing = world.versions.write_all();
                    world.words[0].store(1, Relaxed);
                }
                world.words[1].store(1, Relaxed);
            })
        };
        // The entry, and what it led to.
        if let Some(seen) = world.versions.begin(1)
            && world.words[0].load(Relaxed) == 0
        {
            let item = world.words[1].load(Relaxed);
            if world.versions.is_unchanged(1, seen) {
                assert_eq!(item, 0);
            }
        }
        writer.join().unwrap();
    });
}

/// A key moves from one bucket to another: nobody who finds both unchanged misses it in both.
#[test]
fn a_split_hides_no_key() {
    loom::model(|| {
        let world = world();
        world.words[0].store(1, Relaxed);
        let buckets = Arc::new(AtomicU64::new(1));
        let writer = {
            let (world, buckets) = (Arc::clone(&world), Arc::clone(&buckets));
            thread::spawn(move || {
                let _writing = world.versions.write_two(0, 1);
                buckets.store(2, Release);
                world.words[0].store(0, Relaxed);
                world.words[1].store(1, Relaxed);
            })
        };
        let home = (buckets.load(Acquire) - 1) as usize;
        if let Some(seen) = world.versions.begin(home) {
            let found = world.words[home].load(Relaxed) == 1;
            if world.versions.is_unchanged(home, seen)
                && (buckets.load(Relaxed) - 1) as usize == home
            {
                assert!(found);
            }
        }
        writer.join().unwrap();
    });
}
