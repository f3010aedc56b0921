use super::{
    Checksum, ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPV4_BYTES, IPV6_BYTES, UDP_BYTES,
    Version, checksum::Sum, datagram_bytes, finish_udp, ipv4_start, ipv6_start,
};
use std::net::{IpAddr, SocketAddr};

/// One end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The MAC address of its interface, or of the router on the way to it.
    pub hardware_address: [u8; 6],
    /// Its address and UDP port.
    pub address: SocketAddr,
}

/// The headers of datagrams from one end to another, made once; each datagram adds only its lengths and checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    version: Version,
    headers: [u8; ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES],
}

impl Template {
    /// Headers for datagrams from `source` to `destination`; `None` if one has an IPv4 address and the other IPv6.
    #[must_use]
    pub fn new(source: &Endpoint, destination: &Endpoint) -> Option<Self> {
        let mut headers = [0; ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES];
        let (version, ethertype) = match (source.address.ip(), destination.address.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                headers[26..30].copy_from_slice(&source.octets());
                headers[30..34].copy_from_slice(&destination.octets());
                (Version::V4, ETHERTYPE_IPV4)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                headers[22..38].copy_from_slice(&source.octets());
                headers[38..54].copy_from_slice(&destination.octets());
                (Version::V6, ETHERTYPE_IPV6)
            }
            _ => return None,
        };
        headers[..6].copy_from_slice(&destination.hardware_address);
        headers[6..12].copy_from_slice(&source.hardware_address);
        headers[12..14].copy_from_slice(&ethertype.to_be_bytes());
        let mut template = Self { version, headers };
        template.set_port(0, source.address.port());
        template.set_port(2, destination.address.port());
        Some(template)
    }

    /// The same to another port.
    #[must_use]
    pub fn with_destination_port(mut self, port: u16) -> Self {
        self.set_port(2, port);
        self
    }

    fn set_port(&mut self, at: usize, port: u16) {
        let at = self.version.transport() + at;
        self.headers[at..at + 2].copy_from_slice(&port.to_be_bytes());
    }

    /// IPv4 or IPv6.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where the payload begins in a frame, in bytes.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        self.version.header_bytes()
    }

    /// Write the headers before a payload of `payload_bytes` that lies at [`header_bytes`](Self::header_bytes) of `frame`.
    /// Returns the length of the frame in bytes.
    ///
    /// `None`, and nothing is written, if `frame` is too short for it or a datagram cannot be that long.
    #[must_use]
    #[inline]
    pub fn write(
        &self,
        frame: &mut [u8],
        payload_bytes: usize,
        checksum: Checksum,
    ) -> Option<usize> {
        let header_bytes = self.header_bytes();
        let end = header_bytes.checked_add(payload_bytes)?;
        let frame = frame.get_mut(..end)?;
        let total = datagram_bytes(self.version, payload_bytes)?;
        frame[..header_bytes].copy_from_slice(&self.headers[..header_bytes]);
        match self.version {
            Version::V4 => {
                let header = &mut frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES];
                header[..12].copy_from_slice(&ipv4_start(total.network));
                let sum = Sum::default().and(header).finish();
                header[10..12].copy_from_slice(&sum);
            }
            Version::V6 => {
                frame[ETHERNET_BYTES..ETHERNET_BYTES + 8]
                    .copy_from_slice(&ipv6_start(total.network));
            }
        }
        finish_udp(frame, self.version, total.transport, checksum);
        Some(end)
    }
}
