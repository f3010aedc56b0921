//! What the keeper undoes: one program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod keeping;
mod places;
