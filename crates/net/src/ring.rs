mod buffers;
mod completion;
mod unavailable;

use crate::Stream;
use buffers::{Buffers, GROUP};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

pub use buffers::Filled;
pub use completion::{Completion, SendMode};
pub use unavailable::Unavailable;

/// Requests that are handed to the kernel at a time; more wait in a queue of ours.
const SUBMISSIONS: u32 = 1024;

/// Completions that fit into the queue. The kernel keeps more, at some cost.
const COMPLETIONS: u32 = 8192;

/// How often, and how long each time, what is left of a ring is waited for when it is dropped.
const CANCEL_ATTEMPTS: usize = 50;
const CANCEL_PATIENCE: Duration = Duration::from_millis(100);

/// What a request is; with its stream's token it is the `user_data` of its completions.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const CANCEL: u64 = 2;
const WAKE: u64 = 3;
const KIND_SHIFT: u32 = 56;
const TOKEN: u64 = (1 << KIND_SHIFT) - 1;

/// Streams over an io_uring instance (`io_uring(7)`): it receives into buffers that they share, for as long as it is
/// wanted (multishot), and sends what it is given; one system call, [`wait`](Self::wait), hands over all that was asked
/// for and collects what was done. Takes Linux 6.1.
///
/// A stream and the memory of its requests belong to the ring until the kernel is done with them. So nothing that safe
/// code does frees memory that the kernel may still write to or read from.
///
/// ```no_run
/// # use net::{Completion, Ring, SendMode, Stream};
/// # fn echo(stream: Stream) -> Result<(), Box<dyn std::error::Error>> {
/// let mut ring = Ring::new(64, 4096)?;
/// ring.enable()?;
/// let token = ring.add(stream);
/// ring.receive(token);
/// loop {
///     ring.wait(None)?;
///     while let Some(completion) = ring.completion() {
///         match completion {
///             Completion::Received { token, received } => {
///                 let bytes = ring.bytes(&received).to_vec();
///                 ring.give_back(received);
///                 _ = ring.send(token, bytes, 0, SendMode::Patient);
///             }
///             Completion::Ended { token, .. } => ring.remove(token),
///             Completion::Removed { .. } => return Ok(()),
///             Completion::Sent { .. } | Completion::Woken => {}
///         }
///     }
/// }
/// # }
/// ```
pub struct Ring {
    uring: IoUring,
    /// What the kernel may write to and read from: freed only once it no longer does.
    memory: ManuallyDrop<Memory>,
    /// Slots to be taken again.
    free: Vec<u32>,
    /// Slots of streams to be removed that the kernel is done with.
    emptied: Vec<u32>,
    /// Requests that did not fit among the submissions.
    backlog: VecDeque<squeue::Entry>,
    /// Requests whose last completion was not seen.
    requests: usize,
    /// Completions taken from the kernel and not looked at yet.
    arrived: VecDeque<cqueue::Entry>,
    waker: Option<OwnedFd>,
    is_enabled: bool,
    wait_flags: EnterFlags,
}

struct Memory {
    buffers: Buffers,
    slots: Vec<Slot>,
}

/// A place for a stream; its index is the stream's token. It is not free before the kernel is done with all requests of
/// its stream, so a completion is never another one's.
#[derive(Default)]
struct Slot {
    stream: Option<Stream>,
    /// The kernel's until the completion of its sending.
    sending: Option<Vec<u8>>,
    /// Requests whose last completion was not seen.
    requests: u32,
    receiving: Receiving,
    /// Whether more is to be received.
    wants: bool,
    is_leaving: bool,
}

/// Of a slot, the request to receive.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Receiving {
    /// There is none.
    #[default]
    Off,
    On,
    /// It was cancelled and has not ended yet.
    Stopping,
}

