//! What an encrypted connection does otherwise: records come in and go out, through a TLS session.

use super::connection::{Connection, MOVED_BYTES_MAX, Output, SCRATCH_BYTES, received, write_all};
use super::tls::{ENCRYPTED_BYTES_MAX, RECORD_BYTES_MAX, Stage};
use crate::engine::{Count, Counters, Storage};
use crate::options::Options;
use crate::session::batch::Address;
use crate::session::{Outlet, Status, Tools};

/// Bytes of the shared buffer for what comes encrypted, and for what is encrypted to go; the rest is for what that
/// says. As long as a whole record, and as the most of the handshake that a client may have us hold.
const RECORDS_BYTES: usize = 24 << 10;

const _: () = assert!(RECORDS_BYTES >= RECORD_BYTES_MAX);
// What is held, and what so many records can bring.
const _: () = assert!(SCRATCH_BYTES - RECORDS_BYTES >= MOVED_BYTES_MAX + RECORDS_BYTES);

impl Connection {
    #[inline(never)]
    pub(super) fn receive_encrypted<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let scratch = std::mem::take(&mut tools.scratch);
        let (sealed, plain) = scratch.split_at_mut(RECORDS_BYTES);
        let status = self.receive_into(sealed, plain, tools);
        tools.scratch = scratch;
        self.settle(status)
    }

    fn receive_into<S: Storage>(
        &mut self,
        sealed: &mut [u8],
        plain: &mut [u8],
        tools: &mut Tools<'_, S>,
    ) -> Status {
        let Output {
            stream,
            encryption: Some(session),
            pending,
            ..
        } = &mut self.output
        else {
            return Status::Ended;
        };
        let counters = tools.context.counters;
        let before = session.stage();
        let kept = session.incoming().len();
        sealed[..kept].copy_from_slice(session.incoming());
        // What is held is shorter than that, unless it is longer than a record and a client's part of the handshake may be.
        let arrived = match received(stream.read(&mut sealed[kept..])) {
            Ok(arrived) => kept + arrived,
            Err(status) => return status,
        };
        // All of what this client said and is not consumed in one place: the shared buffer, if it is little.
        let is_moved = self.input.len() <= MOVED_BYTES_MAX;
        let mut said = 0;
        if is_moved {
            said = self.input.len();
            plain[..said].copy_from_slice(&self.input);
            self.input.clear();
        }
        let input = &mut self.input;
        let (mut reply, mut is_spent) = (Vec::new(), false);
        let mut decrypted = 0;
        let each = |bytes: &[u8]| {
            decrypted += bytes.len();
            if is_moved {
                plain[said..said + bytes.len()].copy_from_slice(bytes);
                said += bytes.len();
            } else {
                is_spent |= input.extend(bytes, counters.allowance()).is_err();
            }
        };
        let opened = session.open(&mut sealed[..arrived], each, &mut reply);
        is_spent |= self
            .charge
            .set(session.incoming().len(), counters.allowance())
            .is_err();
        is_spent |= pending.extend(&reply, counters.allowance()).is_err();
        let opened = match opened {
            Ok(()) if session.incoming().len() == sealed.len() => Err(rustls::Error::General(
                format!("more than {RECORDS_BYTES} bytes make no message"),
            )),
            opened => opened,
        };
        counters.add(Count::BytesRead, decrypted as u64);
        if before == Stage::Handshake && session.stage() == Stage::Open && session.is_new() {
            counters.add(Count::TlsNewSessions, 1);
        }
        if let Err(error) = opened {
            explain(&tools.context.state.options, before, &error);
            counters.add(
                if before == Stage::Handshake {
                    Count::TlsHandshakeErrors
                } else {
                    Count::TlsProtocolErrors
                },
                1,
            );
            // Where that cannot be sent, the closed connection says it.
            _ = self.output.send_pending(counters);
            return Status::Ended;
        }
        let status = self.output.send_pending(counters);
        if is_spent {
            return self.refuse(status, tools);
        }
        if status != Status::Reading {
            let held = if is_moved { &plain[..said] } else { &[] };
            return self.hold(held, status, tools);
        }
        if !is_moved {
            if self.input.len() < self.client.session.wanted() {
                return Status::Reading;
            }
            let mut input = std::mem::take(&mut self.input);
            let (consumed, status) = self.run_sealing(&input, sealed, tools);
            input.consume(consumed, counters.allowance());
            self.input = input;
            return status;
        }
        let (consumed, status) = if said == 0 {
            (0, Status::Reading)
        } else {
            self.run_sealing(&plain[..said], sealed, tools)
        };
        self.hold(&plain[consumed..said], status, tools)
    }

    /// As [`refuse`](Self::refuse), of one that takes replies.
    #[cold]
    pub(super) fn refuse_encrypted<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let mut buffer = [0; RECORD_BYTES_MAX];
        let mut outlet = Sealing {
            output: &mut self.output,
            buffer: &mut buffer,
        };
        self.client.session.refuse(&mut outlet, tools)
    }

    /// As [`go_on`](Self::go_on), encrypted.
    #[inline(never)]
    pub(super) fn go_on_encrypted<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let scratch = std::mem::take(&mut tools.scratch);
        let mut outlet = Sealing {
            output: &mut self.output,
            buffer: &mut scratch[..RECORDS_BYTES],
        };
        let status = self.client.session.go_on(&mut outlet, tools);
        tools.scratch = scratch;
        status
    }

    /// Carry out the commands in `bytes` and send the replies, encrypted.
    #[inline(never)]
    pub(super) fn run_encrypted<S: Storage>(
        &mut self,
        bytes: &[u8],
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let scratch = std::mem::take(&mut tools.scratch);
        let done = self.run_sealing(bytes, &mut scratch[..RECORDS_BYTES], tools);
        tools.scratch = scratch;
        done
    }

    fn run_sealing<S: Storage>(
        &mut self,
        bytes: &[u8],
        buffer: &mut [u8],
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let mut outlet = Sealing {
            output: &mut self.output,
            buffer,
        };
        self.client.session.run(bytes, &mut outlet, tools)
    }

    /// What is waited for, after all that could be done was.
    #[inline]
    pub(super) fn settle(&mut self, status: Status) -> Status {
        match self.output.encryption {
            None => status,
            Some(_) => self.settle_encrypted(status),
        }
    }

    fn settle_encrypted(&mut self, status: Status) -> Status {
        let Some(encryption) = &mut self.output.encryption else {
            return status;
        };
        let is_over = match status {
            Status::Reading => encryption.stage() == Stage::Closed,
            // It has more to say, or to do.
            Status::Writing | Status::Waiting | Status::OtherWorker(_) => false,
            Status::Ended => self.client.session.is_over(),
        };
        if !is_over {
            return status;
        }
        // The client is to know that nothing was cut off.
        let mut record = [0; 64];
        if self.output.pending.is_empty()
            && let Ok(bytes) = encryption.close(&mut record)
        {
            _ = write_all(&self.output.stream, &record[..bytes]);
        }
        Status::Ended
    }
}

