/// A command, and whether the client wants to hear about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// What to do.
    pub command: Command<'a>,
    /// `noreply` was given: nothing is answered, not even an error.
    pub quiet: bool,
}

/// What a client asks for. Expiration times are as they arrived: seconds from now up to 30 days, Unix time beyond,
/// 0 for never, negative for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// One key of `get` or `gets`. A line of several keys arrives key by key.
    Get {
        /// The key.
        key: &'a [u8],
        /// Answer with the CAS number (`gets`).
        with_cas: bool,
        /// The line's last key: `END` follows the answer.
        last: bool,
    },
    /// One key of `gat` or `gats`.
    GetAndTouch {
        /// The key.
        key: &'a [u8],
        /// The item's new expiration time.
        exptime: i32,
        /// Answer with the CAS number (`gats`).
        with_cas: bool,
        /// The line's last key: `END` follows the answer.
        last: bool,
    },
    /// `set`, `add`, `replace`, `append`, `prepend` and `cas`.
    Store {
        /// Which of them.
        mode: StoreMode,
        /// The key.
        key: &'a [u8],
        /// The client's flags.
        flags: u32,
        /// When the item expires.
        exptime: i32,
        /// For [`StoreMode::Cas`], the number to compare; else 0.
        cas: u64,
        /// The value.
        value: &'a [u8],
    },
    /// A value that is too large; the parser skips it. To keep nothing out of date, `remove` says to remove `key`.
    TooLarge {
        /// The key.
        key: &'a [u8],
        /// Whether an item that is there must go.
        remove: bool,
    },
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// `incr` and `decr`.
    Arithmetic {
        /// The key.
        key: &'a [u8],
        /// Up or down.
        direction: Direction,
        /// By how much.
        delta: u64,
    },
    /// `touch`.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The item's new expiration time.
        exptime: i32,
    },
    /// `flush_all`, at once where `delay` is not positive.
    Flush {
        /// When, as an expiration time.
        delay: i32,
    },
    /// `version`.
    Version,
    /// `refresh_certs`: read the files of certificates again.
    RefreshCertificates,
    /// `stats`.
    Stats {
        /// The first argument; empty for the general ones.
        section: &'a [u8],
    },
    /// `shutdown`: end the server.
    Shutdown {
        /// It is asked for in a way that there is.
        has_mode: bool,
    },
    /// `quit`: close once earlier answers are sent.
    Quit,
    /// `mn`.
    MetaNoop,
    /// `mg`.
    MetaGet(Meta<'a>),
    /// `ms`.
    MetaSet(Meta<'a>, &'a [u8]),
    /// `md`.
    MetaDelete(Meta<'a>),
    /// `ma`.
    MetaArithmetic(Meta<'a>),
    /// `me`.
    MetaDebug {
        /// The key, decoded.
        key: &'a [u8],
    },
    /// There is nothing to carry out: answer with this line.
    Answer(&'static str),
    /// Not a client of this protocol, or a line without end: answer with this line if it is not empty, then close.
    Disconnect(&'static str),
}

impl<'a> Command<'a> {
    /// The key it is about, if it is about one.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Get { key, .. }
            | Self::GetAndTouch { key, .. }
            | Self::Store { key, .. }
            | Self::TooLarge { key, .. }
            | Self::Delete { key }
            | Self::Arithmetic { key, .. }
            | Self::Touch { key, .. }
            | Self::MetaDebug { key } => Some(key),
            Self::MetaGet(ref meta)
            | Self::MetaSet(ref meta, _)
            | Self::MetaDelete(ref meta)
            | Self::MetaArithmetic(ref meta) => Some(meta.key),
            _ => None,
        }
    }
}

/// The ways to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreMode {
    /// Whatever is there.
    Set,
    /// Only where there is nothing.
    Add,
    /// Only where there is something.
    Replace,
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
    /// Only where what is there has the CAS number given.
    Cas,
}

/// The ways to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Modulo 2^64.
    Up,
    /// Down to 0 at least.
    Down,
}

/// What the `M` token of a meta command asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaMode {
    /// For `ms`.
    Store(StoreMode),
    /// For `ma`.
    Count(Direction),
}

/// Key and flags of a meta command, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The key, decoded where it came as base64.
    pub key: &'a [u8],
    /// The key came as base64 (`b`).
    pub binary: bool,
    /// Answer with the value (`v`).
    pub value: bool,
    /// Leave out the answer that is nothing special (`q`).
    pub quiet: bool,
    /// Do not count this as a use of the item (`u`).
    pub no_update: bool,
    /// Mark as stale (`I`).
    pub invalidate: bool,
    /// New expiration time (`T`).
    pub exptime: Option<i32>,
    /// Create a missing item with this expiration time (`N`).
    pub vivify: Option<i32>,
    /// Let the client renew the item if it expires before this (`R`).
    pub renew_before: Option<i32>,
    /// The CAS number to compare (`C`).
    pub cas: Option<u64>,
    /// The CAS number that the item is to have if it is changed (`E`); 0 for one of the server's choice.
    pub new_cas: u64,
    /// Remove the value and the flags, but not the item (`x`).
    pub remove_value: bool,
    /// The client's flags to store (`F`).
    pub client_flags: u32,
    /// How to store or count (`M`).
    pub mode: Option<MetaMode>,
    /// By how much to count (`D`).
    pub delta: u64,
    /// Where to start counting (`J`).
    pub initial: u64,
    /// All flags as they came, separated by spaces.
    pub(super) flags: &'a [u8],
}

/// A flag that the answer repeats or fills in, or whose place among those matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaFlag<'a> {
    /// `c`: the CAS number.
    Cas,
    /// `f`: the client's flags.
    ClientFlags,
    /// `h`: whether the item was read before.
    Hit,
    /// `T`: from here on the item has the new expiration time.
    Exptime,
    /// `k`: the key.
    Key,
    /// `l`: seconds since the item was read.
    LastAccess,
    /// `O`: to be sent back as it came, the `O` included.
    Opaque(&'a [u8]),
    /// `R`: whether the client should renew the item is decided here.
    RenewBefore,
    /// `s`: the value's length.
    Size,
    /// `t`: seconds until it expires.
    TimeToLive,
    /// `N`: from here on an item that was created has its expiration time.
    Vivify,
}

impl<'a> Meta<'a> {
    /// The flags that carrying out the command looks at one by one, in the order they came.
    pub fn steps(&self) -> impl Iterator<Item = MetaFlag<'a>> + use<'a> {
        tokens(self.flags).filter_map(|token| {
            Some(match token[0] {
                b'c' => MetaFlag::Cas,
                b'f' => MetaFlag::ClientFlags,
                b'h' => MetaFlag::Hit,
                b'k' => MetaFlag::Key,
                b'l' => MetaFlag::LastAccess,
                b'O' => MetaFlag::Opaque(token),
                b's' => MetaFlag::Size,
                b't' => MetaFlag::TimeToLive,
                b'T' => MetaFlag::Exptime,
                b'R' => MetaFlag::RenewBefore,
                b'N' => MetaFlag::Vivify,
                _ => return None,
            })
        })
    }
}

/// The non-empty runs between spaces.
pub(super) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ')
        .filter(|token| !token.is_empty())
}
