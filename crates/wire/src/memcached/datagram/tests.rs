use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_sent_is_received(request in any::<u16>(), sequence in any::<u16>(), datagrams in any::<u16>(), is_text in any::<bool>(), rest in prop::collection::vec(any::<u8>(), 0..20)) {
        let format = if is_text { Format::Text } else { Format::Batch };
        let frame = Frame { request, sequence, datagrams, format };
        let datagram = [&frame.to_bytes()[..], &rest].concat();
        prop_assert_eq!(Frame::parse(&datagram), Some((frame, &rest[..])));
        prop_assert_eq!(Frame::parse(&datagram[..7]), None);
    }
}

#[test]
fn memcached_s_own_frame_is_read() {
    let (frame, rest) = Frame::parse(b"\x12\x34\0\0\0\x01\0\0get a\r\n").expect("a frame");
    assert_eq!(frame, Frame::single(0x1234, Format::Text));
    assert_eq!(rest, b"get a\r\n");
    assert_eq!(Frame::parse(b"\x12\x34\0\0\0\x01\0\x01get a\r\n"), None);
}
