//! What one connection waits for: replies of other workers, which are sent in their places among its own.

use super::batch::{ForwardLimits, Returned};
use crate::engine::Counters;
use crate::engine::client_memory::{Charge, Spent};

/// Of each buffer, where it is kept to be used again.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Workers whose buffers are kept.
const KEPT_SHARES_MAX: usize = 8;

/// What is behind the item in the reply to a read of one key, and not between the items of several.
const END: &[u8] = b"END\r\n";

/// Replies in the order of their commands, some of which other workers carry out.
#[derive(Default)]
pub(crate) struct Awaited {
    /// What is to be sent, in order; what this worker replied behind the last of them has none.
    slots: Vec<Slot>,
    /// Slots that were sent.
    sent_slots: usize,
    /// What this worker replied, and how much of it was sent and has a slot.
    own: Vec<u8>,
    sent_bytes: usize,
    slot_bytes: usize,
    /// By worker.
    shares: Vec<Share>,
    commands: usize,
    command_bytes: usize,
    /// For bytes of replies and of commands that came back undone.
    charge: Charge,
}

enum Slot {
    /// So many bytes of this worker's.
    Own(usize),
    /// The next reply of a share; what ends a line of keys is left out where `is_part`.
    Other { share: usize, is_part: bool },
}

/// What one other worker carries out.
#[derive(Default)]
struct Share {
    owner: usize,
    /// Commands that are on their way.
    under_way: usize,
    /// What was replied, and how much of it was sent.
    replies: Vec<u8>,
    sent_bytes: usize,
    /// The lengths of replies, and how many were sent.
    lengths: Vec<usize>,
    sent: usize,
    /// Commands that came back undone.
    undone: Vec<u8>,
    undone_commands: usize,
}

impl Share {
    fn clear(&mut self) {
        for buffer in [&mut self.replies, &mut self.undone] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES_MAX);
        }
        self.lengths.clear();
        (self.sent_bytes, self.sent) = (0, 0);
        (self.under_way, self.undone_commands) = (0, 0);
    }
}

impl Awaited {
    /// Whether no more commands may be added.
    pub fn is_full(&self, limits: &ForwardLimits) -> bool {
        self.commands >= limits.commands || self.command_bytes >= limits.command_bytes
    }

    /// Whether `owner` has some of the commands.
    pub fn is_at(&self, owner: usize) -> bool {
        let mut shares = self.shares.iter();
        shares.any(|share| share.owner == owner && share.under_way > 0)
    }

    /// `owner` has another command, of so many bytes. This worker made `replies` before, which were not added yet.
    pub fn push(&mut self, owner: usize, bytes: usize, replies: &[u8], is_part: bool) {
        let own = self.own.len() + replies.len() - self.slot_bytes;
        if own > 0 {
            self.slots.push(Slot::Own(own));
            self.slot_bytes += own;
        }
        let share = self.shares.iter().position(|share| share.owner == owner);
        let share = share.unwrap_or_else(|| {
            self.shares.push(Share {
                owner,
                ..Share::default()
            });
            self.shares.len() - 1
        });
        self.shares[share].under_way += 1;
        self.slots.push(Slot::Other { share, is_part });
        self.commands += 1;
        self.command_bytes += bytes;
    }

    /// Keep this worker's own replies, and leave none.
    pub fn add(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Result<(), Spent> {
        self.pay(replies.len(), counters)?;
        self.own.append(replies);
        Ok(())
    }

    /// Keep what another worker replied.
    pub fn take(&mut self, returned: &Returned<'_>, counters: &Counters) -> Result<(), Spent> {
        self.pay(returned.replies.len() + returned.undone.len(), counters)?;
        let mut shares = self.shares.iter_mut();
        let Some(share) = shares.find(|share| share.owner == returned.owner) else {
            return Ok(());
        };
        share.under_way -= returned.ends.len() + returned.undone_commands;
        share.replies.extend_from_slice(returned.replies);
        let mut start = returned.start;
        share.lengths.extend(returned.ends.iter().map(|&end| {
            let length = end - start;
            start = end;
            length
        }));
        share.undone.extend_from_slice(returned.undone);
        share.undone_commands += returned.undone_commands;
        Ok(())
    }

    /// Pay for what is held, with so many bytes more.
    fn pay(&mut self, more: usize, counters: &Counters) -> Result<(), Spent> {
        let bytes = self.bytes() + more;
        self.charge.set(bytes, counters.allowance())
    }

    /// Bytes that it holds for a client.
    pub fn bytes(&self) -> usize {
        let shares = self.shares.iter();
        let others: usize = shares.map(|one| one.replies.len() + one.undone.len()).sum();
        self.own.len() + others
    }

    /// Whether replies are to come without anything being done for it.
    pub fn is_under_way(&self) -> bool {
        self.shares.iter().any(|share| share.under_way > 0)
    }

    /// Whether commands came back undone.
    pub fn is_undone(&self) -> bool {
        self.shares.iter().any(|share| share.undone_commands > 0)
    }

    /// Append to `to` all replies up to the first that is not there.
    pub fn send(&mut self, to: &mut Vec<u8>) {
        while let Some(slot) = self.slots.get(self.sent_slots) {
            match *slot {
                Slot::Own(bytes) => {
                    to.extend_from_slice(&self.own[self.sent_bytes..][..bytes]);
                    self.sent_bytes += bytes;
                }
                Slot::Other { share, is_part } => {
                    let share = &mut self.shares[share];
                    let Some(&length) = share.lengths.get(share.sent) else {
                        return;
                    };
                    let reply = &share.replies[share.sent_bytes..][..length];
                    to.extend_from_slice(match is_part {
                        true => reply.strip_suffix(END).unwrap_or(reply),
                        false => reply,
                    });
                    share.sent += 1;
                    share.sent_bytes += length;
                }
            }
            self.sent_slots += 1;
        }
        to.extend_from_slice(&self.own[self.sent_bytes..]);
        self.sent_bytes = self.own.len();
    }

    /// Forget other workers' replies that were sent. There may be megabytes of them.
    pub fn release(&mut self, counters: &Counters) {
        for share in &mut self.shares {
            share.replies.drain(..share.sent_bytes);
            share.sent_bytes = 0;
        }
        // It is less, which is always had.
        _ = self.pay(0, counters);
    }

    /// Have commands that came back undone go again: `push` gets their owner, their number and their bytes.
    pub fn try_again(&mut self, mut push: impl FnMut(usize, (usize, &[u8]))) {
        for share in &mut self.shares {
            if share.undone_commands == 0 {
                continue;
            }
            let undone = (share.undone_commands, &share.undone[..]);
            push(share.owner, undone);
            share.under_way += share.undone_commands;
            share.undone_commands = 0;
            share.undone.clear();
        }
    }

    /// Be as new, with some of the memory.
    pub fn clear(&mut self, counters: &Counters) {
        self.slots.clear();
        self.own.clear();
        self.own.shrink_to(KEPT_BYTES_MAX);
        self.shares.truncate(KEPT_SHARES_MAX);
        self.shares.iter_mut().for_each(Share::clear);
        (self.sent_slots, self.sent_bytes, self.slot_bytes) = (0, 0, 0);
        (self.commands, self.command_bytes) = (0, 0);
        // It is less, which is always had.
        _ = self.charge.set(0, counters.allowance());
    }
}
