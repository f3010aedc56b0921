//! Kernels that move a known amount.
