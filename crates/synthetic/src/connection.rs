//! One client: its commands, the work that each means, and the answers.

use crate::shared::Shared;
use crate::work::Hand;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering::Relaxed;
use wire::memcached::server::{
    Command, KeyBuffer, Limits, Parser, Request, Step, StoreMode, reply,
};

/// What a connection's buffers begin with.
const BUFFER_BYTES: usize = 16 << 10;
/// Answers are sent once there are this many bytes of them; values longer than that are sent from where they are.
const SEND_BYTES: usize = 64 << 10;
/// The longest value that a client may store, with its key.
const ITEM_BYTES_MAX: usize = crate::arguments::VALUE_BYTES_MAX as usize + 250;

/// Serve until the client leaves.
pub(crate) fn serve<S: Read + Write>(
    mut stream: S,
    shared: &Shared,
    hand: &mut Hand,
) -> io::Result<()> {
    let mut parser = Parser::new(Limits {
        item_bytes_max: ITEM_BYTES_MAX,
    });
    let mut room = KeyBuffer::default();
    let mut input = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    let mut out = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let mut consumed = 0;
        let wanted = loop {
            let (used, step) = parser.next(&input[consumed..filled], &mut room);
            match step {
                Step::Incomplete(bytes) => {
                    consumed += used;
                    break bytes;
                }
                Step::Request(request) => {
                    if execute(&request, shared, hand, &mut out, &mut stream)? == After::Close {
                        return stream.write_all(&out);
                    }
                    consumed += used;
                }
            }
            if out.len() >= SEND_BYTES {
                send(&mut stream, &mut out)?;
            }
        };
        send(&mut stream, &mut out)?;
        input.copy_within(consumed..filled, 0);
        filled -= consumed;
        while filled < wanted {
            if filled == input.len() {
                // At most doubled: a client gets the room that it fills, not the one that it announces.
                let room = wanted.next_multiple_of(BUFFER_BYTES);
                input.resize(room.min(2 * input.len()), 0);
            }
            match stream.read(&mut input[filled..]) {
                Ok(0) => return Ok(()),
                Ok(received) => filled += received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn send(stream: &mut impl Write, out: &mut Vec<u8>) -> io::Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    stream.write_all(out)?;
    out.clear();
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    GoOn,
    Close,
}

fn execute(
    request: &Request<'_>,
    shared: &Shared,
    hand: &mut Hand,
    out: &mut Vec<u8>,
    stream: &mut impl Write,
) -> io::Result<After> {
    let quiet_from = out.len();
    match request.command {
        Command::Get {
            key,
            with_cas,
            last,
        }
        | Command::GetAndTouch {
            key,
            with_cas,
            last,
            ..
        } => {
            shared.counters.gets.fetch_add(1, Relaxed);
            match shared.workshop.work(&shared.on_read, hand) {
                Ok(()) => answer_value(key, with_cas, shared, out, stream)?,
                Err(error) => failed(&error, shared, out),
            }
            if last {
                reply::line(out, b"END");
            }
        }
        Command::Store {
            mode: StoreMode::Set,
            ..
        } => {
            shared.counters.sets.fetch_add(1, Relaxed);
            match shared.workshop.work(&shared.on_update, hand) {
                Ok(()) => reply::line(out, b"STORED"),
                Err(error) => failed(&error, shared, out),
            }
        }
        Command::TooLarge { .. } => reply::line(out, b"SERVER_ERROR object too large for cache"),
        Command::Version => reply::line(
            out,
            concat!("VERSION ", env!("CARGO_PKG_VERSION"), "-synthetic").as_bytes(),
        ),
        Command::Stats { section } => {
            if section.is_empty() {
                shared.statistics(out);
            }
            reply::line(out, b"END");
        }
        Command::Flush { .. } => reply::line(out, b"OK"),
        Command::Shutdown { .. } => reply::line(out, b"ERROR: shutdown not enabled"),
        // As memcached answers where nothing is encrypted.
        Command::RefreshCertificates => reply::line(out, b"ERROR"),
        Command::Quit => return Ok(After::Close),
        Command::Answer(line) => reply::line(out, line.as_bytes()),
        Command::Disconnect(error) => {
            if !error.is_empty() {
                reply::line(out, error.as_bytes());
            }
            return Ok(After::Close);
        }
        _ => reply::line(out, b"SERVER_ERROR this server does get and set only"),
    }
    if request.quiet {
        out.truncate(quiet_from);
    }
    Ok(After::GoOn)
}

fn answer_value(
    key: &[u8],
    with_cas: bool,
    shared: &Shared,
    out: &mut Vec<u8>,
    stream: &mut impl Write,
) -> io::Result<()> {
    let value = &shared.value;
    if value.len() < SEND_BYTES {
        reply::value(out, key, 0, value, with_cas.then_some(1));
        return Ok(());
    }
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.extend_from_slice(b" 0 ");
    reply::decimal(out, value.len() as u64);
    if with_cas {
        out.extend_from_slice(b" 1");
    }
    out.extend_from_slice(b"\r\n");
    send(stream, out)?;
    stream.write_all(value)?;
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The request's work could not be done.
fn failed(error: &io::Error, shared: &Shared, out: &mut Vec<u8>) {
    shared.counters.failures.fetch_add(1, Relaxed);
    // Writing to a vector cannot fail.
    let _ = write!(out, "SERVER_ERROR {error}\r\n");
}
