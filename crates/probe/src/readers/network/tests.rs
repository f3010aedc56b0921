use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};
use proptest::prelude::*;

const DEV: &str = "Inter-|   Receive                                                |  Transmit\n \
    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
    lo:    3193      29    1    2    0     0          0         0     3194      30    3    4    0     0       0          0\n  \
    eth0:5 6    7    8    0     0          0         0     9      10    11    12    0     0       0          0\n\
    veth1a: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n";

#[test]
fn interfaces_are_read_and_ends_of_containers_left_out() {
    let tree = Tree::with("proc/net/dev", DEV);
    let mut reader = build(&tree.host()).remove(0);
    let sample = sample(&mut *reader);
    assert_eq!(
        sample.get(r#"network_receive_bytes_total{interface="lo"}"#),
        3193.0
    );
    assert_eq!(
        sample.get(r#"network_transmit_errors_total{interface="lo"}"#),
        3.0
    );
    assert_eq!(
        sample.get(r#"network_receive_drops_total{interface="eth0"}"#),
        8.0
    );
    assert_eq!(
        sample.get(r#"network_transmit_drops_total{interface="eth0"}"#),
        12.0
    );
    assert_eq!(sample.0.len(), 2 * COLUMNS.len());
    assert_eq!(reader.probes()[0].reason, "left out: veth1a");
}

#[test]
fn interfaces_come_and_go() {
    let tree = Tree::with("proc/net/dev", DEV);
    let mut reader = build(&tree.host()).remove(0);
    tree.write("proc/net/dev", &DEV.replace("eth0", "wlan0"));
    let sample = sample(&mut *reader);
    assert!(
        sample
            .get(r#"network_receive_bytes_total{interface="eth0"}"#)
            .is_nan()
    );
    assert!(reader.probes()[0].reason.contains("not sampled: wlan0"));
}

#[test]
fn protocols_are_found_by_name() {
    let tree = Tree::with(
        "proc/net/snmp",
        "Tcp: MaxConn OutSegs RetransSegs\nTcp: -1 6258 3\nUdp: RcvbufErrors\nUdp: 4\n",
    );
    tree.write(
        "proc/net/netstat",
        "TcpExt: TW ListenOverflows\nTcpExt: 1 2\nIpExt: InNoRoutes\nIpExt: 0\n",
    );
    let mut reader = build(&tree.host()).remove(1);
    let row = sample(&mut *reader);
    assert_eq!(row.get("tcp_segments_sent_total"), 6258.0);
    assert_eq!(row.get("tcp_retransmits_total"), 3.0);
    assert_eq!(row.get("tcp_listen_overflows_total"), 2.0);
    assert_eq!(row.get("udp_receive_buffer_errors_total"), 4.0);
    tree.write("proc/net/snmp", "Tcp: OutSegs\n");
    assert!(sample(&mut *reader).get("tcp_segments_sent_total").is_nan());
    let probe = reader.probes().remove(0);
    assert_eq!(probe.status, Status::Untrusted);
    assert!(probe.reason.contains("snmp, line 2"), "{}", probe.reason);
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, text in "((Tcp:|Udp:)( OutSegs| [0-9]{1,22}){0,3}\n?){0,4}") {
        for text in [&bytes[..], text.as_bytes()] {
            let _ = counters(text, 0, &mut [0.0; PROTOCOLS.len()]);
            if let Some((_, fields)) = interface(Line { text, number: 1 }) {
                let _ = traffic(fields, &mut [0.0; COLUMNS.len()]);
            }
        }
    }
}
