use super::*;

fn umem() -> (Umem, Vec<Frame>) {
    Umem::new(4, 2048).expect("a little memory")
}

#[test]
fn a_frame_comes_back_from_the_kernel_once_and_for_what_it_was_given() {
    let (mut umem, mut frames) = umem();
    let arrived = Descriptor {
        address: 2048 + 256,
        length: 100,
    };
    assert_eq!(umem.received(arrived), None);
    assert_eq!(umem.transmitted(arrived.address), None);

    assert_eq!(umem.give_to_receive(frames.remove(1)), 2048);
    assert_eq!(umem.transmitted(2048), None);
    let mut frame = umem.received(arrived).expect("it was the kernel's");
    assert_eq!((frame.length(), frame.room()), (100, 2048 - 256));
    assert_eq!(umem.received(arrived), None);

    frame.set_length(60);
    let sent = umem.give_to_transmit(frame);
    let expected = Descriptor {
        length: 60,
        ..arrived
    };
    assert_eq!(sent, expected);
    assert_eq!(umem.received(arrived), None);
    let frame = umem.transmitted(sent.address).expect("it was the kernel's");
    assert_eq!((frame.length(), frame.room()), (0, 2048));
    assert_eq!(umem.transmitted(sent.address), None);
}

#[test]
fn what_cannot_lie_in_the_memory_is_no_frame() {
    let (mut umem, mut frames) = umem();
    umem.give_to_receive(frames.remove(3));
    for (address, length) in [
        (4 * 2048, 1),
        (u64::MAX, 1),
        (1 << 60, 1),
        (3 * 2048 + 256, 2048 - 255),
        (3 * 2048, u32::MAX),
    ] {
        assert_eq!(umem.received(Descriptor { address, length }), None);
    }
    assert_eq!(umem.transmitted(u64::MAX), None);
    let whole = Descriptor {
        address: 3 * 2048 + 256,
        length: 2048 - 256,
    };
    assert!(umem.received(whole).is_some());
}

#[test]
fn bytes_stay_in_their_frame() {
    let (mut umem, mut frames) = umem();
    for (number, frame) in frames.iter_mut().enumerate() {
        umem.room(frame).fill(number as u8);
        frame.set_length(2048);
    }
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(umem.packet(frame), [number as u8; 2048]);
    }
    // What arrives begins behind the headroom, and is seen from there to the frame's end.
    umem.give_to_receive(frames.remove(2));
    let arrived = Descriptor {
        address: 2 * 2048 + 2040,
        length: 8,
    };
    let mut frame = umem.received(arrived).expect("it was the kernel's");
    assert_eq!(umem.packet(&frame), [2; 8]);
    umem.room(&mut frame).fill(9);
    assert_eq!(umem.packet(&frames[2]), [3; 2048]);
}

#[test]
#[should_panic(expected = "a frame of another socket")]
fn a_frame_of_another_memory_is_refused() {
    let ((umem, _), (_other, frames)) = (umem(), self::umem());
    umem.packet(&frames[0]);
}

#[test]
#[should_panic(expected = "1793 bytes in a frame of 1792")]
fn a_packet_longer_than_its_frame_is_refused() {
    let (mut umem, mut frames) = umem();
    umem.give_to_receive(frames.remove(0));
    let arrived = Descriptor {
        address: 256,
        length: 1,
    };
    let mut frame = umem.received(arrived).expect("it was the kernel's");
    frame.set_length(1793);
}
