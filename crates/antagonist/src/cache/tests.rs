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
