use super::*;
use proptest::prelude::*;

fn end(last: u8, address: &str) -> Endpoint {
    Endpoint {
        hardware_address: [2, 0, 0, 0, 0, last],
        address: address.parse().expect("an address and a port"),
    }
}

fn ends(version: Version) -> (Endpoint, Endpoint) {
    match version {
        Version::V4 => (end(1, "198.18.0.1:40001"), end(2, "198.18.0.2:7000")),
        Version::V6 => (end(1, "[fd00::1]:40001"), end(2, "[fd00::2]:7000")),
    }
}

fn frame(version: Version, payload: &[u8], checksum: Checksum) -> Vec<u8> {
    let (source, destination) = ends(version);
    let template = Template::new(&source, &destination).expect("one family");
    // Whatever was in the frame before does not matter.
    let mut frame = vec![0xa5; template.header_bytes()];
    frame.extend_from_slice(payload);
    let length = template.write(&mut frame, payload.len(), checksum);
    assert_eq!(length, Some(frame.len()));
    frame
}

const VERSIONS: [Version; 2] = [Version::V4, Version::V6];
const VERIFY: [Verify; 3] = [Verify::Checksum, Verify::ChecksumOrOffload, Verify::Nothing];

#[test]
fn what_a_template_writes_is_understood() {
    for version in VERSIONS {
        for verify in VERIFY {
            for checksum in [Checksum::Compute, Checksum::OmitOverIpv4] {
                let frame = frame(version, b"hello", checksum);
                let packet = Packet::parse(&frame, verify).expect("well-formed");
                let (source, destination) = ends(version);
                assert_eq!(packet.version(), version);
                assert_eq!(packet.source(&frame), Some(source.address));
                assert_eq!(packet.destination(&frame), Some(destination.address));
                assert_eq!(packet.destination_port(&frame), Some(7_000));
                assert_eq!(&frame[packet.payload()], b"hello");
            }
        }
    }
}

#[test]
fn a_checksum_is_left_out_over_ipv4_only() {
    for (version, omitted) in [(Version::V4, true), (Version::V6, false)] {
        let at = version.transport() + 6;
        let frame = frame(version, b"x", Checksum::OmitOverIpv4);
        assert_eq!(frame[at..at + 2] == [0, 0], omitted);
        let mut without = frame.clone();
        without[at..at + 2].fill(0);
        assert_eq!(Packet::parse(&without, Verify::Checksum).is_some(), omitted);
    }
}

/// A payload over which the sum comes out as zero, which must be written as all ones (RFC 768).
#[test]
fn a_checksum_of_zero_is_written_as_all_ones() {
    for version in VERSIONS {
        let at = version.transport() + 6;
        let zeros = frame(version, &[0, 0], Checksum::Compute);
        // What was computed over zeros is what the payload must add to make it zero.
        let payload = [zeros[at], zeros[at + 1]];
        let frame = frame(version, &payload, Checksum::Compute);
        assert_eq!(frame[at..at + 2], [0xff, 0xff]);
        assert!(Packet::parse(&frame, Verify::Checksum).is_some());
    }
}

#[test]
fn what_the_kernel_leaves_to_the_device_is_taken_when_asked_for() {
    for version in VERSIONS {
        let mut frame = frame(version, b"offloaded", Checksum::Compute);
        let udp = version.transport();
        let length = frame.len() - udp;
        let partial = pseudo_header(&frame[version.addresses()], length).folded();
        frame[udp + 6..udp + 8].copy_from_slice(&partial);
        for (verify, taken) in VERIFY.into_iter().zip([false, true, true]) {
            assert_eq!(Packet::parse(&frame, verify).is_some(), taken, "{verify:?}");
        }
    }
}

