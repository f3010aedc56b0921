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
mod tests {
    use super::*;

    #[test]
    fn the_highest_level_counts_and_damage_is_passed_over() {
        let root = std::env::temp_dir().join(format!("antagonist-cache-{}", std::process::id()));
        let cache = |core: &str, index: &str, kind: &str, level: &str, size: &str| {
            let folder = root
                .join("sys/devices/system/cpu")
                .join(core)
                .join("cache")
                .join(index);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in [("type", kind), ("level", level), ("size", size)] {
                fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
        };
        assert_eq!(last_level_cache_bytes(&root), None);
        cache("cpu0", "index0", "Data", "1", "48K");
        cache("cpu0", "index1", "Instruction", "9", "32K");
        cache("cpu0", "index2", "Unified", "2", "many");
        assert_eq!(last_level_cache_bytes(&root), Some(48 << 10));
        cache("cpu0", "index3", "Unified", "3", "32768K");
        cache("cpu9", "index2", "Unified", "2", "65536K");
        assert_eq!(last_level_cache_bytes(&root), Some(32 << 20));
        fs::remove_dir_all(&root).unwrap();
    }
}
