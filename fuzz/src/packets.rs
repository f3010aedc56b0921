//! What an AF_XDP socket hands over: Ethernet frames, in which a UDP datagram may be, and the answers built in them.

use std::net::{IpAddr, SocketAddr};
use xdp::packet::{
    Checksum, ETHERNET_BYTES, Endpoint, IPV4_BYTES, IPV6_BYTES, Packet, Template, UDP_BYTES, Verify,
};

/// What answers are told apart by.
const ANSWER: &[u8] = b"an answer";

/// A frame is taken by the letter of the standards or not at all, whatever lies behind it; what is taken is where the
/// frame says it is; and the answer goes back to whom it came from, as another frame that would be taken.
pub fn run(data: &[u8]) {
    let Some((&settings, frame)) = data.split_first() else {
        return;
    };
    let mut frame = frame.to_vec();
    let choice = |number: u8| settings >> number & 1 == 1;
    mend(&mut frame, choice(0), choice(1), choice(2));
    let taken = [Verify::Checksum, Verify::ChecksumOrOffload, Verify::Nothing]
        .map(|verify| Packet::parse(&frame, verify));
    let read = read(&frame);
    for (taken, sum) in taken.iter().zip([
        &[Sum::Right, Sum::Absent][..],
        &[Sum::Right, Sum::Absent, Sum::Unfinished],
        &[
            Sum::Right,
            Sum::Absent,
            Sum::Unfinished,
            Sum::Missing,
            Sum::Wrong,
        ],
    ]) {
        let expected = read.as_ref().filter(|read| {
            // One number can be both.
            sum.contains(&read.sum) || (read.is_unfinished && sum.contains(&Sum::Unfinished))
        });
        assert_eq!(taken.is_some(), expected.is_some(), "{read:?}");
    }
    let ([.., Some(packet)], Some(read)) = (taken, read) else {
        return;
    };
    assert_eq!(packet.payload(), read.payload);
    assert_eq!(packet.source(&frame), Some(read.source));
    assert_eq!(packet.destination(&frame), Some(read.destination));
    assert_eq!(
        packet.destination_port(&frame),
        Some(read.destination.port())
    );
    // What is behind the datagram is nothing to it; without its last byte it is not whole.
    let end = read.whole;
    for verify in [Verify::Checksum, Verify::Nothing] {
        let whole = Packet::parse(&frame[..end], verify);
        assert_eq!(whole, Packet::parse(&frame, verify));
        assert_eq!(Packet::parse(&frame[..end - 1], verify), None);
    }
    let checksum = if choice(3) {
        Checksum::Compute
    } else {
        Checksum::OmitOverIpv4
    };
    check_answers(&frame, packet, &read, checksum);
}

fn check_answers(frame: &[u8], packet: Packet, read: &Read, checksum: Checksum) {
    let start = read.payload.start;
    let mut room = frame.to_vec();
    // Where there is no room, or no datagram is that long, nothing happens.
    for length in [room.len() - start + 1, 65_536, usize::MAX] {
        assert_eq!(packet.reply(&mut room, length, checksum), None);
        assert_eq!(room, frame);
    }
    room.resize(room.len().max(start + ANSWER.len()), 0);
    room[start..start + ANSWER.len()].copy_from_slice(ANSWER);
    let length = packet.reply(&mut room, ANSWER.len(), checksum);
    assert_eq!(length, Some(start + ANSWER.len()));
    let answer = &room[..start + ANSWER.len()];
    // As one that is made from nothing.
    let mac = |bytes: &[u8]| <[u8; 6]>::try_from(bytes).expect("six bytes");
    let to = Endpoint {
        hardware_address: mac(&frame[6..12]),
        address: read.source,
    };
    let from = Endpoint {
        hardware_address: mac(&frame[..6]),
        address: read.destination,
    };
    let template = Template::new(&from, &to).expect("one family");
    let mut made = vec![0x5a; start + ANSWER.len()];
    made[start..].copy_from_slice(ANSWER);
    let length = template.write(&mut made, ANSWER.len(), checksum);
    assert_eq!(length, Some(made.len()));
    assert_eq!(made, answer);
    let reread = self::read(answer);
    // Who asked an address that is nobody's sender, such as 127.0.0.1, gets an answer that is not taken.
    if let Some(reread) = &reread {
        assert_eq!(
            (reread.source, reread.destination),
            (read.destination, read.source)
        );
        assert_eq!(&answer[reread.payload.clone()], ANSWER);
        let omits = checksum == Checksum::OmitOverIpv4 && read.source.is_ipv4();
        let sum = if omits { Sum::Absent } else { Sum::Right };
        assert_eq!(reread.sum, sum);
    }
    assert_eq!(
        Packet::parse(answer, Verify::Checksum).is_some(),
        reread.is_some()
    );
}

/// A datagram as the standards have it, found one field after the other.
#[derive(Debug)]
struct Read {
    source: SocketAddr,
    destination: SocketAddr,
    payload: std::ops::Range<usize>,
    /// Where the datagram ends in the frame, with what its network header counts beside.
    whole: usize,
    sum: Sum,
    is_unfinished: bool,
}

/// What a UDP checksum is.
#[derive(Debug, PartialEq, Eq)]
enum Sum {
    Right,
    /// Left out, as IPv4 allows.
    Absent,
    /// Left out over IPv6.
    Missing,
    /// Left to the device.
    Unfinished,
    Wrong,
}