#[test]
fn who_cannot_be_answered_is_not_listened_to() {
    let (source, destination) = ends(Version::V4);
    let (source6, destination6) = ends(Version::V6);
    let parsed = |source: &Endpoint, destination: &Endpoint| {
        let template = Template::new(source, destination).expect("one family");
        let mut frame = vec![0; 80];
        let length = template.write(&mut frame, 5, Checksum::Compute);
        Packet::parse(&frame[..length.expect("fits")], Verify::Checksum).is_some()
    };
    assert!(parsed(&source, &destination) && parsed(&source6, &destination6));
    for from in [
        "0.0.0.0:5",
        "127.0.0.1:5",
        "224.0.0.1:5",
        "240.0.0.1:5",
        "255.255.255.255:5",
    ] {
        assert!(!parsed(&end(1, from), &destination), "{from}");
    }
    for to in ["0.0.0.0:5", "224.0.0.1:5", "255.255.255.255:5"] {
        assert!(!parsed(&source, &end(2, to)), "{to}");
    }
    for from in ["[::]:5", "[::1]:5", "[ff02::1]:5"] {
        assert!(!parsed(&end(1, from), &destination6), "{from}");
    }
    for to in ["[::]:5", "[ff02::1]:5"] {
        assert!(!parsed(&source6, &end(2, to)), "{to}");
    }
    let mut group = source;
    group.hardware_address[0] |= 1;
    assert!(!parsed(&group, &destination) && !parsed(&source, &group));
    assert_eq!(Template::new(&source, &destination6), None);
}

#[test]
fn a_template_for_another_port_differs_in_nothing_else() {
    let (source, mut destination) = ends(Version::V6);
    let template = Template::new(&source, &destination).expect("one family");
    destination.address.set_port(7_001);
    assert_eq!(
        Some(template.with_destination_port(7_001)),
        Template::new(&source, &destination)
    );
}

#[test]
fn a_frame_that_is_too_short_for_an_answer_is_left_as_it_is() {
    for version in VERSIONS {
        let (source, destination) = ends(version);
        let template = Template::new(&source, &destination).expect("one family");
        let asked = frame(version, b"question", Checksum::Compute);
        let packet = Packet::parse(&asked, Verify::Checksum).expect("well-formed");
        let mut answered = asked.clone();
        let room = asked.len() - version.header_bytes();
        for payload in [room + 1, 65_536, usize::MAX] {
            assert_eq!(
                packet.reply(&mut answered, payload, Checksum::Compute),
                None
            );
            assert_eq!(
                template.write(&mut answered, payload, Checksum::Compute),
                None
            );
        }
        // The longest datagram that there can be, and one byte more.
        let limit = match version {
            Version::V4 => 65_507,
            Version::V6 => 65_527,
        };
        let mut long = vec![0; 70_000];
        long[..asked.len()].copy_from_slice(&asked);
        assert_eq!(packet.reply(&mut long, limit + 1, Checksum::Compute), None);
        assert_eq!(
            template.write(&mut long, limit + 1, Checksum::Compute),
            None
        );
        assert_eq!(long[..asked.len()], asked);
        let length = packet.reply(&mut long, limit, Checksum::Compute);
        assert_eq!(length, Some(limit + version.header_bytes()));
        assert!(Packet::parse(&long[..limit + version.header_bytes()], Verify::Checksum).is_some());
        assert_eq!(answered, asked);
    }
}

fn any_version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V4), Just(Version::V6)]
}

fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..1_500)
}

