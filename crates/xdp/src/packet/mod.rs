//! UDP datagrams in Ethernet frames, read and made in byte slices. Pure: no sockets, no memory of its own.
//!
//! Understood are IPv4 (RFC 791) without options and IPv6 (RFC 8200) without extension headers, not in fragments, without
//! a VLAN tag: what the [`Program`](crate::Program) hands out. Everything that arrives is checked, and what is malformed,
//! truncated or cannot be answered is `None`.

mod checksum;
mod template;

pub use template::{Endpoint, Template};

use checksum::Sum;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// An Ethernet header, in bytes.
pub const ETHERNET_BYTES: usize = 14;
/// An IPv4 header without options, in bytes.
pub const IPV4_BYTES: usize = 20;
/// An IPv6 header without extensions, in bytes.
pub const IPV6_BYTES: usize = 40;
/// A UDP header, in bytes.
pub const UDP_BYTES: usize = 8;

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// What answers are sent with: "time to live" and "hop limit".
const HOP_LIMIT: u8 = 64;

/// The version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// Where the UDP header lies in a frame.
    const fn transport(self) -> usize {
        ETHERNET_BYTES
            + match self {
                Self::V4 => IPV4_BYTES,
                Self::V6 => IPV6_BYTES,
            }
    }

    /// Where the payload lies in a frame: all headers together, in bytes.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        self.transport() + UDP_BYTES
    }

    /// Where both addresses lie in a frame, the source before the destination.
    const fn addresses(self) -> Range<usize> {
        match self {
            Self::V4 => ETHERNET_BYTES + 12..ETHERNET_BYTES + 20,
            Self::V6 => ETHERNET_BYTES + 8..ETHERNET_BYTES + 40,
        }
    }
}

/// How far the UDP checksum of a datagram is checked. The checksum of an IPv4 header always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// It must be right; over IPv4 it may be absent.
    Checksum,
    /// As [`Checksum`](Self::Checksum), or unfinished. The kernel leaves the checksum of what it sends to the device, and
    /// a virtual one (veth) hands it to its peer as it is: the sum of the pseudo header only. Damage of such a datagram
    /// is not noticed; it never left the host's memory.
    ChecksumOrOffload,
    /// Not at all.
    Nothing,
}

/// What is done about the UDP checksum of a datagram that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Computed.
    Compute,
    /// Left out over IPv4 (RFC 768 allows it); computed over IPv6 (RFC 8200 demands it).
    OmitOverIpv4,
}

/// A UDP datagram that was found well-formed in a frame: where its parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    version: Version,
    payload_bytes: u16,
}

