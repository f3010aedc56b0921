//! Where items are kept: a partition is a circular log and a lossy index over it, or a heap and a lossless one.
//!
//! After MICA (Lim, Han, Andersen and Kaminsky, NSDI'14, sections 3.3.1 and 3.3.2). In [cache mode](Mode::Cache):
//!
//! * the **circular log** takes items of any length one behind the other; when it is full, the item that was
//!   written first makes room (FIFO), except that an item that is read shortly before its turn is written again at
//!   the tail, which approximates LRU;
//! * the **index** is set-associative: a key's hash picks one cache line of twelve slots, and a tag of eight bits
//!   picks the slots worth a look into the log. A full line is continued in a spare one, up to a point; beyond it an
//!   insert drops the oldest entry, which is counted ([`Statistics::bucket_evictions`]). Unlike MICA's, the index
//!   grows with the number of items, so that nobody has to know how large items will be.
//!
//! A small item costs 7 bytes in the log and about 8 in the index beside its key and value.
//!
//! In [store mode](Mode::Store) nothing makes room:
//!
//! * the **heap** (segregated fits) takes items in blocks that are split and joined, in constant time. Where there is
//!   room, but not in one piece, items that have expired are removed and others moved, so that a write is
//!   [refused](Error::Full) only when memory is all but full;
//! * the **index** continues full lines in spare ones as long as there are any (bulk chaining).
//!
//! A small item then costs 19 bytes in front of its key and value, up to 7 behind them, a 64th of its length and about
//! 8 in the index.
//!
//! One owner writes ([`Partition`]); others may look items up meanwhile ([`Reader`]), and notice by the buckets'
//! versions and the log's head when what they read was being written.
//!
//! Pure but for the memory that it maps: no sockets, no threads, no clocks. Seconds are an argument, as is the seed of
//! the hash.
//!
//! ```
//! use mica::{Config, Contents, Entry, Hasher, Partition};
//!
//! let hasher = Hasher::new(42);
//! let mut partition = Partition::new(Config::for_log_bytes(1 << 20), hasher.clone())?;
//! let key = hasher.key(b"answer");
//! let now = 1; // seconds, from whatever moment the caller counts
//! partition.entry(key, now).set(Contents::of(b"42"))?;
//! assert_eq!(partition.get(key, now).map(|item| item.value), Some(&b"42"[..]));
//! # Ok::<(), mica::Error>(())
//! ```

mod address;
mod burst;
mod compaction;
mod config;
mod entry;
mod error;
mod found;
mod heap;
mod index;
mod item;
mod key;
mod large;
mod log;
#[cfg_attr(loom, path = "tests/memory.rs")]
mod memory;
mod partition;
mod reader;
mod shared;
mod statistics;
mod store;
#[cfg_attr(loom, path = "tests/sync.rs")]
mod sync;
mod table;
#[cfg(all(test, loom))]
mod tests;
mod versions;

pub use burst::burst;
pub use config::{Config, Eviction, Mode};
pub use entry::{Entry, Occupied, Vacant};
pub use error::Error;
pub use item::{Contents, HEADER_BYTES, Item, Marks};
pub use key::{Hasher, KEY_BYTES_MAX, Key};
pub use partition::{Live, Partition};
pub use reader::{Front, Lookup, Reader};
pub use statistics::Statistics;
