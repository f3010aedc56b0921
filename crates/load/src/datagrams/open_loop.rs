//! When an open loop sends: what is due goes, however few that are, and what finds no room waits.

use super::tests::Silent;

const CLIENT: &str = r#"{"target": {"kind": "udp", "host": "127.0.0.1", "ports": [9]}, "protocol": "batch", "batch": 32,
    "connections": 1, "pipeline": 2, "seed": 7, "keys": {"count": 100, "size": {"kind": "fixed", "bytes": 20}},
    "values": {"kind": "fixed", "bytes": 8}}"#;
/// An operation is due in every nanosecond, which is how the client's clock moves here.
const PHASE: &str = r#"{"name": "open", "operations": {"read": 1.0}, "distribution": {"kind": "uniform"},
    "loop": {"kind": "open", "arrivals": "constant", "rate_per_second": 1e9}, "duration_seconds": 1,
    "interval_seconds": 0.25}"#;

#[test]
fn what_is_due_is_sent_at_once_and_what_finds_no_room_waits() {
    Silent::try_with(CLIENT, PHASE, |mut client| {
        // Those of nanoseconds 0, 1 and 2.
        assert_eq!(client.ask().len(), 1);
        assert_eq!(client.tally().outstanding, 3);
        assert_eq!(client.ask().len(), 1);
        assert_eq!(client.tally().outstanding, 4);
        // Two datagrams are on their way, and so many may be.
        for _ in 0..5 {
            assert_eq!(client.ask().len(), 0);
        }
        assert_eq!(client.tally().outstanding, 4);
        client.give_up();
        // The five that waited, and two for the time that this took.
        assert_eq!(client.ask().len(), 1);
        let tally = client.tally();
        assert_eq!((tally.errors, tally.outstanding), (4, 7));
    })
    .expect("configurations that are right");
}
