//! The structures against models, each test file a module: one program, so that it is linked once.

mod large;
mod model;
mod readers;
mod scale;
mod store;
mod walk;
