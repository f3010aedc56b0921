use super::*;
use std::sync::Arc;

#[test]
fn a_full_ring_counts_what_it_drops() {
    let ring = Ring::new(1, 3);
    for number in 0..5 {
        ring.push(number, &[number as f64]);
    }
    assert_eq!(
        ring.drain(),
        Rows {
            timestamps: vec![0, 1, 2],
            values: vec![0.0, 1.0, 2.0]
        }
    );
    assert_eq!(ring.dropped(), 2);
    ring.push(9, &[9.0]);
    assert_eq!(ring.drain().timestamps, [9]);
    assert_eq!(ring.drain(), Rows::default());
}

#[test]
fn memory_is_bounded() {
    assert!(Ring::new(10_000, 1_000_000).capacity * 10_001 * 8 <= MOST_BYTES);
    assert_eq!(Ring::new(0, 10).capacity, 10);
}

#[test]
fn rows_cross_threads_whole_and_in_order() {
    const ROWS: i64 = 20_000;
    let ring = Arc::new(Ring::new(7, 64));
    let writer = {
        let ring = Arc::clone(&ring);
        std::thread::spawn(move || {
            for number in 0..ROWS {
                ring.push(number, &[number as f64; 7]);
            }
        })
    };
    let mut seen = 0;
    let mut last = -1;
    loop {
        let finished = writer.is_finished();
        let rows = ring.drain();
        for (timestamp, values) in rows.timestamps.iter().zip(rows.values.chunks(7)) {
            assert!(*timestamp > last);
            last = *timestamp;
            assert!(
                values.iter().all(|value| *value == *timestamp as f64),
                "torn row {timestamp}: {values:?}"
            );
            seen += 1;
        }
        if finished {
            break;
        }
    }
    assert_eq!(seen + ring.dropped(), ROWS as u64);
}
