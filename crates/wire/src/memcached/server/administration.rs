//! Commands for those who look after memcached, answered as it answers where what they ask for is forbidden or switched
//! off (`-X`, `-W`, `-o no_slab_reassign,no_lru_crawler`) and memory is of one size.

use super::line::Words;

/// The answer to such a line; `ERROR` to any other.
pub(super) fn answer(words: &Words<'_>) -> &'static str {
    match (words.get(0), words.get(1), words.count()) {
        (b"watch", ..) => "CLIENT_ERROR watch commands not allowed",
        (b"stats", b"cachedump", _) => "CLIENT_ERROR stats cachedump not allowed",
        (b"stats", b"detail", _) => "CLIENT_ERROR stats detail not allowed",
        (b"lru_crawler", b"metadump", 3) => "ERROR metadump not allowed",
        (b"lru_crawler", b"mgdump", 3) => "ERROR key dump not allowed",
        (b"lru_crawler", b"crawl", 3) => "CLIENT_ERROR lru crawler disabled",
        (b"slabs", b"reassign", 4) => "CLIENT_ERROR slab reassignment disabled",
        (b"cache_memlimit", _, 2..=3) => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
        _ => "ERROR",
    }
}