proptest! {
    #[test]
    fn no_bytes_whatever_lead_astray(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for verify in VERIFY {
            prop_assert_eq!(Packet::parse(&bytes, verify), None);
        }
    }

    /// Bytes that look like a datagram at first: whatever is understood lies within the frame.
    #[test]
    fn damage_is_noticed_or_harmless(
        version in any_version(),
        payload in proptest::collection::vec(any::<u8>(), 0..60),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        length in any::<prop::sample::Index>(),
        answer in 0..200_usize,
    ) {
        let mut frame = frame(version, &payload, Checksum::Compute);
        for (at, value) in damage {
            *at.get_mut(&mut frame) = value;
        }
        frame.truncate(length.index(frame.len() + 1));
        for verify in VERIFY {
            if let Some(packet) = Packet::parse(&frame, verify) {
                prop_assert!(packet.payload().end <= frame.len());
                prop_assert!(packet.source(&frame).is_some());
                prop_assert!(packet.destination(&frame).is_some());
                // What is shorter than what was parsed does not lead astray either.
                for shorter in 0..packet.version().header_bytes() {
                    let cut = &frame[..shorter.min(frame.len())];
                    let _ = (packet.source(cut), packet.destination(cut), packet.destination_port(cut));
                }
                let mut room = frame.clone();
                room.resize(150, 0);
                let written = packet.reply(&mut room, answer, Checksum::Compute);
                prop_assert_eq!(written.is_some(), answer + packet.version().header_bytes() <= 150);
            }
        }
    }

    #[test]
    fn one_changed_byte_of_a_datagram_is_noticed(
        version in any_version(),
        payload in any_payload(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let mut frame = frame(version, &payload, Checksum::Compute);
        // In IPv6, no checksum covers version, class, flow label and hop limit.
        let start = match version {
            Version::V4 => ETHERNET_BYTES,
            Version::V6 => ETHERNET_BYTES + 8,
        };
        let at = start + at.index(frame.len() - start);
        frame[at] ^= change;
        let udp = version.transport();
        // With another length, the sum is over other bytes, and may be right by chance.
        prop_assume!(!(udp + 4..udp + 6).contains(&at));
        // A checksum that becomes zero says that there is none; what was changed then was the checksum itself.
        prop_assume!(version == Version::V6 || frame[udp + 6..udp + 8] != [0, 0]);
        prop_assert_eq!(Packet::parse(&frame, Verify::Checksum), None);
    }

    #[test]
    fn every_end_that_is_cut_off_is_noticed(version in any_version(), payload in any_payload(), by in 1..2_000_usize) {
        let frame = frame(version, &payload, Checksum::Compute);
        let cut = &frame[..frame.len().saturating_sub(by)];
        for verify in VERIFY {
            prop_assert_eq!(Packet::parse(cut, verify), None);
        }
    }

    #[test]
    fn padding_is_not_payload(version in any_version(), payload in any_payload(), padding in 1..100_usize) {
        let mut frame = frame(version, &payload, Checksum::Compute);
        frame.resize(frame.len() + padding, 0x5a);
        let packet = Packet::parse(&frame, Verify::Checksum).expect("well-formed");
        prop_assert_eq!(&frame[packet.payload()], &payload[..]);
    }

    /// An answer in place is what the other side would have written.
    #[test]
    fn an_answer_in_place_goes_back_to_where_the_question_came_from(
        version in any_version(),
        question in any_payload(),
        answer in any_payload(),
        omit in any::<bool>(),
    ) {
        let checksum = if omit { Checksum::OmitOverIpv4 } else { Checksum::Compute };
        let mut room = frame(version, &question, Checksum::Compute);
        let packet = Packet::parse(&room, Verify::Checksum).expect("well-formed");
        room.resize(2_000, 0x77);
        let start = packet.payload().start;
        room[start..start + answer.len()].copy_from_slice(&answer);
        let length = packet.reply(&mut room, answer.len(), checksum).expect("it fits");

        let (source, destination) = ends(version);
        let mut expected = vec![0; start];
        expected.extend_from_slice(&answer);
        let back = Template::new(&destination, &source).expect("one family");
        prop_assert_eq!(back.write(&mut expected, answer.len(), checksum), Some(length));
        prop_assert_eq!(&room[..length], &expected[..]);
        prop_assert!(Packet::parse(&room[..length], Verify::Checksum).is_some());
        let untouched = length.max(start + question.len());
        prop_assert!(room[untouched..].iter().all(|byte| *byte == 0x77));
    }
}
