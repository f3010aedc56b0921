/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is no such item.
    NotFound,
    /// There is an item, or one with another CAS number.
    Exists,
    /// The value is larger than any that is kept.
    TooLarge,
    /// The request makes no sense.
    InvalidArguments,
    /// There is nothing to append or prepend to.
    NotStored,
    /// The item's value is not a number.
    NotANumber,
    /// It is forbidden to this client, or to all.
    NotAllowed,
    /// The opcode, or its layout, is not known.
    UnknownCommand,
    /// There is no memory for it; these words say for what.
    OutOfMemory(&'static str),
}

impl Status {
    pub(super) fn code(self) -> u16 {
        match self {
            Self::NotFound => 0x01,
            Self::Exists => 0x02,
            Self::TooLarge => 0x03,
            Self::InvalidArguments => 0x04,
            Self::NotStored => 0x05,
            Self::NotANumber => 0x06,
            Self::NotAllowed => 0x20,
            Self::UnknownCommand => 0x81,
            Self::OutOfMemory(_) => 0x82,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::InvalidArguments => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NotANumber => "Non-numeric server-side value for incr or decr",
            Self::NotAllowed => "Auth failure.",
            Self::UnknownCommand => "Unknown command",
            Self::OutOfMemory(words) => words,
        }
    }
}
