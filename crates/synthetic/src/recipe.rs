//! What a request does, as text: kinds of work joined by `+`, done one after the other.

use std::fmt;
use std::str::FromStr;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Instructions that take so many microseconds on an undisturbed core: `cpu:100`.
    Cpu,
    /// Bytes read of memory that no cache holds: `memory-stream:1m`.
    MemoryStream,
    /// The same, drawn from a channel of known bandwidth: `memory-stream-regulated:64k`, or with the rate of the
    /// channel, `memory-stream-regulated:64k@1g`.
    MemoryStreamRegulated,
    /// Random pages touched of a mapped file: `page-touch:16`.
    PageTouch,
    /// Bytes read from a file in order, past the page cache: `disk-sequential:1m`.
    DiskSequential,
    /// Bytes read from a random place of a file, past the page cache: `disk-random:4k`.
    DiskRandom,
    /// Bytes written to a file in order, past the page cache: `disk-write:64k`.
    DiskWrite,
    /// Microseconds asleep while holding the one lock that the process has: `lock:1000`.
    Lock,
    /// Microseconds asleep, holding nothing: `sleep:1000`.
    Sleep,
}

/// What an amount counts, how much there may be, and one that would do.
#[derive(Debug, Clone, Copy)]
struct Unit {
    name: &'static str,
    most: u64,
    example: &'static str,
}

/// Ten seconds: no request of a test takes longer.
const MICROSECONDS: Unit = Unit {
    name: "microseconds",
    most: 10_000_000,
    example: "100",
};
const BYTES: Unit = Unit {
    name: "bytes",
    most: 256 << 20,
    example: "64k",
};
const PAGES: Unit = Unit {
    name: "pages",
    most: 1 << 16,
    example: "16",
};
const REGULATED_BYTES: Unit = Unit {
    example: "64k@1g",
    ..BYTES
};
const RATE: Unit = Unit {
    name: "bytes a second",
    most: 1 << 50,
    example: "64k@1g",
};

const KINDS: [(Kind, &str, Unit); 9] = [
    (Kind::Cpu, "cpu", MICROSECONDS),
    (Kind::MemoryStream, "memory-stream", BYTES),
    (
        Kind::MemoryStreamRegulated,
        "memory-stream-regulated",
        REGULATED_BYTES,
    ),
    (Kind::PageTouch, "page-touch", PAGES),
    (Kind::DiskSequential, "disk-sequential", BYTES),
    (Kind::DiskRandom, "disk-random", BYTES),
    (Kind::DiskWrite, "disk-write", BYTES),
    (Kind::Lock, "lock", MICROSECONDS),
    (Kind::Sleep, "sleep", MICROSECONDS),
];

/// Work of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The kind.
    pub kind: Kind,
    /// Microseconds, bytes or pages.
    pub amount: u64,
    /// Of the regulated channel, where it is said here.
    pub bytes_per_second: Option<u64>,
}

/// What is done for each request of a kind, in this order; empty for nothing (`none`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipe(pub Vec<Work>);

/// Why a text is no recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Steps of one recipe.
const STEPS_MAX: usize = 16;

impl FromStr for Recipe {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.trim() == "none" {
            return Ok(Self::default());
        }
        let steps: Vec<&str> = text.split('+').collect();
        if steps.len() > STEPS_MAX {
            return Err(Error(format!(
                "a request does at most {STEPS_MAX} kinds of work, not {}",
                steps.len()
            )));
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
        let (name, amount) = text.split_once(':').unwrap_or((text, ""));
        let known = KINDS.iter().find(|(_, known, _)| *known == name);
        let &(kind, name, unit) = known.ok_or_else(|| {
            Error(format!(
                "'{text}' is an invalid kind of work: expected none, or any of cpu:MICROSECONDS, memory-stream:BYTES, \
                 memory-stream-regulated:BYTES[@BYTES_PER_SECOND], page-touch:PAGES, disk-sequential:BYTES, \
                 disk-random:BYTES, disk-write:BYTES, lock:MICROSECONDS, sleep:MICROSECONDS joined by +"
            ))
        })?;
        let (amount, rate) = match amount.split_once('@') {
            Some((amount, rate)) if kind == Kind::MemoryStreamRegulated => (amount, Some(rate)),
            _ => (amount, None),
        };
        Ok(Self {
            kind,
            amount: unit.parse(name, amount)?,
            bytes_per_second: rate.map(|rate| RATE.parse(name, rate)).transpose()?,
        })
    }
}

impl Unit {
    fn parse(&self, kind: &str, text: &str) -> Result<u64, Error> {
        let Self {
            name,
            most,
            example,
        } = *self;
        let number = match name.starts_with("bytes") {
            true => parse_bytes(text),
            false => digits(text),
        };
        match number {
            Some(number) if (1..=most).contains(&number) => Ok(number),
            Some(_) => Err(format!("{kind} takes 1 to {most} {name}, not {text}")),
            None => Err(format!(
                "{kind} takes an amount, such as {example}, not '{text}'"
            )),
        }
        .map_err(Error)
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
        let name = KINDS[self.kind as usize].1;
        write!(formatter, "{name}:{}", self.amount)?;
        self.bytes_per_second
            .map_or(Ok(()), |rate| write!(formatter, "@{rate}"))
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
