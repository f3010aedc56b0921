//! Traffic over veth pairs: between the kernel's sockets and ours, and between ours.

use crate::common::{End, Pair, pair, ports};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use xdp::packet::{Checksum, Packet, Template, Verify};
use xdp::{Attach, Attachment, BURST, Filter, Frame, Mode, Options, Program, Socket, Statistics};

/// Far longer than anything takes, so that a test that hangs ends.
const DEADLINE: Duration = Duration::from_secs(300);

const PORT: u16 = 7_000;

/// A program at work on an end, and a socket for each of its queues.
struct Served {
    _attachment: Attachment,
    sockets: Vec<Socket>,
}

fn serve(end: &End, filter: &Filter, mode: Mode) -> Served {
    end.namespace.run(|| {
        let queues = end.interface.receive_queues;
        let program = Program::load(filter, queues).expect("loads");
        let attachment = program
            .attach(&end.interface, Attach::Only(mode))
            .expect("attaches");
        assert_eq!(attachment.mode(), mode);
        let sockets = (0..queues).map(|queue| {
            let socket = Socket::bind(&end.interface, queue, &Options::default()).expect("binds");
            program.register(&socket).expect("registers");
            socket
        });
        Served {
            sockets: sockets.collect(),
            _attachment: attachment,
        }
    })
}

/// Wait until a packet has arrived, or a moment has passed.
fn wait(socket: &Socket) {
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let mut socket = [PollFd::new(socket, PollFlags::IN)];
    let _ = poll(&mut socket, Some(&moment));
}

/// Answer in place until told to stop: `answer` gets the frame's room and the packet, and says how long the frame is
/// that goes back, if one does. Returns what was counted in the end.
fn answer(
    socket: &mut Socket,
    stop: &AtomicBool,
    answer: impl Fn(&mut [u8], &Packet) -> Option<usize>,
) -> Statistics {
    let mut frames = Vec::with_capacity(BURST);
    let mut answers = Vec::with_capacity(BURST);
    while !stop.load(Relaxed) {
        if socket.receive(&mut frames, BURST) == 0 {
            wait(socket);
        }
        for mut frame in frames.drain(..) {
            let packet = Packet::parse(socket.packet(&frame), Verify::ChecksumOrOffload);
            match packet.and_then(|packet| answer(socket.room(&mut frame), &packet)) {
                Some(length) => {
                    frame.set_length(length);
                    answers.push(frame);
                }
                None => socket.release(frame),
            }
        }
        socket.transmit(&mut answers);
        socket.wake().expect("the interface is there");
    }
    socket.statistics().expect("it is a socket")
}

/// Answer with every bit of the question changed.
fn inverted(frame: &mut [u8], packet: &Packet) -> Option<usize> {
    let payload = packet.payload();
    for byte in &mut frame[payload.clone()] {
        *byte = !*byte;
    }
    let length = packet.reply(frame, payload.len(), Checksum::Compute)?;
    if frame[payload.clone()].starts_with(&[!b'd'; 9]) {
        // What damages a checksum.
        frame[payload.start + 10] ^= 1;
    }
    Some(length)
}

fn clean() -> Statistics {
    Statistics::default()
}

/// Stops a thread when the test is through or panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// What a socket answers, whatever signals come meanwhile: with a timeout, the kernel does not go on by itself.
fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> T {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome.expect("it arrives in time"),
        }
    }
}

/// A kernel's socket in a namespace, connected.
fn kernel_socket(from: &End, to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = from.namespace.run(|| UdpSocket::bind(any).expect("binds"));
    from.namespace.run(|| socket.connect(to).expect("connects"));
    socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    socket
}

