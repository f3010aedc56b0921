//! What is on its way between workers.

use super::awaited::Awaited;
use super::batch::{Address, Batch, ForwardLimits};

/// Of what connections wait with, so much is kept to be used again.
const SPARES_MAX: usize = 64;

/// What a worker has others carry out: one batch to each is on its way, and one is being filled meanwhile.
#[derive(Default)]
pub(crate) struct Lanes {
    pub limits: ForwardLimits,
    lanes: Vec<Lane>,
    /// For connections that will wait.
    #[expect(clippy::vec_box, reason = "sessions hold one without its bytes")]
    spares: Vec<Box<Awaited>>,
    /// Whether a batch has something in it.
    is_filled: bool,
}

/// To one worker, in one protocol.
#[derive(Default)]
struct Lane {
    filling: Box<Batch>,
    /// The one that was on its way last, where it is back.
    spare: Option<Box<Batch>>,
    is_away: bool,
}

impl Lanes {
    fn batch(&mut self, home: usize, owner: usize, is_binary: bool) -> &mut Batch {
        let index = 2 * owner + usize::from(is_binary);
        if index >= self.lanes.len() {
            self.lanes.resize_with(index + 1, Lane::default);
        }
        let batch = &mut self.lanes[index].filling;
        (batch.home, batch.owner, batch.is_binary) = (home, owner, is_binary);
        batch
    }

    /// Put a command into the next batch from `home` to `owner`, which `write` writes. Says how many bytes it has; `None`
    /// where there is no room.
    pub fn push(
        &mut self,
        (home, owner, is_binary): (usize, usize, bool),
        address: Address,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<usize> {
        let request_bytes_max = self.limits.request_bytes;
        let batch = self.batch(home, owner, is_binary);
        if batch.requests.len() >= request_bytes_max {
            return None;
        }
        let bytes = batch.push(address, 1, write);
        self.is_filled = true;
        Some(bytes)
    }

    /// Commands that came back undone go again. There is room: they were in a batch before.
    pub fn push_again(
        &mut self,
        (home, owner, is_binary): (usize, usize, bool),
        address: Address,
        (commands, bytes): (usize, &[u8]),
    ) {
        let batch = self.batch(home, owner, is_binary);
        batch.push(address, commands, |requests| {
            requests.extend_from_slice(bytes);
        });
        self.is_filled = true;
    }

    /// Whether there are commands that may leave.
    pub fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// The batches that are to leave at the end of a turn, and for which worker each is.
    pub fn leave(&mut self, mut send: impl FnMut(usize, Box<Batch>)) {
        self.is_filled = false;
        for lane in &mut self.lanes {
            // One that is away takes the next along when it is back.
            if lane.filling.is_empty() || lane.is_away {
                continue;
            }
            lane.is_away = true;
            let next = lane.spare.take().unwrap_or_default();
            let batch = std::mem::replace(&mut lane.filling, next);
            send(batch.owner, batch);
        }
    }

    /// A batch is back, and what came back was handed on.
    pub fn take_back(&mut self, mut batch: Box<Batch>) {
        let lane = &mut self.lanes[2 * batch.owner + usize::from(batch.is_binary)];
        batch.clear();
        lane.spare = Some(batch);
        lane.is_away = false;
        self.is_filled |= !lane.filling.is_empty();
    }

    /// What a connection is to wait with.
    pub fn awaited(&mut self) -> Box<Awaited> {
        self.spares.pop().unwrap_or_default()
    }

    /// It waits no more.
    pub fn recycle(&mut self, awaited: Box<Awaited>) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(awaited);
        }
    }
}
