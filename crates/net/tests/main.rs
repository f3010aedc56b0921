//! Sockets and rings on the real kernel: one program, so that it is linked once.

mod ring;
mod sockets;
