//! A command line, taken apart.

use super::command::{Command, Meta, Request, StoreMode, tokens};

/// What a command line says.
pub(super) enum Line<'a> {
    /// All there is.
    Whole(Request<'a>),
    /// Keys to read follow.
    Keys {
        with_cas: bool,
        exptime: Option<i32>,
        /// The rest of the line.
        keys: &'a [u8],
    },
    /// A value of this many bytes follows.
    Value {
        store: Store<'a>,
        quiet: bool,
        bytes: usize,
    },
    /// An error that is told at once, although a value of this many bytes follows.
    Refused { error: &'static str, bytes: usize },
}

pub(super) enum Store<'a> {
    Classic {
        mode: StoreMode,
        key: &'a [u8],
        flags: u32,
        exptime: i32,
        cas: u64,
    },
    Meta(Meta<'a>),
}

pub(super) fn whole(command: Command<'_>, quiet: bool) -> Line<'_> {
    Line::Whole(Request { command, quiet })
}

/// memcached looks at as many words of a line; what follows them counts as not being there.
const WORDS_MAX: usize = 23;

/// The first words of a line: as many as any command has.
pub(super) struct Words<'a> {
    words: [&'a [u8]; WORDS_MAX],
    count: usize,
    line: &'a [u8],
}

impl<'a> Words<'a> {
    #[inline]
    pub fn of(line: &'a [u8]) -> Self {
        let mut words = [&[][..]; WORDS_MAX];
        let mut count = 0;
        for (slot, word) in words.iter_mut().zip(tokens(line)) {
            *slot = word;
            count += 1;
        }
        Self { words, count, line }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Empty where there is no such word.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.words.get(index).copied().unwrap_or_default()
    }

    #[inline]
    pub fn last(&self) -> &'a [u8] {
        self.get(self.count.saturating_sub(1))
    }

    /// The words from `index` on, as they came.
    #[inline]
    pub fn rest(&self, index: usize) -> &'a [u8] {
        if index >= self.count {
            return &[];
        }
        let start = self.get(index).as_ptr().addr() - self.line.as_ptr().addr();
        &self.line[start..]
    }
}
