use super::*;
use crate::readers::tests::Tree;

fn host(tree: &Tree, milliseconds: u64) -> Host {
    Host {
        interval: Duration::from_millis(milliseconds),
        ..tree.host()
    }
}

#[test]
fn rows_come_at_every_tick_and_are_accounted_for() {
    let tree = Tree::with("proc/vmstat", "pswpin 1\npgmajfault 2\n");
    let mut sampler = Sampler::new(&host(&tree, 10)).unwrap();
    let columns = sampler.columns().len();
    let before = clock::now(ClockId::Realtime) as i64;
    sampler.start().unwrap();
    let mut rows = Rows::default();
    while rows.timestamps.len() < 5 {
        let more = sampler.drain();
        rows.timestamps.extend(more.timestamps);
        rows.values.extend(more.values);
    }
    let summary = sampler.stop().unwrap();
    let rest = sampler.drain();
    let count = rows.timestamps.len() + rest.timestamps.len();
    assert_eq!(summary.ticks, count as u64 + summary.dropped_rows);
    assert_eq!(rows.values.len(), rows.timestamps.len() * columns);
    assert!(
        rows.timestamps[0] >= before && rows.timestamps[0] <= clock::now(ClockId::Realtime) as i64
    );
    assert!(rows.timestamps.windows(2).all(|pair| pair[0] < pair[1]));
    // Every tick that was due was begun or missed: the last may have been due just before the stop.
    let due = (summary.wall_seconds / 0.01) as u64 + 1;
    let accounted = summary.ticks + summary.missed_ticks;
    assert!(
        accounted == due || accounted + 1 == due,
        "{accounted} of {due}"
    );
    assert!(summary.cpu_seconds > 0.0 && summary.cpu_seconds < summary.wall_seconds);
}

#[test]
fn a_sampler_serves_once() {
    let mut sampler = Sampler::new(&host(&Tree::empty(), 20)).unwrap();
    assert!(matches!(sampler.stop(), Err(ProbeError::State(_))));
    sampler.start().unwrap();
    assert!(matches!(sampler.start(), Err(ProbeError::State(_))));
    sampler.stop().unwrap();
    assert!(matches!(sampler.start(), Err(ProbeError::State(_))));
    assert!(matches!(sampler.stop(), Err(ProbeError::State(_))));
}

#[test]
fn intervals_are_bounded() {
    let tree = Tree::empty();
    for milliseconds in [0, 9, 1001] {
        let error = Sampler::new(&host(&tree, milliseconds))
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("a sampling interval of "), "{error}");
    }
    for milliseconds in [10, 1000] {
        Sampler::new(&host(&tree, milliseconds)).unwrap();
    }
}
