//! A server that a benchmark started, and ends however the benchmark ends.

use std::process::Child;

pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
