//! How made-up bytes are read as a stream that arrives in pieces.

use std::iter;

/// What decides, and the stream that it decides about.
pub(crate) struct Input {
    /// Eight choices.
    pub settings: u8,
    cuts: [u8; 7],
    /// What arrives.
    pub stream: Vec<u8>,
}

/// Bytes that stand for many, so that a short input reaches what only a long line or value does. None of them means
/// anything in a protocol of text.
const STRETCHED: [(u8, u8, usize); 4] = [
    (0xff, b'x', 250),
    (0xfe, b' ', 2 << 10),
    (0xfd, b'v', 24 << 10),
    (0xfc, b'k', 1 << 20),
];

/// The longest stream that stretching makes.
const STREAM_BYTES_MAX: usize = (2 << 20) + (64 << 10);

impl Input {
    /// The first byte is the settings, the next seven say how the rest is cut; `None` where there is less.
    pub fn new(data: &[u8]) -> Option<Self> {
        let (front, stream) = data.split_first_chunk::<8>()?;
        let [settings, cuts @ ..] = *front;
        Some(Self {
            settings,
            cuts,
            stream: stream.to_vec(),
        })
    }

    /// As [`new`](Self::new), where some bytes of the stream stand for many.
    pub fn stretched(data: &[u8]) -> Option<Self> {
        let mut input = Self::new(data)?;
        if input.stream.iter().any(|&byte| byte >= 0xfc) {
            let mut stream = Vec::new();
            for &byte in &input.stream {
                let (with, count) = STRETCHED
                    .iter()
                    .find(|(short, ..)| *short == byte)
                    .map_or((byte, 1), |&(_, with, count)| (with, count));
                if stream.len() + count <= STREAM_BYTES_MAX {
                    stream.extend(iter::repeat_n(with, count));
                }
            }
            input.stream = stream;
        }
        Some(input)
    }

    /// Choice number `number`, 0 to 7.
    pub fn choice(&self, number: u8) -> bool {
        self.settings >> number & 1 == 1
    }

    /// Lengths of pieces, for ever: of a stream that `0` cuts nowhere, `1` into single bytes, and so on.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + use<> {
        // A long stream in few pieces too, so that it does not take long.
        let scale = 1 + self.stream.len() / 2048;
        let cuts = self.cuts;
        (0..).map(
            move |number: usize| match usize::from(cuts[number % 7] % 48) {
                0 => usize::MAX,
                length => length * scale,
            },
        )
    }

    /// Where the pieces of the stream end: rising, the last at its end.
    pub fn ends(&self) -> impl Iterator<Item = usize> + use<> {
        let total = self.stream.len();
        let mut lengths = self.lengths();
        let mut at = 0;
        let mut is_over = false;
        iter::from_fn(move || {
            if is_over {
                return None;
            }
            at = lengths
                .next()
                .map_or(total, |length| usize::min(at.saturating_add(length), total));
            is_over = at == total;
            Some(at)
        })
    }
}