#[test]
fn the_kernels_sockets_are_answered_in_place() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(Pair { left, right }) = pair(1) else {
            return;
        };
        let mut served = serve(&right, &ports(PORT, PORT), mode);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| answer(&mut served.sockets[0], &stop, inverted));
            let stopper = Stop(&stop);
            for address in [right.ipv4, right.ipv6] {
                let client = kernel_socket(&left, SocketAddr::new(address, PORT));
                let longest = if address.is_ipv4() { 1_472 } else { 1_452 };
                let mut buffer = [0; 2_048];
                for length in (0..200).chain([longest - 1, longest]) {
                    let question: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
                    client.send(&question).expect("sends");
                    let answered = patiently(|| client.recv(&mut buffer));
                    let expected: Vec<u8> = question.iter().map(|byte| !byte).collect();
                    assert_eq!(&buffer[..answered], &expected[..], "{mode:?} {address}");
                }
                // The kernel does look at checksums: an answer that was damaged does not arrive, the next one does.
                client.send(&[b'd'; 100]).expect("sends");
                client.send(b"good").expect("sends");
                let answered = patiently(|| client.recv(&mut buffer));
                assert_eq!(&buffer[..answered], [!b'g', !b'o', !b'o', !b'd']);
            }
            drop(stopper);
            let statistics = server.join().expect("the server ends");
            assert_eq!(statistics, clean(), "{mode:?}");
        });
    }
}

#[test]
fn what_is_for_other_ports_addresses_and_protocols_reaches_the_kernel() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(Pair { left, right }) = pair(1) else {
            return;
        };
        // A second address, for which our socket is not.
        right.namespace.ip("addr add 198.18.0.3/24 dev right");
        let filter = Filter {
            ports: PORT..=PORT,
            addresses: vec![right.ipv4, right.ipv6],
        };
        let mut served = serve(&right, &filter, mode);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(&mut served.sockets[0], &stop, inverted));
            let _stopper = Stop(&stop);
            for (address, ours) in [
                (SocketAddr::new(right.ipv4, PORT), true),
                (SocketAddr::new(right.ipv4, PORT - 1), false),
                (SocketAddr::new(right.ipv4, PORT + 1), false),
                (SocketAddr::new(right.ipv6, PORT + 1), false),
                ("198.18.0.3:7000".parse().expect("an address"), false),
            ] {
                // The kernel's own server, on the same port too.
                let server = right
                    .namespace
                    .run(|| UdpSocket::bind(address).expect("binds"));
                server.set_read_timeout(Some(DEADLINE)).expect("a timeout");
                let client = kernel_socket(&left, address);
                client.send(b"question").expect("sends");
                let mut buffer = [0; 64];
                if !ours {
                    let (length, from) = patiently(|| server.recv_from(&mut buffer));
                    assert_eq!(&buffer[..length], b"question");
                    server.send_to(b"kernel's", from).expect("sends");
                }
                let length = patiently(|| client.recv(&mut buffer));
                let expected = if ours {
                    b"question".map(|byte| !byte)
                } else {
                    *b"kernel's"
                };
                assert_eq!(buffer[..length], expected, "{mode:?} {address}");
            }
            // TCP on the same port.
            let address = SocketAddr::new(right.ipv4, PORT);
            let listener = right
                .namespace
                .run(|| TcpListener::bind(address).expect("binds"));
            let mut client = left
                .namespace
                .run(|| TcpStream::connect_timeout(&address, DEADLINE).expect("connects"));
            let (mut server, _) = listener.accept().expect("accepts");
            client.write_all(b"stream").expect("writes");
            drop(client);
            let mut read = String::new();
            server.read_to_string(&mut read).expect("reads");
            assert_eq!(read, "stream");
        });
    }
}

