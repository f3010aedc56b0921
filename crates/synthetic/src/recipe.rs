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
    #[error("'{0}' is no kind of work; there are {KINDS}, none, and any of them joined by +")]
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_work() -> impl Strategy<Value = Work> {
        let microseconds = 1..=MICROSECONDS_MAX;
        let bytes = 1..=BYTES_MAX;
        prop_oneof![
            microseconds
                .clone()
                .prop_map(|microseconds| Work::Cpu { microseconds }),
            bytes.clone().prop_map(|bytes| Work::MemoryStream { bytes }),
            (bytes.clone(), prop::option::of(1..=RATE_MAX)).prop_map(
                |(bytes, bytes_per_second)| Work::MemoryStreamRegulated {
                    bytes,
                    bytes_per_second
                }
            ),
            (1..=PAGES_MAX).prop_map(|pages| Work::PageTouch { pages }),
            bytes
                .clone()
                .prop_map(|bytes| Work::DiskSequential { bytes }),
            bytes.clone().prop_map(|bytes| Work::DiskRandom { bytes }),
            bytes.prop_map(|bytes| Work::DiskWrite { bytes }),
            microseconds
                .clone()
                .prop_map(|microseconds| Work::Lock { microseconds }),
            microseconds.prop_map(|microseconds| Work::Sleep { microseconds }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(steps in prop::collection::vec(any_work(), 0..=STEPS_MAX)) {
            let recipe = Recipe(steps);
            prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,60}") {
            // Whatever is refused is refused in words.
            if let Err(error) = text.parse::<Recipe>() {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn no_amount_is_too_odd(kind in "(cpu|memory-stream-regulated|disk-random)", amount in "[0-9kmg@+: -]{0,24}") {
            if let Ok(recipe) = format!("{kind}:{amount}").parse::<Recipe>() {
                prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
            }
        }
    }

    #[test]
    fn units_are_powers_of_two_and_steps_keep_their_order() {
        let recipe: Recipe = "cpu:20+memory-stream-regulated:64k@2g + disk-random:4K"
            .parse()
            .unwrap();
        assert_eq!(
            recipe.0,
            [
                Work::Cpu { microseconds: 20 },
                Work::MemoryStreamRegulated {
                    bytes: 65536,
                    bytes_per_second: Some(2 << 30)
                },
                Work::DiskRandom { bytes: 4096 },
            ]
        );
        assert_eq!("none".parse(), Ok(Recipe::default()));
    }

    #[test]
    fn mistakes_say_what_is_possible() {
        for (text, part) in [
            ("", "no kind of work"),
            (
                "gpu:1",
                "'gpu:1' is no kind of work; there are cpu:MICROSECONDS",
            ),
            ("cpu", "cpu takes an amount, such as 100, not ''"),
            ("cpu:-1", "not '-1'"),
            ("cpu:1k", "not '1k'"),
            ("cpu:0", "cpu takes 1 to 10000000 microseconds, not 0"),
            (
                "disk-random:99999999999999999999g",
                "disk-random takes 1 to",
            ),
            ("memory-stream-regulated:64k@", "such as 64k@1g, not ''"),
            ("memory-stream-regulated:64k@0", "bytes a second, not 0"),
            ("cpu:1+", "'' is no kind of work"),
            ("cpu:1+none", "'none' is no kind of work"),
            (&["cpu:1"; 17].join("+"), "at most 16"),
        ] {
            let message = text.parse::<Recipe>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