impl Packet {
    /// Look at a frame.
    ///
    /// `None` unless it holds one whole UDP datagram whose lengths and checksums are right and whose sender can be
    /// answered: no group addresses (MAC or IP) on either side, and a source that is not unspecified, loopback or
    /// broadcast (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5). Bytes behind the datagram (padding) are ignored.
    #[must_use]
    #[inline]
    pub fn parse(frame: &[u8], verify: Verify) -> Option<Self> {
        let (ethernet, network) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
        // The bit of group addresses, of which broadcast is one.
        if (ethernet[0] | ethernet[6]) & 1 != 0 {
            return None;
        }
        let (version, datagram) = match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
            ETHERTYPE_IPV4 => (Version::V4, ipv4(network)?),
            ETHERTYPE_IPV6 => (Version::V6, ipv6(network)?),
            _ => return None,
        };
        let header = datagram.first_chunk::<UDP_BYTES>()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let datagram = datagram.get(..length)?;
        let payload_bytes = length.checked_sub(UDP_BYTES)?;
        let given = [header[6], header[7]];
        let right = match (verify, given) {
            (Verify::Nothing, _) => true,
            (_, [0, 0]) => version == Version::V4,
            _ => {
                let pseudo = pseudo_header(frame.get(version.addresses())?, length);
                pseudo.and(datagram).finish() == [0, 0]
                    || (verify == Verify::ChecksumOrOffload && pseudo.folded() == given)
            }
        };
        right.then_some(Self {
            version,
            payload_bytes: u16::try_from(payload_bytes).ok()?,
        })
    }

    /// IPv4 or IPv6.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where the payload lies in the frame.
    #[inline]
    pub fn payload(&self) -> Range<usize> {
        let start = self.version.header_bytes();
        start..start + usize::from(self.payload_bytes)
    }

    /// Who sent it. `None` if `frame` is shorter than the one that was parsed.
    #[must_use]
    pub fn source(&self, frame: &[u8]) -> Option<SocketAddr> {
        self.end(frame, 0)
    }

    /// Whom it is for. `None` if `frame` is shorter than the one that was parsed.
    #[must_use]
    pub fn destination(&self, frame: &[u8]) -> Option<SocketAddr> {
        self.end(frame, 1)
    }

    /// The port that it is for. `None` if `frame` is shorter than the one that was parsed.
    #[must_use]
    #[inline]
    pub fn destination_port(&self, frame: &[u8]) -> Option<u16> {
        let header = frame.get(self.version.transport()..)?.first_chunk::<4>()?;
        Some(u16::from_be_bytes([header[2], header[3]]))
    }

    fn end(&self, frame: &[u8], end: usize) -> Option<SocketAddr> {
        let addresses = frame.get(self.version.addresses())?;
        let address = &addresses[end * addresses.len() / 2..];
        let address = match self.version {
            Version::V4 => IpAddr::V4(Ipv4Addr::from(*address.first_chunk::<4>()?)),
            Version::V6 => IpAddr::V6(Ipv6Addr::from(*address.first_chunk::<16>()?)),
        };
        let ports = frame.get(self.version.transport()..)?.first_chunk::<4>()?;
        let port = u16::from_be_bytes([ports[2 * end], ports[2 * end + 1]]);
        Some(SocketAddr::new(address, port))
    }

    /// Make the frame that held this datagram the one that answers it, in place: addresses and ports change sides,
    /// headers, lengths and checksums are made anew. The answer's payload of `payload_bytes` must lie where
    /// [`payload`](Self::payload) begins. Returns the length of the frame in bytes.
    ///
    /// `None`, and nothing is changed, if `frame` is too short for it or a datagram cannot be that long.
    #[must_use]
    #[inline]
    pub fn reply(
        &self,
        frame: &mut [u8],
        payload_bytes: usize,
        checksum: Checksum,
    ) -> Option<usize> {
        let version = self.version;
        let end = version.header_bytes().checked_add(payload_bytes)?;
        let frame = frame.get_mut(..end)?;
        let total = datagram_bytes(version, payload_bytes)?;
        let (ethernet, network) = frame.split_first_chunk_mut::<ETHERNET_BYTES>()?;
        swap_halves(&mut ethernet[..12]);
        match version {
            Version::V4 => {
                let (header, transport) = network.split_first_chunk_mut::<IPV4_BYTES>()?;
                swap_halves(&mut header[12..]);
                swap_halves(&mut transport[..4]);
                let fixed = ipv4_start(total.network);
                header[..12].copy_from_slice(&fixed);
                let sum = Sum::default().and(header).finish();
                header[10..12].copy_from_slice(&sum);
            }
            Version::V6 => {
                let (header, transport) = network.split_first_chunk_mut::<IPV6_BYTES>()?;
                swap_halves(&mut header[8..]);
                swap_halves(&mut transport[..4]);
                header[..8].copy_from_slice(&ipv6_start(total.network));
            }
        }
        finish_udp(frame, version, total.transport, checksum);
        Some(end)
    }
}

/// Lengths as headers say them.
struct Lengths {
    /// Of the IPv4 datagram with its header, or of the IPv6 payload.
    network: u16,
    /// Of the UDP datagram with its header.
    transport: u16,
}

