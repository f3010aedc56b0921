//! Memory straight from the kernel: page-aligned, huge pages advised, not touched until its owner touches it.

use std::fs;
use std::ops::Range;

use mapping::Words;

use crate::{Error, Result};

/// `count` zeros in memory of their own, aligned to huge pages.
pub fn zeroed(count: usize) -> Result<Words> {
    let bytes = count.saturating_mul(size_of::<u64>());
    Words::zeroed(count).map_err(Error::host(format!(
        "{bytes} bytes of memory could not be mapped"
    )))
}

/// Bytes of the mappings that hold `buffers` that huge pages back at the moment; `None` where the kernel does not say.
#[must_use]
pub fn huge_page_bytes<'a>(buffers: impl IntoIterator<Item = &'a Words>) -> Option<u64> {
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let addresses: Vec<u64> = buffers
        .into_iter()
        .map(|buffer| buffer.as_ptr() as u64)
        .collect();
    huge_page_bytes_in(&maps, &addresses)
}

/// `AnonHugePages` of the mappings that hold `addresses`, each mapping once (the kernel joins neighbours), from the
/// text of `/proc/PID/smaps` (proc(5)).
fn huge_page_bytes_in(smaps: &str, addresses: &[u64]) -> Option<u64> {
    let mut inside = false;
    let mut total: Option<u64> = None;
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("AnonHugePages:") {
            if inside {
                let kilobytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
                total = Some(total.unwrap_or(0) + kilobytes.checked_mul(1024)?);
            }
        } else if let Some(range) = address_range(line) {
            inside = addresses.iter().any(|address| range.contains(address));
        }
    }
    total
}

/// The range that a mapping's first line begins with: `7f0000000000-7f0000400000 rw-p ...`.
fn address_range(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests;
