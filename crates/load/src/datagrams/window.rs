use crate::operation::Operation;
use wire::memcached::datagram::Frame;

/// Bits of a request's number that tell its slot; the others tell a late answer to what the slot held before.
const SLOT_BITS: u32 = 10;

/// Datagrams that may be on their way in a flow.
pub(crate) const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) operation: Operation,
    pub(crate) id: u64,
    /// When it was to be sent.
    pub(crate) intended: u64,
    /// The least version that a read may see.
    pub(crate) floor: u64,
}

/// A datagram on its way, or room for one.
#[derive(Debug)]
pub(crate) struct Slot {
    generation: u16,
    pub(crate) sent: u64,
    /// In order; empty where there is room.
    pub(crate) requests: Vec<Sent>,
    pub(crate) answered: usize,
    /// Datagrams that brought answers: answers tell what they are to by their order alone, so the next one must be of
    /// this number.
    pub(crate) pieces: u16,
}

/// The datagrams of a flow that are on their way.
#[derive(Debug)]
pub(crate) struct Window {
    slots: Vec<Slot>,
    free: Vec<u16>,
}

impl Window {
    /// Room for `slots` datagrams of `batch` requests.
    pub(crate) fn new(slots: usize, batch: usize) -> Self {
        let slot = |_| Slot {
            generation: 0,
            sent: 0,
            requests: Vec::with_capacity(batch),
            answered: 0,
            pieces: 0,
        };
        Self {
            slots: (0..slots).map(slot).collect(),
            free: (0..slots as u16).rev().collect(),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Room for a datagram, and the number of the request that it makes.
    pub(crate) fn take_slot(&mut self) -> Option<(u16, &mut Slot)> {
        let index = self.free.pop()?;
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.answered = 0;
        slot.pieces = 0;
        Some((slot.generation << SLOT_BITS | index, slot))
    }

    /// What an answer is to, if that still waits for it. One that comes twice, or before another one that it follows, is
    /// none.
    #[inline]
    pub(crate) fn slot(&mut self, frame: Frame) -> Option<&mut Slot> {
        let index = usize::from(frame.request) & (SLOTS_MAX - 1);
        let slot = self.slots.get_mut(index)?;
        let is_awaited = slot.generation << SLOT_BITS | index as u16 == frame.request
            && !slot.requests.is_empty()
            && slot.pieces == frame.sequence;
        is_awaited.then(|| {
            slot.pieces = slot.pieces.wrapping_add(1);
            slot
        })
    }

    /// Nothing is awaited in the slot of `request` any more.
    pub(crate) fn release(&mut self, request: u16) {
        let index = request & (SLOTS_MAX - 1) as u16;
        if let Some(slot) = self.slots.get_mut(usize::from(index)) {
            slot.generation = slot.generation.wrapping_add(1) & (u16::MAX >> SLOT_BITS);
            slot.requests.clear();
            self.free.push(index);
        }
    }

    /// The number of a request that was sent before `time` and still waits.
    pub(crate) fn overdue(&self, time: u64) -> Option<u16> {
        (0..).zip(&self.slots).find_map(|(index, slot)| {
            let is_overdue = !slot.requests.is_empty() && slot.sent < time;
            is_overdue.then_some(slot.generation << SLOT_BITS | index)
        })
    }

    /// Requests that wait in the slot of `request`.
    pub(crate) fn waiting(&mut self, request: u16) -> &mut Slot {
        &mut self.slots[usize::from(request) & (SLOTS_MAX - 1)]
    }
}