/// `None` when a datagram cannot be that long.
#[inline]
fn datagram_bytes(version: Version, payload_bytes: usize) -> Option<Lengths> {
    let transport = u16::try_from(payload_bytes.checked_add(UDP_BYTES)?).ok()?;
    let network = match version {
        Version::V4 => transport.checked_add(IPV4_BYTES as u16)?,
        Version::V6 => transport,
    };
    Some(Lengths { network, transport })
}

/// The first twelve bytes of an IPv4 header, without the checksum. "Don't fragment" is set, so that the identification
/// may be zero (RFC 6864).
#[inline]
fn ipv4_start(total_bytes: u16) -> [u8; 12] {
    let [high, low] = total_bytes.to_be_bytes();
    [
        0x45,
        0,
        high,
        low,
        0,
        0,
        0x40,
        0,
        HOP_LIMIT,
        PROTOCOL_UDP,
        0,
        0,
    ]
}

/// The first eight bytes of an IPv6 header.
#[inline]
fn ipv6_start(payload_bytes: u16) -> [u8; 8] {
    let [high, low] = payload_bytes.to_be_bytes();
    [0x60, 0, 0, 0, high, low, PROTOCOL_UDP, HOP_LIMIT]
}

/// Set length and checksum of the UDP header; addresses, ports and payload are there, and the frame ends with it.
#[inline]
fn finish_udp(frame: &mut [u8], version: Version, bytes: u16, checksum: Checksum) {
    let pseudo = pseudo_header(&frame[version.addresses()], usize::from(bytes));
    let datagram = &mut frame[version.transport()..];
    datagram[4..6].copy_from_slice(&bytes.to_be_bytes());
    datagram[6..8].fill(0);
    if checksum == Checksum::OmitOverIpv4 && version == Version::V4 {
        return;
    }
    let sum = match pseudo.and(datagram).finish() {
        // Zero would say that there is none; in ones' complement, all ones are the same number.
        [0, 0] => [0xff, 0xff],
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum);
}

/// The sum over the addresses, the protocol and the length of a UDP datagram (RFC 768; RFC 8200, section 8.1).
#[inline]
fn pseudo_header(addresses: &[u8], length: usize) -> Sum {
    Sum::default()
        .and(addresses)
        .and_number(PROTOCOL_UDP.into())
        .and_number(length as u32)
}

#[inline]
fn swap_halves(bytes: &mut [u8]) {
    let (first, second) = bytes.split_at_mut(bytes.len() / 2);
    first.swap_with_slice(second);
}

/// The IPv4 datagram's payload.
#[inline]
fn ipv4(network: &[u8]) -> Option<&[u8]> {
    let header = network.first_chunk::<IPV4_BYTES>()?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    let source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
    let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    // "This network" is 0.0.0.0/8; from 224.0.0.0 on are groups, what is reserved, and broadcast.
    let can_be_answered = !matches!(source.octets()[0], 0 | 127 | 224..)
        && !matches!(destination.octets()[0], 0 | 224..);
    let right = header[0] == 0x45
        && fragment == 0
        && header[9] == PROTOCOL_UDP
        && can_be_answered
        && Sum::default().and(header).finish() == [0, 0];
    network
        .get(..total)
        .filter(|_| right)
        .and_then(|datagram| datagram.get(IPV4_BYTES..))
}

/// The IPv6 packet's payload.
#[inline]
fn ipv6(network: &[u8]) -> Option<&[u8]> {
    let (header, rest) = network.split_first_chunk::<IPV6_BYTES>()?;
    let payload_bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let source = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
    let destination = Ipv6Addr::from(*header[24..].first_chunk::<16>()?);
    let can_be_answered = !source.is_multicast()
        && !source.is_unspecified()
        && !source.is_loopback()
        && !destination.is_multicast()
        && !destination.is_unspecified();
    let right = header[0] >> 4 == 6 && header[6] == PROTOCOL_UDP && can_be_answered;
    rest.get(..payload_bytes).filter(|_| right)
}

#[cfg(test)]
mod tests;