fn read(frame: &[u8]) -> Option<Read> {
    let number = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    if frame.get(..ETHERNET_BYTES)?[0] & 1 == 1 || frame[6] & 1 == 1 {
        return None;
    }
    let network = &frame[ETHERNET_BYTES..];
    let (source, destination, transport, whole): (IpAddr, IpAddr, usize, usize);
    match number(12)? {
        0x0800 => {
            let header = network.get(..IPV4_BYTES)?;
            let total = usize::from(number(16)?);
            let address = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
            let (from, to) = (address(12), address(16));
            let is_taken = header[0] == 0x45
                && total >= IPV4_BYTES
                && (header[6] & 0x3f, header[7]) == (0, 0)
                && header[9] == 17
                && sum_of([header]) == 0xffff
                && !matches!(from[0], 0 | 127 | 224..)
                && !matches!(to[0], 0 | 224..);
            if !is_taken {
                return None;
            }
            (source, destination) = (from.into(), to.into());
            transport = ETHERNET_BYTES + IPV4_BYTES;
            whole = ETHERNET_BYTES + total;
        }
        0x86dd => {
            let header = network.get(..IPV6_BYTES)?;
            let address = |at: usize| <[u8; 16]>::try_from(&header[at..at + 16]).expect("16");
            let (from, to) = (address(8), address(24));
            let is_taken = header[0] >> 4 == 6
                && header[6] == 17
                && from[0] != 0xff
                && from[..15].iter().any(|&byte| byte != 0) | (from[15] > 1)
                && to[0] != 0xff
                && to.iter().any(|&byte| byte != 0);
            if !is_taken {
                return None;
            }
            (source, destination) = (from.into(), to.into());
            transport = ETHERNET_BYTES + IPV6_BYTES;
            whole = transport + usize::from(number(18)?);
        }
        _ => return None,
    }
    let datagram = frame.get(transport..whole)?;
    let header = datagram.get(..UDP_BYTES)?;
    let bytes = usize::from(number(transport + 4)?);
    let datagram = datagram.get(..bytes).filter(|_| bytes >= UDP_BYTES)?;
    let given = number(transport + 6)?;
    let pseudo = pseudo_header(frame, transport, bytes);
    let sum = match given {
        0 if source.is_ipv4() => Sum::Absent,
        0 => Sum::Missing,
        _ if sum_of([&pseudo[..], datagram]) == 0xffff => Sum::Right,
        _ if sum_of([&pseudo[..]]) == given => Sum::Unfinished,
        _ => Sum::Wrong,
    };
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Some(Read {
        source: (source, port(0)).into(),
        destination: (destination, port(2)).into(),
        payload: transport + UDP_BYTES..transport + bytes,
        // That the network header counts more is nothing to the datagram, but it must be there.
        whole,
        is_unfinished: given != 0 && sum_of([&pseudo[..]]) == given,
        sum,
    })
}

/// Make sums and lengths right that an engine would hardly come upon.
fn mend(frame: &mut [u8], lengths: bool, network: bool, transport: bool) {
    let Some(&[high, low]) = frame.get(12..14) else {
        return;
    };
    let at = match u16::from_be_bytes([high, low]) {
        0x0800 => ETHERNET_BYTES + IPV4_BYTES,
        0x86dd => ETHERNET_BYTES + IPV6_BYTES,
        _ => return,
    };
    if frame.len() < at + UDP_BYTES {
        return;
    }
    let is_ipv4 = at == ETHERNET_BYTES + IPV4_BYTES;
    let bytes = (frame.len() - at) as u16;
    let mut put = |at: usize, number: u16| frame[at..at + 2].copy_from_slice(&number.to_be_bytes());
    if lengths {
        put(at + 4, bytes);
        if is_ipv4 {
            put(16, bytes + IPV4_BYTES as u16);
        } else {
            put(18, bytes);
        }
    }
    if network && is_ipv4 {
        frame[24..26].fill(0);
        let sum = !sum_of([&frame[ETHERNET_BYTES..at]]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    let bytes = usize::from(u16::from_be_bytes([frame[at + 4], frame[at + 5]]));
    if transport && at + bytes <= frame.len() && bytes >= UDP_BYTES {
        frame[at + 6..at + 8].fill(0);
        let pseudo = pseudo_header(frame, at, bytes);
        let sum = match !sum_of([&pseudo[..], &frame[at..at + bytes]]) {
            0 => 0xffff,
            sum => sum,
        };
        frame[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// What the UDP checksum covers beside the datagram (RFC 768; RFC 8200, section 8.1): the same numbers for both, though
/// not in the same places, which the sum does not tell apart.
fn pseudo_header(frame: &[u8], transport: usize, bytes: usize) -> Vec<u8> {
    let addresses = if transport == ETHERNET_BYTES + IPV4_BYTES {
        &frame[26..34]
    } else {
        &frame[22..54]
    };
    let bytes = (bytes as u16).to_be_bytes();
    [addresses, &[0, 17], &bytes].concat()
}

/// The sum of RFC 1071, one number after the other; all parts but the last are of even lengths.
fn sum_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u16 {
    let mut sum = 0_u16;
    for pair in parts.into_iter().flat_map(|part| part.chunks(2)) {
        let number = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
        let (wrapped, carry) = sum.overflowing_add(number);
        sum = wrapped + u16::from(carry);
    }
    sum
}
