//! Receiving, answering and sending allocate nothing: every allocation of the thread that does it is counted.

mod common;

use common::{pair, ports};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};
use xdp::packet::{Checksum, Packet, Template, Verify};
use xdp::{Attach, BURST, Frame, Options, Program, Socket};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator, which keeps the contract; counting touches no memory that
// is allocated here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Take what arrives, make answers in place where `answers`, and send them. Returns how many packets came.
fn turn(socket: &mut Socket, frames: &mut Vec<Frame>, answers: bool) -> usize {
    let received = socket.receive(frames, BURST);
    if answers {
        for frame in frames.iter_mut() {
            let packet = Packet::parse(socket.packet(frame), Verify::Checksum).expect("as sent");
            let payload_bytes = packet.payload().len();
            let length = packet.reply(socket.room(frame), payload_bytes, Checksum::Compute);
            frame.set_length(length.expect("it fits"));
        }
        socket.transmit(frames);
    } else {
        for frame in frames.drain(..) {
            socket.release(frame);
        }
    }
    socket.wake().expect("the interface is there");
    received
}

#[test]
fn packets_go_to_and_fro_without_an_allocation() {
    let Some(pair) = pair(1) else { return };
    let open = |end: &common::End| {
        end.namespace.run(|| {
            let program = Program::load(&ports(7_000, 7_000), 1).expect("loads");
            let attached = program.attach(&end.interface, Attach::BestAvailable);
            let socket = Socket::bind(&end.interface, 0, &Options::default()).expect("binds");
            program.register(&socket).expect("registers");
            (attached.expect("attaches"), socket)
        })
    };
    let (_client_attached, mut client) = open(&pair.left);
    let (_server_attached, mut server) = open(&pair.right);
    let template =
        Template::new(&pair.left.endpoint(7_000), &pair.right.endpoint(7_000)).expect("one family");
    let mut frames = Vec::with_capacity(BURST);
    let mut served = Vec::with_capacity(BURST);
    let start = Instant::now();
    let before = ALLOCATIONS.get();
    for _ in 0..200 {
        while frames.len() < BURST {
            let mut frame = client.take().expect("a frame");
            let length = template.write(client.room(&mut frame), 64, Checksum::Compute);
            frame.set_length(length.expect("it fits"));
            frames.push(frame);
        }
        client.transmit(&mut frames);
        client.wake().expect("the interface is there");
        let mut answered = 0;
        while answered < BURST && start.elapsed() < Duration::from_secs(300) {
            turn(&mut server, &mut served, true);
            answered += turn(&mut client, &mut frames, false);
        }
        assert_eq!(answered, BURST);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    // And that allocations are counted at all.
    drop(std::hint::black_box(vec![0_u8; 100]));
    assert!(ALLOCATIONS.get() > before);
}
