//! Bursts of packets to and fro over a veth pair between two network namespaces, one thread and one AF_XDP socket at
//! each end, both copying: `cargo run --release -p xdp --example ping_pong -- [SECONDS]` (of each measurement; as root).
//!
//! Prints how many packets a second were answered, of all that were sent, in each mode and with small and large
//! payloads. One thread sends and checks, the other answers in place; neither sleeps, but each lets others have its
//! core when it finds nothing to do.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{End, pair, ports};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use xdp::packet::{Checksum, Packet, Template, Verify};
use xdp::{Attach, Attachment, BURST, Mode, Options, Program, Socket};

const PORT: u16 = 7_000;

/// How many packets are on their way at most: fewer than veth's own queue takes, which is 256.
const ON_THEIR_WAY: u64 = 2 * BURST as u64;

fn open(end: &End, mode: Mode) -> Result<(Attachment, Socket), xdp::Error> {
    end.namespace.run(|| {
        let program = Program::load(&ports(PORT, PORT), 1)?;
        let attachment = program.attach(&end.interface, Attach::Only(mode))?;
        let socket = Socket::bind(&end.interface, 0, &Options::default())?;
        program.register(&socket)?;
        Ok((attachment, socket))
    })
}

/// Answer every packet with its own payload.
fn serve(socket: &mut Socket, stop: &AtomicBool) -> std::io::Result<()> {
    let (mut frames, mut answers) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
    while !stop.load(Relaxed) {
        if socket.receive(&mut frames, BURST) == 0 {
            std::thread::yield_now();
        }
        for mut frame in frames.drain(..) {
            let length =
                Packet::parse(socket.packet(&frame), Verify::Checksum).and_then(|packet| {
                    let payload_bytes = packet.payload().len();
                    packet.reply(socket.room(&mut frame), payload_bytes, Checksum::Compute)
                });
            match length {
                Some(length) => {
                    frame.set_length(length);
                    answers.push(frame);
                }
                None => socket.release(frame),
            }
        }
        socket.transmit(&mut answers);
        socket.wake()?;
    }
    Ok(())
}

struct Measured {
    sent: u64,
    answered: u64,
    seconds: f64,
}

fn drive(
    socket: &mut Socket,
    template: &Template,
    payload_bytes: usize,
    duration: Duration,
) -> std::io::Result<Measured> {
    let mut frames = Vec::with_capacity(BURST);
    let (mut sent, mut answered, start) = (0, 0, Instant::now());
    // Until the last are back, or are given up.
    while start.elapsed() < duration || (sent > answered && start.elapsed() < 2 * duration) {
        if sent - answered <= ON_THEIR_WAY - BURST as u64 && start.elapsed() < duration {
            for _ in 0..BURST {
                let Some(mut frame) = socket.take() else {
                    break;
                };
                let room = socket.room(&mut frame);
                match template.write(room, payload_bytes, Checksum::Compute) {
                    Some(length) => frame.set_length(length),
                    None => return Err(std::io::ErrorKind::InvalidInput.into()),
                }
                frames.push(frame);
                sent += 1;
            }
            socket.transmit(&mut frames);
        }
        socket.wake()?;
        if socket.receive(&mut frames, BURST) == 0 {
            std::thread::yield_now();
        }
        for frame in frames.drain(..) {
            let packet = Packet::parse(socket.packet(&frame), Verify::Checksum);
            answered += u64::from(packet.is_some());
            socket.release(frame);
        }
    }
    Ok(Measured {
        sent,
        answered,
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = match std::env::args().nth(1) {
        Some(seconds) => seconds.parse()?,
        None => 1.0,
    };
    let duration = Duration::try_from_secs_f64(seconds.clamp(0.1, 60.0))?;
    for mode in [Mode::Native, Mode::Generic] {
        for payload_bytes in [64, 1_400] {
            let Some(pair) = pair(1) else { return Ok(()) };
            let (_attached, mut client) = open(&pair.left, mode)?;
            let (_also_attached, mut server) = open(&pair.right, mode)?;
            let (from, to) = (pair.left.endpoint(PORT), pair.right.endpoint(PORT));
            let template = Template::new(&from, &to).ok_or("two families")?;
            let stop = AtomicBool::new(false);
            let measured = std::thread::scope(|scope| {
                let serving = scope.spawn(|| serve(&mut server, &stop));
                let measured = drive(&mut client, &template, payload_bytes, duration);
                stop.store(true, Relaxed);
                serving.join().map_err(|_| "the server panicked")??;
                Ok::<_, Box<dyn Error>>(measured?)
            })?;
            println!(
                "{mode:?}, {payload_bytes} bytes of payload: {:.0} packets/s answered ({} of {})",
                measured.answered as f64 / measured.seconds,
                measured.answered,
                measured.sent,
            );
        }
    }
    Ok(())
}