/// Put a packet of `payload_bytes` into a frame, its payload written by `fill`.
fn packet(
    socket: &mut Socket,
    template: &Template,
    payload_bytes: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Option<Frame> {
    let mut frame = socket.take()?;
    let room = socket.room(&mut frame);
    let start = template.header_bytes();
    fill(&mut room[start..start + payload_bytes]);
    let length = template
        .write(room, payload_bytes, Checksum::Compute)
        .expect("it fits");
    frame.set_length(length);
    Some(frame)
}

#[test]
fn a_packet_arrives_on_the_queue_that_its_sender_chose() {
    let Some(Pair { left, right }) = pair(2) else {
        return;
    };
    let (mut from, mut to) = (
        serve(&left, &ports(PORT, PORT), Mode::Native),
        serve(&right, &ports(PORT, PORT), Mode::Native),
    );
    let template = Template::new(&left.endpoint(PORT), &right.endpoint(PORT)).expect("one family");
    let mut frames = Vec::with_capacity(BURST);
    for round in 0..100_u8 {
        let queue = usize::from(round) % 2;
        let sender = &mut from.sockets[queue];
        while frames.len() < BURST {
            frames.push(
                packet(sender, &template, 9, |payload| payload.fill(round)).expect("a frame"),
            );
        }
        assert_eq!(sender.transmit(&mut frames), BURST);
        sender.wake().expect("sends");
        let (start, mut arrived) = (Instant::now(), 0);
        while arrived < BURST && start.elapsed() < DEADLINE {
            wait(&to.sockets[queue]);
            arrived += to.sockets[queue].receive(&mut frames, BURST);
            for frame in frames.drain(..) {
                let bytes = to.sockets[queue].packet(&frame);
                let packet = Packet::parse(bytes, Verify::Checksum).expect("as it was sent");
                assert_eq!(bytes[packet.payload()], [round; 9]);
                to.sockets[queue].release(frame);
            }
        }
        assert_eq!(arrived, BURST);
        let other = &mut to.sockets[1 - queue];
        assert_eq!(other.receive(&mut frames, BURST), 0, "queue {queue}");
    }
}

#[test]
fn malformed_packets_do_no_harm() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(Pair { left, right }) = pair(1) else {
            return;
        };
        let mut served = serve(&right, &ports(PORT, PORT), mode);
        let mut client = serve(&left, &ports(PORT, PORT), mode);
        let client = &mut client.sockets[0];
        let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                answer(&mut served.sockets[0], &stop, |frame, packet| {
                    seen.fetch_add(1, Relaxed);
                    inverted(frame, packet)
                })
            });
            let stopper = Stop(&stop);
            let mut frames = Vec::new();
            let mut good = 0;
            for (source, destination) in [
                (left.endpoint(PORT), right.endpoint(PORT)),
                (left.endpoint6(PORT), right.endpoint6(PORT)),
            ] {
                let template = Template::new(&source, &destination).expect("one family");
                // One bit of each byte behind the Ethernet header changed, each length, and lengths that lie.
                let whole = template.header_bytes() + 20;
                for at in 14..whole {
                    let mut frame =
                        packet(client, &template, 20, |payload| payload.fill(7)).expect("a frame");
                    let room = client.room(&mut frame);
                    room[at] ^= 0x10;
                    frames.push(frame);
                    let mut frame =
                        packet(client, &template, 20, |payload| payload.fill(7)).expect("a frame");
                    frame.set_length(at);
                    frames.push(frame);
                    let last = packet(client, &template, 20, |payload| payload.fill(9));
                    frames.push(last.expect("a frame"));
                    good += 1;
                    client.transmit(&mut frames);
                    client.wake().expect("sends");
                    // One after the other, so that nothing is lost for want of room.
                    let (start, mut answers) = (Instant::now(), Vec::new());
                    while start.elapsed() < DEADLINE {
                        wait(client);
                        client.receive(&mut answers, BURST);
                        let answered = answers.drain(..).any(|frame| {
                            let bytes = client.packet(&frame);
                            let packet = Packet::parse(bytes, Verify::Checksum);
                            let packet = packet.expect("the server sends no nonsense");
                            let answered = bytes[packet.payload()] == [!9; 20];
                            client.release(frame);
                            answered
                        });
                        if answered {
                            break;
                        }
                    }
                    assert!(start.elapsed() < DEADLINE, "{mode:?}: no answer, byte {at}");
                }
            }
            // IPv6 has no checksum over its first bytes, and some may be anything.
            let seen = seen.load(Relaxed);
            assert!((good..good + 8).contains(&seen), "{seen} of {good}");
            drop(stopper);
            assert_eq!(server.join().expect("the server ends"), clean());
            assert_eq!(client.statistics().expect("a socket"), clean());
        });
    }
}

/// What the `at`th byte of message `number` is.
fn byte(number: u64, at: usize) -> u8 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 ^ (at as u8).wrapping_mul(31)
}

/// Write message `number`; all but the first eight bytes are told by it.
fn write_message(payload: &mut [u8], number: u64) {
    payload[..8].copy_from_slice(&number.to_le_bytes());
    for (at, to) in payload.iter_mut().enumerate().skip(8) {
        *to = byte(number, at);
    }
}

