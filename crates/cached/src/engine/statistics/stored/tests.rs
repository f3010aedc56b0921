use super::*;

#[test]
fn totals_of_workers_are_added_number_by_number() {
    let of = |items, log_bytes, free_bytes, index_bytes| StorageTotals {
        items: Statistics {
            items,
            evictions: items + 1,
            ..Statistics::default()
        },
        log_bytes,
        free_bytes,
        index_bytes,
    };
    let mut all = StorageTotals::default();
    for one in [of(3, 100, 40, 7), of(5, 300, 20, 9)] {
        all += one;
    }
    assert_eq!((all.items.items, all.items.evictions), (8, 10));
    assert_eq!(
        (all.log_bytes, all.free_bytes, all.index_bytes),
        (400, 60, 16)
    );
}
