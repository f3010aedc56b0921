//! What the program does with frames, by having the kernel run it.

use crate::common::{pair, ports};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};
use xdp::packet::{Checksum, Endpoint, Packet, Template, Verify};
use xdp::{FILTER_ADDRESSES_MAX, Filter, Options, Program, Socket};

const PORTS: std::ops::RangeInclusive<u16> = 7_000..=7_003;

fn small() -> Options {
    Options {
        receive_frames: 64,
        transmit_frames: 64,
        ..Options::default()
    }
}

/// A datagram to `destination`, as a frame.
fn frame(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    let end = |address: &str, last| Endpoint {
        hardware_address: [2, 0, 0, 0, 0, last],
        address: address.parse().expect("an address and a port"),
    };
    let template = Template::new(&end(source, 1), &end(destination, 2)).expect("one family");
    let mut frame = vec![0; template.header_bytes()];
    frame.extend_from_slice(payload);
    let length = template.write(&mut frame, payload.len(), Checksum::Compute);
    assert_eq!(length, Some(frame.len()));
    frame
}

/// What the program does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It goes to the kernel's own network stack.
    Pass,
    /// It goes to the socket of its queue.
    Redirect,
    /// Something that this program never answers, by its number in `enum xdp_action`.
    Other(u32),
}

/// What the program does with a frame that arrives on queue 0, found out by having the kernel run it (Linux 4.12; from 6.0
/// on only for frames of at least 14 bytes). Nothing is sent anywhere.
fn verdict_of(program: &Program, frame: &[u8]) -> Verdict {
    /// `BPF_PROG_TEST_RUN`, and the beginning of its `union bpf_attr`.
    const PROG_TEST_RUN: libc::c_int = 10;
    #[repr(C)]
    #[derive(Default)]
    struct ProgTestRun {
        prog_fd: u32,
        retval: u32,
        data_size_in: u32,
        data_size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
    }
    let mut attributes = ProgTestRun {
        prog_fd: program.as_fd().as_raw_fd().cast_unsigned(),
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr().expose_provenance() as u64,
        repeat: 1,
        ..Default::default()
    };
    loop {
        // SAFETY: the attributes are laid out as the kernel's. The frame is only read, and its length is told; nothing is
        // asked to be written back.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                PROG_TEST_RUN,
                &raw mut attributes,
                size_of::<ProgTestRun>(),
            )
        };
        let error = std::io::Error::last_os_error();
        match (result, error.raw_os_error()) {
            (0.., _) => break,
            // A signal came.
            (_, Some(libc::EAGAIN | libc::EINTR)) => {}
            _ => panic!("the kernel runs it: {error}"),
        }
    }
    match attributes.retval {
        2 => Verdict::Pass,
        4 => Verdict::Redirect,
        other => Verdict::Other(other),
    }
}

/// Whether a frame is for the sockets, said as plainly as possible.
fn is_for_sockets(frame: &[u8], filter: &Filter) -> bool {
    let ipv4 = frame.len() >= 42
        && frame[12..14] == [0x08, 0x00]
        && frame[14] == 0x45
        && frame[20] & 0x3f == 0
        && frame[21] == 0
        && frame[23] == 17;
    let ipv6 = frame.len() >= 62
        && frame[12..14] == [0x86, 0xdd]
        && frame[14] >> 4 == 6
        && frame[20] == 17;
    let (address, port) = match (ipv4, ipv6) {
        (true, _) => (&frame[30..34], &frame[36..38]),
        (_, true) => (&frame[38..54], &frame[56..58]),
        _ => return false,
    };
    let addresses = &filter.addresses;
    let addressed = addresses.iter().any(|it| match it {
        std::net::IpAddr::V4(it) => it.octets() == address,
        std::net::IpAddr::V6(it) => it.octets() == address,
    });
    (addresses.is_empty() || addressed)
        && filter
            .ports
            .contains(&u16::from_be_bytes([port[0], port[1]]))
}

fn expected(frame: &[u8], filter: &Filter) -> Verdict {
    if is_for_sockets(frame, filter) {
        Verdict::Redirect
    } else {
        Verdict::Pass
    }
}

