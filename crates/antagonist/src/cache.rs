//! How large the last-level cache is, as the kernel tells it.

use std::fs;
use std::path::Path;

/// Bytes of the largest cache of the highest level that any core under `root` (`/` but for tests) has; `None` where the
/// kernel does not say, as on some virtual machines.
///
/// Source: `Documentation/ABI/testing/sysfs-devices-system-cpu`, `cache/index*/`.
#[must_use]
pub fn last_level_cache_bytes(root: &Path) -> Option<usize> {
    let cores = fs::read_dir(root.join("sys/devices/system/cpu")).ok()?;
    let mut found = None;
    for core in cores.flatten() {
        let Ok(caches) = fs::read_dir(core.path().join("cache")) else {
            continue;
        };
        found = found.max(
            caches
                .flatten()
                .filter_map(|cache| level_and_bytes(&cache.path()))
                .max(),
        );
    }
    found.map(|(_, bytes)| bytes)
}

fn level_and_bytes(cache: &Path) -> Option<(u32, usize)> {
    let read = |name: &str| fs::read_to_string(cache.join(name)).ok();
    if read("type")?.trim() == "Instruction" {
        return None;
    }
    let level = read("level")?.trim().parse().ok()?;
    let size = read("size")?;
    let kibibytes: usize = size.trim().strip_suffix('K')?.parse().ok()?;
    Some((level, kibibytes.checked_mul(1024)?))
}

#[cfg(test)]
mod tests;
