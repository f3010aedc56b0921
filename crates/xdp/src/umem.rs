//! The memory of a socket's frames, and who has each of them.
//!
//! At any time a frame belongs to the kernel (it is in the fill ring, or on its way to a network), to the socket (free),
//! or to the user, who then holds the only [`Frame`] with its number. The kernel's word is not taken for it: what comes
//! back from a ring becomes a [`Frame`] only if the kernel had it.

use crate::Error;
use mapping::{HUGE_PAGE_BYTES, Mapping};
use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A frame that is the holder's: to be read, written, transmitted or given back with the methods of the
/// [`Socket`](crate::Socket) that it comes from. One that is dropped is lost to the socket until it is closed.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame that is dropped is lost: transmit or release it"]
pub struct Frame {
    umem: NonZeroU32,
    number: u32,
    /// Where the packet begins in the frame.
    start: u16,
    /// Of the packet, in bytes.
    length: u16,
    /// From the packet's beginning to the frame's end, in bytes.
    room: u16,
}

impl Frame {
    /// Length of the packet in bytes.
    #[inline]
    pub fn length(&self) -> usize {
        self.length.into()
    }

    /// How long a packet may be in this frame, in bytes.
    #[inline]
    pub fn room(&self) -> usize {
        self.room.into()
    }

    /// Say how long the packet is that was put into the frame. What lies there and was not written is from packets
    /// before.
    ///
    /// # Panics
    /// If `bytes` is more than there is [`room`](Self::room) for.
    #[inline]
    pub fn set_length(&mut self, bytes: usize) {
        assert!(
            bytes <= self.room(),
            "{bytes} bytes in a frame of {}",
            self.room
        );
        self.length = bytes as u16;
    }
}

/// Who has a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The socket or the user.
    User,
    /// The kernel, for a packet that arrives.
    Receive,
    /// The kernel, with a packet to send.
    Transmit,
}

/// Memory divided into frames.
#[derive(Debug)]
pub(crate) struct Umem {
    identity: NonZeroU32,
    mapping: Mapping,
    frame_bytes: u32,
    owners: Box<[Owner]>,
}

/// How a packet is told to the kernel: where it lies in the memory, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub address: u64,
    pub length: u32,
}

impl Umem {
    /// Memory for `frames` of `frame_bytes` each (2048 or 4096), and all the frames.
    pub fn new(frames: u32, frame_bytes: u32) -> Result<(Self, Vec<Frame>), Error> {
        /// The next memory's number, so that a frame of one is not taken for another's.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let bytes = frames as usize * frame_bytes as usize;
        let out_of_memory = || Error::out_of_memory(bytes);
        let identity = NEXT
            .fetch_update(Relaxed, Relaxed, |next| next.checked_add(1))
            .ok()
            .and_then(NonZeroU32::new)
            .ok_or_else(out_of_memory)?;
        // As long as a huge page at least, so that frames do not cross into other pages.
        let mapping = Mapping::zeroed(bytes.max(HUGE_PAGE_BYTES)).map_err(|_| out_of_memory())?;
        mapping.use_huge_pages();
        let umem = Self {
            identity,
            mapping,
            frame_bytes,
            owners: vec![Owner::User; frames as usize].into_boxed_slice(),
        };
        let frames = (0..frames).map(|number| umem.whole(number)).collect();
        Ok((umem, frames))
    }

    /// Where it lies, for the kernel.
    pub fn address(&self) -> u64 {
        self.mapping.start().as_ptr().expose_provenance() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.owners.len() as u64 * u64::from(self.frame_bytes)
    }

    pub fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// An empty frame. The caller sees to it that this is the only one of its number.
    fn whole(&self, number: u32) -> Frame {
        Frame {
            umem: self.identity,
            number,
            start: 0,
            length: 0,
            room: self.frame_bytes as u16,
        }
    }

    /// The owner of the frame in which `address` lies, and its number.
    #[inline]
    fn owner_at(&mut self, address: u64) -> Option<(&mut Owner, u32)> {
        let number = u32::try_from(address / u64::from(self.frame_bytes)).ok()?;
        Some((self.owners.get_mut(number as usize)?, number))
    }

    /// Give a frame to the kernel for a packet that arrives; the answer is its address for the fill ring.
    #[inline]
    pub fn give_to_receive(&mut self, frame: Frame) -> u64 {
        self.check(&frame);
        self.owners[frame.number as usize] = Owner::Receive;
        u64::from(frame.number) * u64::from(self.frame_bytes)
    }

    /// Give a frame with its packet to the kernel; the answer is for the transmit ring.
    #[inline]
    pub fn give_to_transmit(&mut self, frame: Frame) -> Descriptor {
        self.check(&frame);
        self.owners[frame.number as usize] = Owner::Transmit;
        Descriptor {
            address: u64::from(frame.number) * u64::from(self.frame_bytes) + u64::from(frame.start),
            length: frame.length.into(),
        }
    }

    /// A frame that came back in the receive ring, with a packet. `None` if the kernel did not have it for that, or the
    /// packet does not lie within.
    #[inline]
    pub fn received(&mut self, descriptor: Descriptor) -> Option<Frame> {
        let frame_bytes = self.frame_bytes;
        let (owner, number) = self.owner_at(descriptor.address)?;
        let start = (descriptor.address % u64::from(frame_bytes)) as u32;
        let room = frame_bytes - start;
        if *owner != Owner::Receive || descriptor.length > room {
            return None;
        }
        *owner = Owner::User;
        Some(Frame {
            umem: self.identity,
            number,
            start: start as u16,
            length: descriptor.length as u16,
            room: room as u16,
        })
    }

    /// A frame that came back in the completion ring, empty. `None` if the kernel did not have it to send.
    #[inline]
    pub fn transmitted(&mut self, address: u64) -> Option<Frame> {
        let (owner, number) = self.owner_at(address)?;
        if *owner != Owner::Transmit {
            return None;
        }
        *owner = Owner::User;
        Some(self.whole(number))
    }

    /// The frame without its packet.
    #[inline]
    pub fn emptied(&self, frame: Frame) -> Frame {
        self.check(&frame);
        self.whole(frame.number)
    }

    #[inline]
    fn check(&self, frame: &Frame) {
        assert!(frame.umem == self.identity, "a frame of another socket");
    }

    /// Where the frame's packet begins.
    #[inline]
    fn place(&self, frame: &Frame) -> NonNull<u8> {
        self.check(frame);
        let position = frame.number as usize * self.frame_bytes as usize + usize::from(frame.start);
        // SAFETY: frames are only made by this memory, within its bounds.
        unsafe { self.mapping.start().add(position) }
    }

    /// The packet.
    #[inline]
    pub fn packet<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        let place = self.place(frame);
        // SAFETY: `length` is at most the room to the frame's end. Whoever writes has the one `Frame` of this number by
        // `&mut`, and the kernel has given the frame away.
        unsafe { std::slice::from_raw_parts(place.as_ptr(), frame.length()) }
    }

    /// All of the frame from where its packet begins.
    #[inline]
    pub fn room<'a>(&'a self, frame: &'a mut Frame) -> &'a mut [u8] {
        let place = self.place(frame);
        // SAFETY: `room` ends with the frame; this `Frame` is the only one of its number and borrowed as long as the
        // slice, and no two frames overlap. The kernel has given the frame away.
        unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), frame.room()) }
    }
}

#[cfg(test)]
mod tests;