/// The number of a message, every byte of which is checked.
fn read_message(payload: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*payload.first_chunk().expect("eight bytes"));
    for (at, found) in payload.iter().enumerate().skip(8) {
        assert_eq!(*found, byte(number, at), "message {number}, byte {at}");
    }
    number
}

fn question_bytes(number: u64) -> usize {
    8 + (number * 13 % 1_400) as usize
}

fn answer_bytes(number: u64) -> usize {
    8 + (number * 29 % 1_400) as usize
}

/// Not more is on its way than the shortest queue between the two holds: 256 packets in veth's native mode (1000 in the
/// kernel's backlog in generic mode), and more in every ring. Therefore nothing may be lost, and nothing is sent twice.
#[test]
fn a_hundred_thousand_packets_go_to_and_fro_and_none_is_lost() {
    const PACKETS: u64 = 100_000;
    for (mode, packets) in [(Mode::Native, PACKETS), (Mode::Generic, PACKETS / 5)] {
        let Some(Pair { left, right }) = pair(1) else {
            return;
        };
        let mut served = serve(&right, &ports(PORT, PORT), mode);
        let mut client = serve(&left, &ports(PORT, PORT), mode);
        let client = &mut client.sockets[0];
        let template =
            Template::new(&left.endpoint6(PORT), &right.endpoint6(PORT)).expect("one family");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                answer(&mut served.sockets[0], &stop, |frame, packet| {
                    let payload = packet.payload();
                    let number = read_message(&frame[payload.clone()]);
                    let length = answer_bytes(number);
                    write_message(&mut frame[payload.start..][..length], !number);
                    packet.reply(frame, length, Checksum::Compute)
                })
            });
            let stopper = Stop(&stop);
            let (mut sent, mut answered) = (0, vec![false; packets as usize]);
            let (start, mut frames) = (Instant::now(), Vec::with_capacity(BURST));
            let mut missing = packets;
            while missing > 0 && start.elapsed() < DEADLINE {
                let on_their_way = sent - (packets - missing);
                if sent < packets && on_their_way + BURST as u64 <= 128 {
                    for _ in 0..BURST.min((packets - sent) as usize) {
                        let bytes = question_bytes(sent);
                        let fill = |payload: &mut [u8]| write_message(payload, sent);
                        frames.push(packet(client, &template, bytes, fill).expect("a frame"));
                        sent += 1;
                    }
                    client.transmit(&mut frames);
                    assert!(frames.is_empty(), "the ring has room");
                }
                client.wake().expect("sends");
                if client.receive(&mut frames, BURST) == 0 {
                    wait(client);
                }
                for frame in frames.drain(..) {
                    let bytes = client.packet(&frame);
                    let packet = Packet::parse(bytes, Verify::Checksum).expect("a good answer");
                    let payload = &bytes[packet.payload()];
                    let number = !read_message(payload);
                    assert_eq!(payload.len(), answer_bytes(number));
                    let first = !std::mem::replace(&mut answered[number as usize], true);
                    assert!(first, "{number} twice");
                    missing -= 1;
                    client.release(frame);
                }
            }
            drop(stopper);
            let statistics = server.join().expect("the server ends");
            assert_eq!(missing, 0, "{mode:?}: lost; {statistics:?}");
            assert_eq!(statistics, clean());
            assert_eq!(client.statistics().expect("a socket"), clean());
            // All frames but those that wait for packets are there again.
            while client.transmitting() > 0 && start.elapsed() < DEADLINE {
                client.wake().expect("sends");
                frames.extend(client.take());
            }
            frames.extend(std::iter::from_fn(|| client.take()));
            assert_eq!(frames.len(), Options::default().transmit_frames as usize);
        });
    }
}

#[test]
fn a_socket_whose_interface_goes_away_says_so() {
    let Some(Pair { left, right }) = pair(1) else {
        return;
    };
    let mut client = serve(&left, &ports(PORT, PORT), Mode::Native);
    let client = &mut client.sockets[0];
    let template = Template::new(&left.endpoint(PORT), &right.endpoint(PORT)).expect("one family");
    right.namespace.ip("link delete right");
    let mut frames = vec![packet(client, &template, 9, |payload| payload.fill(1)).expect("one")];
    assert_eq!(client.transmit(&mut frames), 1);
    let error = client.wake().expect_err("there is nothing to send on");
    assert!(
        matches!(error.raw_os_error(), Some(code) if code == 6 || code == 100),
        "ENXIO or ENETDOWN, not {error}"
    );
    assert_ne!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(client.receive(&mut frames, BURST), 0);
}

