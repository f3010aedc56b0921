//! What a request does, as text: kinds of work joined by `+`, done one after the other.

use std::fmt;
use std::str::FromStr;

/// One kind of work, with its amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Instructions that take this many microseconds on an undisturbed core: `cpu:100`.
    Cpu {
        /// Microseconds.
        microseconds: u64,
    },
    /// Bytes read of memory that no cache holds: `memory-stream:1m`.
    MemoryStream {
        /// Bytes.
        bytes: u64,
    },
    /// The same, drawn from a channel of known bandwidth: `memory-stream-regulated:64k`, or with the rate of the
    /// channel, `memory-stream-regulated:64k@1g`.
    MemoryStreamRegulated {
        /// Bytes.
        bytes: u64,
        /// Of the channel, where it is said here.
        bytes_per_second: Option<u64>,
    },
    /// Random pages touched of a mapped file: `page-touch:16`.
    PageTouch {
        /// Pages.
        pages: u64,
    },
    /// Bytes read from a file in order, past the page cache: `disk-sequential:1m`.
    DiskSequential {
        /// Bytes.
        bytes: u64,
    },
    /// Bytes read from a random place of a file, past the page cache: `disk-random:4k`.
    DiskRandom {
        /// Bytes.
        bytes: u64,
    },
    /// Bytes written to a file in order, past the page cache: `disk-write:64k`.
    DiskWrite {
        /// Bytes.
        bytes: u64,
    },
    /// Asleep while holding the one lock that the process has: `lock:1000`.
    Lock {
        /// Microseconds.
        microseconds: u64,
    },
    /// Asleep, holding nothing: `sleep:1000`.
    Sleep {
        /// Microseconds.
        microseconds: u64,
    },
}

/// What is done for each request of a kind, in this order; empty for nothing (`none`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipe(pub Vec<Work>);

/// Why a text is no recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such kind of work.
    #[error("'{0}' is an invalid kind of work: expected none, or any of {KINDS} joined by +")]
    Kind(String),
    /// The amount is missing or not a number.
    #[error("{kind} takes an amount, such as {example}, not '{amount}'")]
    Amount {
        /// The kind of work.
        kind: &'static str,
        /// What was given.
        amount: String,
        /// One that would do.
        example: &'static str,
    },
    /// The amount is a number, and too small or too large.
    #[error("{kind} takes 1 to {most} {unit}, not {amount}")]
    Bounds {
        /// The kind of work.
        kind: &'static str,
        /// What was given.
        amount: String,
        /// The most that it takes.
        most: u64,
        /// What it counts.
        unit: &'static str,
    },
    /// More steps than a request may have.
    #[error("a request does at most {STEPS_MAX} kinds of work, not {0}")]
    TooMany(usize),
}

const KINDS: &str = "cpu:MICROSECONDS, memory-stream:BYTES, memory-stream-regulated:BYTES[@BYTES_PER_SECOND], \
                     page-touch:PAGES, disk-sequential:BYTES, disk-random:BYTES, disk-write:BYTES, \
                     lock:MICROSECONDS, sleep:MICROSECONDS";
/// Steps of one recipe.
const STEPS_MAX: usize = 16;
/// Ten seconds: no request of a test takes longer.
const MICROSECONDS_MAX: u64 = 10_000_000;
const BYTES_MAX: u64 = 256 << 20;
const PAGES_MAX: u64 = 1 << 16;
const RATE_MAX: u64 = 1 << 50;

impl FromStr for Recipe {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.trim() == "none" {
            return Ok(Self::default());
        }
        let steps: Vec<&str> = text.split('+').collect();
        if steps.len() > STEPS_MAX {
            return Err(Error::TooMany(steps.len()));
        }
        steps
            .into_iter()
            .map(|step| step.trim().parse())
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl FromStr for Work {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (kind, amount) = text.split_once(':').unwrap_or((text, ""));
        let microseconds = |kind| amount_of(kind, amount, "100", MICROSECONDS_MAX, "microseconds");
        let bytes = |kind| amount_of(kind, amount, "64k", BYTES_MAX, "bytes");
        Ok(match kind {
            "cpu" => Self::Cpu {
                microseconds: microseconds("cpu")?,
            },
            "memory-stream" => Self::MemoryStream {
                bytes: bytes("memory-stream")?,
            },
            "memory-stream-regulated" => regulated(amount)?,
            "page-touch" => Self::PageTouch {
                pages: amount_of("page-touch", amount, "16", PAGES_MAX, "pages")?,
            },
            "disk-sequential" => Self::DiskSequential {
                bytes: bytes("disk-sequential")?,
            },
            "disk-random" => Self::DiskRandom {
                bytes: bytes("disk-random")?,
            },
            "disk-write" => Self::DiskWrite {
                bytes: bytes("disk-write")?,
            },
            "lock" => Self::Lock {
                microseconds: microseconds("lock")?,
            },
            "sleep" => Self::Sleep {
                microseconds: microseconds("sleep")?,
            },
            _ => return Err(Error::Kind(text.to_owned())),
        })
    }
}

fn regulated(amount: &str) -> Result<Work, Error> {
    let kind = "memory-stream-regulated";
    let (bytes, rate) = match amount.split_once('@') {
        Some((bytes, rate)) => (bytes, Some(rate)),
        None => (amount, None),
    };
    Ok(Work::MemoryStreamRegulated {
        bytes: amount_of(kind, bytes, "64k@1g", BYTES_MAX, "bytes")?,
        bytes_per_second: rate
            .map(|rate| amount_of(kind, rate, "64k@1g", RATE_MAX, "bytes a second"))
            .transpose()?,
    })
}

fn amount_of(
    kind: &'static str,
    amount: &str,
    example: &'static str,
    most: u64,
    unit: &'static str,
) -> Result<u64, Error> {
    let counts_bytes = unit.starts_with("bytes");
    let number = if counts_bytes {
        parse_bytes(amount)
    } else {
        digits(amount)
    };
    match number {
        Some(number) if (1..=most).contains(&number) => Ok(number),
        Some(_) => Err(Error::Bounds {
            kind,
            amount: amount.to_owned(),
            most,
            unit,
        }),
        None => Err(Error::Amount {
            kind,
            amount: amount.to_owned(),
            example,
        }),
    }
}

/// Bytes as `4096`, `64k`, `1m` or `1g`; `None` for anything else. More than fits is the most there is.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits(number).map(|number| number.saturating_mul(unit))
}

/// A number without a sign; one that is too large is the largest.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu { microseconds } => write!(formatter, "cpu:{microseconds}"),
            Self::MemoryStream { bytes } => write!(formatter, "memory-stream:{bytes}"),
            Self::MemoryStreamRegulated {
                bytes,
                bytes_per_second,
            } => {
                write!(formatter, "memory-stream-regulated:{bytes}")?;
                bytes_per_second.map_or(Ok(()), |rate| write!(formatter, "@{rate}"))
            }
            Self::PageTouch { pages } => write!(formatter, "page-touch:{pages}"),
            Self::DiskSequential { bytes } => write!(formatter, "disk-sequential:{bytes}"),
            Self::DiskRandom { bytes } => write!(formatter, "disk-random:{bytes}"),
            Self::DiskWrite { bytes } => write!(formatter, "disk-write:{bytes}"),
            Self::Lock { microseconds } => write!(formatter, "lock:{microseconds}"),
            Self::Sleep { microseconds } => write!(formatter, "sleep:{microseconds}"),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("none");
        }
        for (place, work) in self.0.iter().enumerate() {
            write!(formatter, "{}{work}", if place == 0 { "" } else { "+" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
