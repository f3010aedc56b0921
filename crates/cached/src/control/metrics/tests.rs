use super::*;

#[test]
fn statistics_become_metrics() {
    let statistics = [
        ("pid", "7"),
        ("version", "x"),
        ("total_items", "9"),
        ("get_hits", "3"),
    ];
    assert_eq!(
        exposition(&statistics.map(|(name, value)| (name.to_owned(), value.to_owned()))),
        "# TYPE rackscope_cached_pid gauge\nrackscope_cached_pid 7\n\
         # TYPE rackscope_cached_items_total counter\nrackscope_cached_items_total 9\n\
         # TYPE rackscope_cached_get_hits_total counter\nrackscope_cached_get_hits_total 3\n"
    );
}