#[test]
fn frames_are_neither_lost_nor_lent_to_another_socket() {
    let Some(Pair { left, right }) = pair(1) else {
        return;
    };
    let options = Options {
        receive_frames: 16,
        transmit_frames: 8,
        ..Options::default()
    };
    let bind = |end: &End| {
        end.namespace
            .run(|| Socket::bind(&end.interface, 0, &options).expect("binds"))
    };
    let (mut one, mut other) = (bind(&left), bind(&right));
    let mut frames: Vec<Frame> = std::iter::from_fn(|| one.take()).collect();
    assert_eq!(frames.len(), 8);
    assert!(
        frames
            .iter()
            .all(|it| it.room() == 2_048 && it.length() == 0)
    );
    // They do not overlap.
    for (number, frame) in frames.iter_mut().enumerate() {
        one.room(frame).fill(number as u8);
        frame.set_length(2_048);
    }
    for (number, frame) in frames.iter().enumerate() {
        assert!(one.packet(frame).iter().all(|byte| *byte == number as u8));
    }
    // What is no packet is not sent, and the frame comes back.
    let mut bad: Vec<Frame> = frames.drain(..3).collect();
    bad[0].set_length(0);
    bad[1].set_length(13);
    bad[2].set_length(1_515);
    assert_eq!(one.transmit(&mut bad), 3);
    assert_eq!(one.statistics().expect("a socket").transmit_invalid, 3);
    frames.extend(std::iter::from_fn(|| one.take()));
    assert_eq!(frames.len(), 8);
    // More than fits in line.
    for frame in &mut frames {
        frame.set_length(100);
    }
    assert_eq!(one.transmit(&mut frames), 8);
    let foreign = other.take().expect("a frame");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one.release(foreign)));
    let message = *outcome
        .expect_err("refused")
        .downcast::<&str>()
        .expect("text");
    assert_eq!(message, "a frame of another socket");
}

/// All frames of a socket arrive with packets and are sent before any is asked back: twice what is reported at once.
#[test]
fn more_frames_can_be_sent_than_are_reported_at_once() {
    let Some(Pair { left, right }) = pair(1) else {
        return;
    };
    let small = Options {
        receive_frames: 16,
        transmit_frames: 16,
        ..Options::default()
    };
    let open = |end: &End| {
        end.namespace.run(|| {
            let program = Program::load(&ports(PORT, PORT), 1).expect("loads");
            let attached = program.attach(&end.interface, Attach::BestAvailable);
            let socket = Socket::bind(&end.interface, 0, &small).expect("binds");
            program.register(&socket).expect("registers");
            (attached.expect("attaches"), socket)
        })
    };
    let ((_one, mut one), (_other, mut other)) = (open(&left), open(&right));
    let template = Template::new(&left.endpoint(PORT), &right.endpoint(PORT)).expect("one family");
    let back = Template::new(&right.endpoint(PORT), &left.endpoint(PORT)).expect("one family");
    let start = Instant::now();
    let send = |from: &mut Socket, frames: &mut Vec<Frame>, to: &mut Socket| {
        let count = from.transmit(frames);
        from.wake().expect("sends");
        let mut arrived = Vec::new();
        while arrived.len() < count && start.elapsed() < DEADLINE {
            wait(to);
            to.receive(&mut arrived, BURST);
        }
        assert_eq!((count, arrived.len()), (16, 16));
        arrived
    };
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut questions: Vec<Frame> =
            std::iter::from_fn(|| packet(&mut other, &back, 9, |payload| payload.fill(3)))
                .collect();
        held.extend(send(&mut other, &mut questions, &mut one));
    }
    assert!(one.take().is_none());
    for frame in &mut held {
        let length = template.write(one.room(frame), 9, Checksum::Compute);
        frame.set_length(length.expect("it fits"));
    }
    for _ in 0..2 {
        for frame in send(&mut one, &mut held, &mut other) {
            other.release(frame);
        }
    }
    assert!(held.is_empty());
}
