//! What takes a known part of a resource away by using it: threads that read memory, and the arbiter of a memory
//! channel whose bandwidth is known because software regulates it.
//!
//! Where the hardware has a regulator of its own (resctrl), that is the better way; an antagonist is for where it
//! has not. It disturbs in more ways than the one that is meant (it uses cores, power and interconnect as well), so
//! every kind is to be compared with [`threads::Kind::Placebo`], which does the rest without the one.
#![deny(missing_docs)]

pub mod cache;
pub mod channel;
pub mod threads;

mod error;

pub use error::Error;

/// The result of what this crate does.
pub type Result<T> = std::result::Result<T, Error>;
