//! What clients ask.
