//! The server's parser of text and meta commands.

use crate::input::Input;
use wire::memcached::server::{
    Checkpoint, Command, KEY_BYTES_MAX, KEYS_LINE_BYTES_MAX, KeyBuffer, LINE_BYTES_MAX, Limits,
    MetaFlag, OPAQUE_BYTES_MAX, Parser, Request, Step,
};

/// However the stream is cut, the requests are the same and end in the same places; what is kept is bounded;
/// [`Parser::plain_get`] says what [`Parser::next`] does; and what was read ahead is read again after
/// [`Parser::restore`].
pub fn run(data: &[u8]) {
    let Some(input) = Input::stretched(data) else {
        return;
    };
    let limits = Limits {
        item_bytes_max: if input.choice(0) { 300 } else { 1 << 20 },
    };
    let mut pieces = Pieces {
        stream: &input.stream,
        parser: Parser::new(limits),
        is_patient: input.choice(1),
        looks_ahead: input.choice(2),
        at: 0,
        wanted: 0,
        whole: Whole {
            stream: &input.stream,
            parser: Parser::new(limits),
            at: 0,
        },
    };
    for end in input.ends() {
        if !pieces.take(end) {
            return;
        }
    }
    let mut room = KeyBuffer::default();
    assert!(
        pieces.whole.next(&mut room).is_none(),
        "a request that is found only where the stream is whole"
    );
    assert_eq!(pieces.whole.at, pieces.at, "consumed");
}

/// A parser that sees all of the stream at once.
struct Whole<'a> {
    stream: &'a [u8],
    parser: Parser,
    at: usize,
}

impl<'a> Whole<'a> {
    fn next<'r>(&mut self, room: &'r mut KeyBuffer) -> Option<Request<'r>>
    where
        'a: 'r,
    {
        let (consumed, step) = self.parser.next(&self.stream[self.at..], room);
        self.at += consumed;
        match step {
            Step::Request(request) => Some(request),
            Step::Incomplete(_) => None,
        }
    }
}

/// One that sees a piece more each time.
struct Pieces<'a> {
    stream: &'a [u8],
    parser: Parser,
    is_patient: bool,
    looks_ahead: bool,
    at: usize,
    wanted: usize,
    whole: Whole<'a>,
}

impl Pieces<'_> {
    /// The stream up to `end` is there. False where the connection ends.
    fn take(&mut self, end: usize) -> bool {
        if self.is_patient && end - self.at < self.wanted {
            return true;
        }
        loop {
            let held = &self.stream[self.at..end];
            let before = self.parser.checkpoint();
            let plain = self.parser.plain_get(held);
            let after = self.parser.checkpoint();
            self.parser.restore(before);
            let mut room = KeyBuffer::default();
            let (consumed, step) = self.parser.next(held, &mut room);
            assert!(consumed <= held.len());
            let request = match step {
                Step::Incomplete(wanted) => {
                    assert!(plain.is_none());
                    let left = held.len() - consumed;
                    assert!(wanted > left, "{wanted} of {left} would never come");
                    assert!(wanted <= self.most_wanted(), "{wanted} bytes are kept");
                    self.at += consumed;
                    self.wanted = wanted;
                    return true;
                }
                Step::Request(request) => request,
            };
            if let Some(plain) = plain {
                let expected = Command::Get {
                    key: plain.key,
                    with_cas: false,
                    last: plain.left == 0,
                };
                assert_eq!((plain.consumed, expected), (consumed, request.command));
                assert_eq!(after, self.parser.checkpoint());
                assert_eq!(after, Checkpoint::plain(plain.left));
            }
            check(&request, self.parser.limits());
            self.wanted = 0;
            self.at += consumed;
            let mut other_room = KeyBuffer::default();
            let expected = self.whole.next(&mut other_room);
            assert_eq!(expected, Some(request), "cut and whole");
            assert_eq!(self.whole.at, self.at, "consumed");
            if matches!(request.command, Command::Disconnect(_)) {
                return false;
            }
            if self.looks_ahead {
                let checkpoint = self.parser.checkpoint();
                self.look_ahead(end);
                self.parser.restore(checkpoint);
            }
        }
    }

    /// Read some more, to forget it.
    fn look_ahead(&mut self, end: usize) {
        let mut at = self.at;
        for _ in 0..3 {
            let mut room = KeyBuffer::default();
            let (consumed, step) = self.parser.next(&self.stream[at..end], &mut room);
            at += consumed;
            if !matches!(step, Step::Request(request) if !matches!(request.command, Command::Disconnect(_)))
            {
                return;
            }
        }
    }

    /// The most that a command takes: a line of keys, or another line and a value, with their ends.
    fn most_wanted(&self) -> usize {
        let value = self.parser.limits().item_bytes_max + 2;
        usize::max(KEYS_LINE_BYTES_MAX + 3, LINE_BYTES_MAX + 3 + value)
    }
}

/// What executing a request relies on.
fn check(request: &Request<'_>, limits: Limits) {
    if let Some(key) = request.command.key() {
        assert!((1..=KEY_BYTES_MAX).contains(&key.len()), "{request:?}");
    }
    match request.command {
        Command::Get { key, .. } | Command::GetAndTouch { key, .. } => {
            assert!(is_word(key), "{request:?}");
            assert!(!request.quiet);
        }
        Command::Store { key, value, .. } => {
            assert!(is_word(key), "{request:?}");
            assert!(key.len() + value.len() <= limits.item_bytes_max);
        }
        Command::Delete { key } | Command::Touch { key, .. } | Command::Arithmetic { key, .. } => {
            assert!(is_word(key), "{request:?}");
        }
        Command::MetaGet(meta)
        | Command::MetaSet(meta, _)
        | Command::MetaDelete(meta)
        | Command::MetaArithmetic(meta) => {
            assert!(meta.binary || is_word(meta.key), "{request:?}");
            for step in meta.steps() {
                if let MetaFlag::Opaque(token) = step {
                    assert!(token.len() <= OPAQUE_BYTES_MAX && is_word(token));
                }
            }
            if let Command::MetaSet(meta, value) = request.command {
                assert!(meta.key.len() + value.len() <= limits.item_bytes_max);
            }
        }
        Command::Answer(line) => {
            let words = ["ERROR", "MEMLIMIT_", "OK", "END"];
            assert!(words.iter().any(|word| line.contains(word)), "{line}");
        }
        Command::Stats { section } => assert!(section.is_empty() || is_word(section)),
        _ => {}
    }
}

/// What can be sent back within a line.
fn is_word(bytes: &[u8]) -> bool {
    !bytes
        .iter()
        .any(|byte| matches!(byte, b' ' | b'\n' | b'\0'))
}
