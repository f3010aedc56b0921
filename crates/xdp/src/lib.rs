//! AF_XDP sockets.

mod bpf;
mod error;
mod instruction;
mod interface;
pub mod packet;
mod program;
mod ring;
mod socket;
mod umem;

pub use error::Error;
pub use interface::Interface;
pub use program::{Attach, Attachment, FILTER_ADDRESSES_MAX, Filter, Mode, Program, Verdict};
pub use socket::{BURST, Copying, HEADROOM_BYTES, Options, Socket, Statistics};
pub use umem::Frame;