#[test]
fn datagrams_for_the_ports_go_to_the_socket_and_all_else_to_the_kernel() {
    let Some(pair) = pair(1) else { return };
    let right = &pair.right;
    let program = Program::load(&ports(*PORTS.start(), *PORTS.end()), 1).expect("loads");
    let verdict = |frame: &[u8]| verdict_of(&program, frame);

    let datagram = frame("198.18.0.1:9", "198.18.0.2:7000", b"x");
    assert_eq!(verdict(&datagram), Verdict::Pass, "no socket is registered");
    let socket = right
        .namespace
        .run(|| Socket::bind(&right.interface, 0, &small()).expect("binds"));
    program.register(&socket).expect("registers");

    for (source, end) in [("198.18.0.1:9", "198.18.0.2"), ("[fd00::1]:9", "[fd00::2]")] {
        for (port, redirected) in [
            (0, false),
            (6_999, false),
            (7_000, true),
            (7_003, true),
            (7_004, false),
            (65_535, false),
        ] {
            let whole = frame(source, &format!("{end}:{port}"), b"");
            let wanted = [Verdict::Pass, Verdict::Redirect][usize::from(redirected)];
            assert_eq!(verdict(&whole), wanted, "{end} port {port}");
            for length in 14..whole.len() {
                assert_eq!(verdict(&whole[..length]), Verdict::Pass, "{length} bytes");
            }
        }
    }
    let but = |at: usize, value: u8| {
        let mut changed = datagram.clone();
        changed[at] = value;
        verdict(&changed)
    };
    assert_eq!(verdict(&datagram), Verdict::Redirect);
    assert_eq!(but(12, 0x81), Verdict::Pass, "another ethertype");
    assert_eq!(but(14, 0x46), Verdict::Pass, "options");
    assert_eq!(but(20, 0x20), Verdict::Pass, "more fragments follow");
    assert_eq!(but(21, 1), Verdict::Pass, "a later fragment");
    assert_eq!(but(20, 0x40), Verdict::Redirect, "must not be fragmented");
    assert_eq!(but(23, 6), Verdict::Pass, "TCP");
    let mut tagged = datagram.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
    assert_eq!(verdict(&tagged), Verdict::Pass, "with a VLAN tag");

    drop(socket);
    // A process that another test is just starting has a copy of the socket for a moment.
    let start = Instant::now();
    while verdict(&datagram) != Verdict::Pass {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(300), "the socket is closed");
    }
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let address = prop_oneof![Just("198.18.0.1"), Just("198.18.0.2"), Just("198.18.0.3")];
    let address6 = prop_oneof![Just("[fd00::1]"), Just("[fd00::2]"), Just("[fd00::1:2]")];
    let ends = prop_oneof![
        (address, Just("198.18.0.9:5")).boxed(),
        (address6, Just("[fd00::9]:5")).boxed(),
    ];
    let port = prop_oneof![6_998..7_006_u16, any::<u16>()];
    let payload = proptest::collection::vec(any::<u8>(), 0..40);
    let damage = proptest::collection::vec((12_usize..62, any::<u8>()), 0..3);
    (ends, port, payload, damage, 14..200_usize).prop_map(
        |((address, source), port, payload, damage, length)| {
            let mut frame = frame(source, &format!("{address}:{port}"), &payload);
            for (at, value) in damage {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            frame.truncate(length);
            frame
        },
    )
}

#[test]
fn the_program_does_as_said_with_any_frame_and_loses_no_good_datagram() {
    let Some(pair) = pair(1) else { return };
    let right = &pair.right;
    let socket = right
        .namespace
        .run(|| Socket::bind(&right.interface, 0, &small()).expect("binds"));
    for addresses in [
        &[][..],
        &["198.18.0.2"],
        &["fd00::2"],
        &["198.18.0.1", "fd00::1", "fd00::2", "198.18.0.2"],
    ] {
        let filter = Filter {
            ports: PORTS,
            addresses: addresses
                .iter()
                .map(|it| it.parse().expect("an address"))
                .collect(),
        };
        let program = Program::load(&filter, 1).expect("loads");
        program.register(&socket).expect("registers");
        TestRunner::default()
            .run(&any_frame(), |frame| {
                let verdict = verdict_of(&program, &frame);
                prop_assert_eq!(verdict, expected(&frame, &filter));
                let to = Packet::parse(&frame, Verify::Checksum)
                    .and_then(|packet| packet.destination(&frame));
                let wanted = |to: SocketAddr| {
                    let addresses = &filter.addresses;
                    filter.ports.contains(&to.port())
                        && (addresses.is_empty() || addresses.contains(&to.ip()))
                };
                if to.is_some_and(wanted) {
                    prop_assert_eq!(verdict, Verdict::Redirect);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{addresses:?}: {error}"));
    }
}

#[test]
fn the_largest_filter_loads_and_a_larger_one_is_refused() {
    let Some(pair) = pair(1) else { return };
    let right = &pair.right;
    let socket = right
        .namespace
        .run(|| Socket::bind(&right.interface, 0, &small()).expect("binds"));
    let mut filter = Filter {
        ports: 1..=u16::MAX,
        addresses: (0..FILTER_ADDRESSES_MAX)
            .map(|it| format!("fd00::{it:x}").parse().expect("an address"))
            .collect(),
    };
    let program = Program::load(&filter, 1).expect("loads");
    program.register(&socket).expect("registers");
    let last = FILTER_ADDRESSES_MAX - 1;
    for (number, wanted) in [
        (0, Verdict::Redirect),
        (last, Verdict::Redirect),
        (last + 1, Verdict::Pass),
    ] {
        let frame = frame("[fd00::9999]:9", &format!("[fd00::{number:x}]:80"), b"x");
        assert_eq!(verdict_of(&program, &frame), wanted, "{number}");
    }
    filter
        .addresses
        .push("198.18.0.1".parse().expect("an address"));
    let error = Program::load(&filter, 1).expect_err("one too many");
    assert!(error.to_string().contains("65 addresses"), "{error}");
    let error = Program::load(&ports(8, 7), 1).expect_err("no ports");
    assert!(error.to_string().contains("ports 8 to 7"), "{error}");
}
