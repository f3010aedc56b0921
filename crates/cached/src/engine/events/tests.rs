use super::*;

fn taken(watcher: &Subscription) -> String {
    let mut out = Vec::new();
    watcher.take(&mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn each_watcher_gets_what_it_wants_and_nobody_waits_for_it() {
    let events = Arc::new(Events::default());
    assert!(!events.wants(Watched::FETCHERS));
    let reads = events.subscribe(Watched::FETCHERS, 0).expect("room");
    let stores = events.subscribe(Watched::MUTATIONS, 0).expect("room");
    assert!(events.wants(Watched::FETCHERS) && !events.wants(Watched::EVICTIONS));
    let mut log = EventLog::default();
    log.read(&events, b"a b", Some(3), 7);
    log.read(&events, b"c", None, 7);
    log.hand_over(&events);
    let told = taken(&reads);
    let (first, second) = told.split_once('\n').expect("two lines");
    assert!(
        first.starts_with("ts=") && first.contains(" gid=1 "),
        "{told}"
    );
    assert!(first.ends_with("type=item_get key=a%20b status=found clsid=1 cfd=7 size=3"));
    assert!(second.ends_with("type=item_get key=c status=not_found clsid=0 cfd=7 size=0\n"));
    assert_eq!(taken(&stores), "");
    // One that does not read is kept so much, and then told how much it missed.
    for _ in 0..10_000 {
        log.read(&events, b"c", None, 7);
    }
    log.hand_over(&events);
    let told = taken(&reads);
    assert!((MAILBOX_BYTES_MAX - 200..=MAILBOX_BYTES_MAX).contains(&told.len()));
    let missed = 10_000 - told.lines().count();
    log.read(&events, b"d", None, 7);
    log.hand_over(&events);
    let told = taken(&reads);
    assert!(
        told.starts_with(&format!("skipped={missed}\nts=")),
        "{told}"
    );
    assert_eq!(told.lines().count(), 2);
    drop(reads);
    assert!(!events.wants(Watched::FETCHERS) && events.wants(Watched::MUTATIONS));
    drop(stores);
    assert!(!events.wants(Watched::MUTATIONS));
}

#[test]
fn there_are_so_many_watchers_and_no_more() {
    let events = Arc::new(Events::default());
    let all: Vec<_> = (0..WATCHERS_MAX)
        .map(|_| events.subscribe(Watched::FETCHERS, 0).expect("room"))
        .collect();
    assert!(events.subscribe(Watched::FETCHERS, 0).is_none());
    drop(all);
    assert!(events.subscribe(Watched::FETCHERS, 0).is_some());
}