impl Ring {
    /// A ring with `buffers` (a power of two up to 32,768) of `buffer_bytes` each to receive into. To be
    /// [enabled](Self::enable) by the thread that uses it.
    pub fn new(buffers: u16, buffer_bytes: u32) -> Result<Self, Unavailable> {
        let uring = IoUring::builder()
            // One thread, which runs what is to be done when it asks for completions, and is not interrupted by it.
            .setup_single_issuer()
            .setup_defer_taskrun()
            // A request that is refused does not hold up those behind it.
            .setup_submit_all()
            // The thread that enables it is the one.
            .setup_r_disabled()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)
            .map_err(Unavailable::explain)?;
        let made = Buffers::new(buffers, buffer_bytes, &uring.submitter());
        let buffers = made.map_err(Unavailable::explain)?;
        let mut wait_flags = EnterFlags::GETEVENTS;
        if uring.params().is_feature_no_iowait() {
            // Waiting for clients is not waiting for a disk.
            wait_flags |= EnterFlags::NO_IOWAIT;
        }
        Ok(Self {
            uring,
            memory: ManuallyDrop::new(Memory {
                buffers,
                slots: Vec::new(),
            }),
            free: Vec::new(),
            emptied: Vec::new(),
            backlog: VecDeque::new(),
            requests: 0,
            arrived: VecDeque::new(),
            waker: None,
            is_enabled: false,
            wait_flags,
        })
    }

    /// Whether this process may have a ring and use it.
    pub fn probe() -> Result<(), Unavailable> {
        let mut ring = Self::new(1, 4096)?;
        ring.enable()
            .and_then(|()| ring.wait(Some(Duration::ZERO)))
            .map_err(Unavailable::explain)
    }

    /// Let this thread use it, from now on and alone.
    pub fn enable(&mut self) -> io::Result<()> {
        self.uring.submitter().register_enable_rings()?;
        self.is_enabled = true;
        Ok(())
    }

    /// Report `waker`'s wakes.
    pub(crate) fn watch(&mut self, waker: impl AsFd) -> io::Result<()> {
        self.waker = Some(waker.as_fd().try_clone_to_owned()?);
        self.arm_waker();
        Ok(())
    }

    /// Take on a stream; its token is a small number, one that [`Completion::Removed`] gave back before if there is one.
    pub fn add(&mut self, stream: Stream) -> u64 {
        let slots = &mut self.memory.slots;
        let index = self.free.pop().unwrap_or_else(|| {
            slots.push(Slot::default());
            slots.len() as u32 - 1
        });
        slots[index as usize].stream = Some(stream);
        index.into()
    }

    /// Receive from a stream, until it ends or is to [pause](Self::pause).
    pub fn receive(&mut self, token: u64) {
        if let Some(slot) = self.slot(token) {
            slot.wants = true;
            self.arm(token);
        }
    }

    /// Receive no more from a stream for now. What is under way still comes.
    pub fn pause(&mut self, token: u64) {
        let Some(slot) = self.slot(token) else { return };
        slot.wants = false;
        if slot.receiving == Receiving::On {
            slot.receiving = Receiving::Stopping;
            self.cancel(token, RECEIVE);
        }
    }

    /// Send what follows the first `from` of `bytes`. A stream sends one lot at a time. Gives the bytes back where
    /// there is no such stream, or it is sending.
    pub fn send(
        &mut self,
        token: u64,
        bytes: Vec<u8>,
        from: usize,
        mode: SendMode,
    ) -> Result<(), Vec<u8>> {
        let Some(slot) = self.slot(token) else {
            return Err(bytes);
        };
        let (Some(stream), None) = (&slot.stream, &slot.sending) else {
            return Err(bytes);
        };
        let flags = match mode {
            SendMode::Immediate => libc::MSG_DONTWAIT,
            SendMode::Patient => 0,
        };
        let rest = bytes.get(from..).unwrap_or_default();
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(stream.as_fd().as_raw_fd()), rest.as_ptr(), length)
            .flags(flags | libc::MSG_NOSIGNAL)
            .build();
        // The vector moves, what it holds stays where it is.
        slot.sending = Some(bytes);
        self.push(entry, SEND, Some(token));
        Ok(())
    }

    /// Let a stream go, whatever it is doing; [`Completion::Removed`] hands it over. Until then it has no completions.
    pub fn remove(&mut self, token: u64) {
        let Some(slot) = self.slot(token) else { return };
        slot.is_leaving = true;
        slot.wants = false;
        let is_sending = slot.sending.is_some();
        if std::mem::replace(&mut slot.receiving, Receiving::Stopping) == Receiving::On {
            self.cancel(token, RECEIVE);
        }
        if is_sending {
            self.cancel(token, SEND);
        }
        self.settle(token);
    }

    /// What was received.
    #[must_use]
    pub fn bytes(&self, received: &Filled) -> &[u8] {
        self.memory.buffers.bytes(received)
    }

    /// Let the kernel receive into the buffer again.
    pub fn give_back(&mut self, received: Filled) {
        self.memory.buffers.give_back(received.buffer);
    }

    /// A stream that is sending nothing, and may be written to.
    #[must_use]
    pub fn idle_stream(&self, token: u64) -> Option<&Stream> {
        let slot = self.memory.slots.get(usize::try_from(token).ok()?)?;
        let is_idle = slot.sending.is_none() && !slot.is_leaving;
        slot.stream.as_ref().filter(|_| is_idle)
    }

    /// Hand all that was asked for to the kernel. What can be done at once is; nothing is waited for.
    pub fn submit(&mut self) -> io::Result<()> {
        if self.backlog.is_empty() && self.uring.submission().is_empty() {
            return Ok(());
        }
        self.hand_over(false, None)
    }

    /// The same, and wait until there is something to look at, at most `timeout` (for ever when `None`). Ends early when
    /// a signal comes.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.hand_over(true, timeout)
    }

    /// The next thing that was done.
    pub fn completion(&mut self) -> Option<Completion> {
        loop {
            if let Some(index) = self.emptied.pop() {
                let slot = std::mem::take(&mut self.memory.slots[index as usize]);
                self.free.push(index);
                if let Some(stream) = slot.stream {
                    let token = index.into();
                    return Some(Completion::Removed { token, stream });
                }
            }
            let entry = self.next_entry()?;
            if let Some(completion) = self.interpret(&entry) {
                return Some(completion);
            }
        }
    }

    fn next_entry(&mut self) -> Option<cqueue::Entry> {
        let arrived = self.arrived.pop_front();
        arrived.or_else(|| self.uring.completion().next())
    }

    fn hand_over(&mut self, waits: bool, timeout: Option<Duration>) -> io::Result<()> {
        loop {
            self.fill();
            let is_all = self.backlog.is_empty();
            let is_enough = !self.emptied.is_empty() || !self.arrived.is_empty();
            let (enough, flags) = match waits && is_all {
                true => (u32::from(!is_enough), self.wait_flags),
                false => (0, EnterFlags::empty()),
            };
            let is_delayed = !self.enter(enough, flags, timeout)?;
            if is_all && self.uring.submission().is_empty() {
                break;
            }
            if is_delayed {
                // No memory for requests, or too many completions: take those, and let other threads run first.
                self.collect()?;
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Take what was done from the kernel, all of it.
    fn collect(&mut self) -> io::Result<()> {
        loop {
            self.arrived.extend(self.uring.completion());
            if !self.uring.submission().cq_overflow() {
                return Ok(());
            }
            // Have the kernel bring out what did not fit.
            self.enter(0, self.wait_flags, None)?;
        }
    }

    /// The slot of a stream that is not leaving.
    fn slot(&mut self, token: u64) -> Option<&mut Slot> {
        let slot = self.memory.slots.get_mut(usize::try_from(token).ok()?)?;
        (slot.stream.is_some() && !slot.is_leaving).then_some(slot)
    }

    fn interpret(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let token = entry.user_data() & TOKEN;
        let kind = entry.user_data() >> KIND_SHIFT;
        let is_last = !cqueue::more(entry.flags());
        if is_last {
            self.requests -= 1;
        }
        if kind == WAKE {
            if is_last {
                self.arm_waker();
            }
            return Some(Completion::Woken);
        }
        let slot = self.memory.slots.get_mut(token as usize)?;
        if is_last {
            slot.requests -= 1;
        }
        let completion = match kind {
            RECEIVE => self.interpret_received(entry, token, is_last),
            SEND => slot.sending.take().map(|bytes| {
                let sent = match entry.result() {
                    sent @ 0.. => Ok(sent as usize),
                    error if error == -libc::EAGAIN => Ok(0),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
                Completion::Sent { token, bytes, sent }
            }),
            _ => None,
        };
        if !self.memory.slots[token as usize].is_leaving {
            return completion;
        }
        if let Some(Completion::Received { received, .. }) = completion {
            self.give_back(received);
        }
        self.settle(token);
        None
    }

    fn interpret_received(
        &mut self,
        entry: &cqueue::Entry,
        token: u64,
        is_last: bool,
    ) -> Option<Completion> {
        let Memory { buffers, slots } = &mut *self.memory;
        let buffer = cqueue::buffer_select(entry.flags());
        if let Some(buffer) = buffer {
            buffers.lend(buffer);
        }
        if is_last {
            slots[token as usize].receiving = Receiving::Off;
        }
        let result = entry.result();
        let completion = match (result, buffer) {
            (1.., Some(buffer)) => {
                let length = result.cast_unsigned();
                let received = Filled { buffer, length };
                Some(Completion::Received { token, received })
            }
            (_, Some(buffer)) => {
                buffers.give_back(buffer);
                None
            }
            _ => None,
        };
        match -result {
            // It was to pause, or ran out of buffers: there will be some, or it would not be looked at now.
            libc::ECANCELED | libc::ENOBUFS | libc::EAGAIN | libc::EINTR | ..0 => {
                if is_last {
                    self.arm(token);
                }
                completion
            }
            error => {
                slots[token as usize].wants = false;
                let error = (error != 0).then(|| io::Error::from_raw_os_error(error));
                Some(Completion::Ended { token, error })
            }
        }
    }

    /// If the kernel is done with a stream that is leaving, it has left.
    fn settle(&mut self, token: u64) {
        let slot = &self.memory.slots[token as usize];
        if slot.is_leaving && slot.requests == 0 {
            self.emptied.push(token as u32);
        }
    }

    /// Request to receive, if that is wanted and not requested.
    fn arm(&mut self, token: u64) {
        let slot = &mut self.memory.slots[token as usize];
        if let (true, Receiving::Off, Some(stream)) = (slot.wants, slot.receiving, &slot.stream) {
            slot.receiving = Receiving::On;
            let entry = opcode::RecvMulti::new(Fd(stream.as_fd().as_raw_fd()), GROUP).build();
            self.push(entry, RECEIVE, Some(token));
        }
    }

    fn arm_waker(&mut self) {
        if let Some(waker) = &self.waker {
            let entry = opcode::PollAdd::new(Fd(waker.as_raw_fd()), libc::POLLIN as u32)
                .multi(true)
                .build();
            self.push(entry, WAKE, None);
        }
    }

    fn cancel(&mut self, token: u64, kind: u64) {
        let entry = opcode::AsyncCancel::new(token | kind << KIND_SHIFT).build();
        self.push(entry, CANCEL, Some(token));
    }

    /// Have a request submitted next time. What it points to must be in `memory`, and stay there until its last
    /// completion.
    fn push(&mut self, entry: squeue::Entry, kind: u64, token: Option<u64>) {
        self.requests += 1;
        if let Some(token) = token {
            self.memory.slots[token as usize].requests += 1;
        }
        let entry = entry.user_data(token.unwrap_or_default() | kind << KIND_SHIFT);
        // In order: a cancellation must not overtake what it cancels.
        // SAFETY: callers promise that what it points to outlives it.
        if !self.backlog.is_empty() || unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }

    /// Move requests from the backlog to the submissions, as far as they fit.
    fn fill(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        let mut submission = self.uring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as in `push`.
            if unsafe { submission.push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// False if nothing was handed over, or waited for to the end.
    fn enter(
        &mut self,
        enough: u32,
        flags: EnterFlags,
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        let count = self.uring.submission().len() as u32;
        let submitter = self.uring.submitter();
        let timeout = timeout.map(Timespec::from);
        let entered = match &timeout {
            // SAFETY: the flags say that there is no argument.
            None => unsafe { submitter.enter::<()>(count, enough, flags.bits(), None) },
            Some(timeout) => {
                let arguments = SubmitArgs::new().timespec(timeout);
                let flags = flags | EnterFlags::EXT_ARG;
                // SAFETY: the flags say what the argument is, and it and the time it points to outlive the call.
                unsafe { submitter.enter(count, enough, flags.bits(), Some(&arguments)) }
            }
        };
        match entered {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Cancel every request; false if some did not end.
    fn cancel_all(&mut self) -> bool {
        if !self.is_enabled {
            // The kernel has seen none.
            return true;
        }
        for _ in 0..CANCEL_ATTEMPTS {
            if self.requests == 0 {
                return true;
            }
            let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
            self.push(entry, CANCEL, None);
            if self.wait(Some(CANCEL_PATIENCE)).is_err() {
                return false;
            }
            while let Some(entry) = self.next_entry() {
                self.requests -= usize::from(!cqueue::more(entry.flags()));
            }
        }
        self.requests == 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.cancel_all() {
            // SAFETY: dropped nowhere else and not used again. No request is left that could use it: the kernel said so,
            // or has never seen one.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
        // Otherwise, such as on another thread than the one it was enabled for, the memory is not freed at all.
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ring")
            .field("streams", &(self.memory.slots.len() - self.free.len()))
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}
