//! Where items are kept: a partition is a circular log and a lossy index over it.
//!
//! After MICA (Lim, Han, Andersen and Kaminsky, NSDI'14, sections 3.3.1 and 3.3.2):
//!
//! * the **circular log** takes items of any length one behind the other; when it is full, the item that was
//!   written first makes room (FIFO), except that an item that is read shortly before its turn is written again at
//!   the tail, which approximates LRU;
//! * the **index** is set-associative: a key's hash picks one cache line of eight slots, and a 16-bit tag picks the
//!   slots worth a look into the log. An insert into a full bucket drops the bucket's oldest entry, so that neither
//!   a lookup nor an insert ever follows a chain. What is lost that way is counted
//!   ([`Statistics::bucket_evictions`]). Unlike MICA's, it grows with the number of items, so that nobody has to
//!   know how large items will be.
//!
//! Pure: no sockets, no threads, no clocks. Seconds are an argument, as is the seed of the hash.
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

mod entry;
mod error;
mod index;
mod item;
mod key;
mod log;
mod partition;
mod statistics;

pub use entry::{Entry, Occupied, Vacant};
pub use error::Error;
pub use item::{Contents, HEADER_BYTES, Item, Marks};
pub use key::{Hasher, KEY_BYTES_MAX, Key};
pub use partition::{Config, Partition};
pub use statistics::Statistics;
