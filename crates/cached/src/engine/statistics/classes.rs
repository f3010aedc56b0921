//! `stats items` and `stats slabs`. There is one class, number 1, of all items; its pages are the logs, of which any
//! byte is a chunk.

use super::super::counters::{Count, Totals};
use super::output::Output;
use super::stored::StorageTotals;

/// memcached's pages, in bytes.
const PAGE_BYTES: usize = 1 << 20;

/// `stats items`: what is held, and what happened to items since the last `stats reset`.
pub(crate) fn items(stored: &StorageTotals, since_reset: &mica::Statistics, out: &mut Output<'_>) {
    if stored.items.items == 0 {
        return;
    }
    out.write("items:1:number", stored.items.items);
    if let Some(age_seconds) = stored.oldest_age_seconds {
        out.write("items:1:age", age_seconds);
    }
    out.write("items:1:mem_requested", stored.items.bytes);
    out.write(
        "items:1:evicted",
        since_reset.evictions + since_reset.bucket_evictions,
    );
    // The oldest item is always evicted instead.
    out.write("items:1:outofmemory", since_reset.refused);
    out.write("items:1:reclaimed", since_reset.expired);
}

/// `stats slabs`: how the logs are filled, and what was asked of them since the last `stats reset`.
pub(crate) fn slabs(stored: &StorageTotals, totals: &Totals, out: &mut Output<'_>) {
    let (log_bytes, used_bytes) = (stored.log_bytes as u64, stored.items.bytes);
    out.write("1:chunk_size", 1);
    out.write("1:chunks_per_page", PAGE_BYTES);
    out.write("1:total_pages", stored.log_bytes.div_ceil(PAGE_BYTES));
    out.write("1:total_chunks", log_bytes);
    out.write("1:used_chunks", used_bytes);
    out.write("1:free_chunks", log_bytes.saturating_sub(used_bytes));
    out.write("1:free_chunks_end", 0);
    out.write("1:mem_requested", used_bytes);
    for (name, count) in [
        ("1:get_hits", Count::GetHits),
        ("1:cmd_set", Count::Sets),
        ("1:delete_hits", Count::DeleteHits),
        ("1:incr_hits", Count::IncrementHits),
        ("1:decr_hits", Count::DecrementHits),
        ("1:cas_hits", Count::CasHits),
        ("1:cas_badval", Count::CasMismatches),
        ("1:touch_hits", Count::TouchHits),
    ] {
        out.write(name, totals.get(count));
    }
    out.write("active_slabs", 1);
    out.write("total_malloced", log_bytes);
}