/// Where replies go to be encrypted, with a buffer for that.
struct Sealing<'o> {
    output: &'o mut Output,
    buffer: &'o mut [u8],
}

impl Outlet for Sealing<'_> {
    fn address(&self) -> Option<Address> {
        self.output.address
    }

    /// What the socket does not take is kept for later, encrypted.
    fn send(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status {
        let Output {
            stream,
            encryption: Some(encryption),
            pending,
            ..
        } = &mut *self.output
        else {
            return Status::Ended;
        };
        let mut status = Status::Reading;
        let mut is_spent = false;
        for piece in replies.chunks(ENCRYPTED_BYTES_MAX) {
            let Ok(bytes) = encryption.seal(piece, self.buffer) else {
                status = Status::Ended;
                break;
            };
            let mut sent = 0;
            if status == Status::Reading {
                (sent, status) = write_all(stream, &self.buffer[..bytes]);
            }
            if status == Status::Ended {
                break;
            }
            if pending
                .extend(&self.buffer[sent..bytes], counters.allowance())
                .is_err()
            {
                is_spent = true;
                break;
            }
        }
        if is_spent {
            counters.add(Count::RepliesOutOfMemory, 1);
            status = Status::Ended;
        }
        counters.add(Count::BytesWritten, replies.len() as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
        }
        replies.clear();
        status
    }
}

/// Say why a client was not served, where more is to be said.
#[cold]
fn explain(options: &Options, stage: Stage, error: &rustls::Error) {
    if options.verbosity > 0 {
        let what = if stage == Stage::Handshake {
            "handshake"
        } else {
            "session"
        };
        eprintln!("rackscope-cached: a client's TLS {what} failed: {error}");
    }
}
