//! What the host did.
