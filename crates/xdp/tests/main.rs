//! AF_XDP between two network namespaces: one program, so that it is linked once.

mod common;
mod lifetime;
mod program;
mod veth;
