use super::datagram::{DATAGRAM_BYTES_MAX, FRAME_BYTES, Frame};
use std::cmp::Reverse;

/// Datagrams to send, behind one another.
#[derive(Debug, Default)]
pub struct Datagrams {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// Room to put them in another order.
    gathered: Vec<u8>,
    batches: Vec<Batch>,
}

/// Neighbours that may be moved together.
#[derive(Debug)]
struct Batch {
    /// The length of each, or 0 for a piece of a long answer, which is a batch by itself.
    class: usize,
    start: usize,
    end: usize,
    datagrams: usize,
}

impl Datagrams {
    /// Forget all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Begin a datagram; what follows the frame is to be appended to the bytes that it gives.
    #[inline]
    pub fn begin(&mut self, frame: Frame) -> &mut Vec<u8> {
        self.bytes.truncate(self.whole());
        self.bytes.extend_from_slice(&frame.to_bytes());
        &mut self.bytes
    }

    /// Put those of one length behind one another, the longest first, so that [`runs`](Self::runs) are long: datagrams have no
    /// order. Only the pieces of a long answer keep theirs, behind the others.
    pub fn gather(&mut self) {
        self.find_stretches();
        let is_gathered = |one: &Batch, next: &Batch| one.class >= next.class;
        if self.batches.is_sorted_by(is_gathered) {
            return;
        }
        // Stable: pieces keep their order.
        self.batches.sort_by_key(|batch| Reverse(batch.class));
        self.gathered.clear();
        self.ends.clear();
        for batch in &self.batches {
            let &Batch { start, end, .. } = batch;
            let moved = self.gathered.len();
            self.gathered.extend_from_slice(&self.bytes[start..end]);
            self.ends.extend(
                (1..=batch.datagrams).map(|count| moved + (end - start) / batch.datagrams * count),
            );
        }
        std::mem::swap(&mut self.bytes, &mut self.gathered);
    }

    /// Neighbours of one length are moved together: most datagrams are like their neighbours.
    fn find_stretches(&mut self) {
        self.batches.clear();
        let mut start = 0;
        for &end in &self.ends {
            let is_piece =
                Frame::parse(&self.bytes[start..end]).is_none_or(|(frame, _)| frame.datagrams != 1);
            let class = if is_piece { 0 } else { end - start };
            match self.batches.last_mut() {
                Some(batch) if batch.class == class && class > 0 => {
                    batch.end = end;
                    batch.datagrams += 1;
                }
                _ => self.batches.push(Batch {
                    class,
                    start,
                    end,
                    datagrams: 1,
                }),
            }
            start = end;
        }
    }

    /// The datagram that was begun, without its frame.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.whole() + FRAME_BYTES..]
    }

    /// End the datagram that was begun before byte `at` of the bytes that were given for it. Gives what was behind.
    #[inline]
    pub fn end_at(&mut self, at: usize) -> Vec<u8> {
        let behind = self.bytes.split_off(at.max(self.whole()));
        self.end();
        behind
    }

    /// End the datagram that was begun.
    #[inline]
    pub fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Bytes of datagrams that ended.
    fn whole(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Add an answer of any length, in as many datagrams as it takes. None of them is empty but for an empty answer's,
    /// which is left out.
    pub fn push_split(&mut self, frame: Frame, answer: &[u8]) {
        let pieces = answer.chunks(DATAGRAM_BYTES_MAX - FRAME_BYTES);
        // 65,536 of them are 91 MB, which nobody sends so.
        let datagrams = pieces.len() as u16;
        for (sequence, piece) in (0..).zip(pieces) {
            let out = self.begin(Frame {
                sequence,
                datagrams,
                ..frame
            });
            out.extend_from_slice(piece);
            self.end();
        }
    }

    /// Count the datagrams from number `first` on in their frames.
    pub fn number(&mut self, first: usize) {
        let datagrams = (self.ends.len() - first) as u16;
        for (sequence, number) in (0..).zip(first..self.ends.len()) {
            let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
            if let Some((frame, _)) = Frame::parse(&self.bytes[start..]) {
                let numbered = Frame {
                    sequence,
                    datagrams,
                    ..frame
                };
                self.bytes[start..start + FRAME_BYTES].copy_from_slice(&numbered.to_bytes());
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, in runs of at most `datagrams_max` and `bytes_max`, all but the last of which have the same length:
    /// their bytes, that length, and how many they are. One that may be longer than a packet is by itself: the kernel
    /// would not take several such at once (`UDP_SEGMENT` of `udp(7)`).
    pub fn runs(
        &self,
        datagrams_max: usize,
        bytes_max: usize,
    ) -> impl Iterator<Item = (&[u8], usize, usize)> {
        let mut next: usize = 0;
        std::iter::from_fn(move || {
            let start = next.checked_sub(1).map_or(0, |before| self.ends[before]);
            let first = *self.ends.get(next)? - start;
            let (mut end, mut count) = (start + first, 1);
            while count < datagrams_max
                && first <= DATAGRAM_BYTES_MAX + FRAME_BYTES
                && let Some(&after) = self.ends.get(next + count)
                && after - end <= first
                && after - start <= bytes_max
            {
                let length = after - end;
                (end, count) = (after, count + 1);
                if length < first {
                    break;
                }
            }
            next += count;
            Some((&self.bytes[start..end], first, count))
        })
    }
}

#[cfg(test)]
mod tests;
