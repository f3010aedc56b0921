//! Byte-level parsing of the kernel's text files, without allocation.

use crate::error::{Fault, Problem};

/// The lines of a file. The kernel ends every line; one that is not ended was cut off.
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    number: u32,
}

/// A line without its end, and its number, counted from 1.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub text: &'a [u8],
    pub number: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            number: 0,
        }
    }

    /// The next line, or None at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'a>>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        let Some(end) = memchr::memchr(b'\n', self.rest) else {
            return Err(Fault {
                line: self.number,
                item: "the line",
                problem: Problem::CutOff,
            });
        };
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(Some(Line {
            text,
            number: self.number,
        }))
    }

    /// The next line, which the format says is there.
    pub(crate) fn expect(&mut self, item: &'static str) -> Result<Line<'a>, Fault> {
        let mut missing = self.missing(item);
        missing.line = self.number.saturating_add(1);
        self.next()?.ok_or(missing)
    }

    /// What was looked for is not in the file, of which the last line was read.
    pub(crate) fn missing(&self, item: &'static str) -> Fault {
        Fault {
            line: self.number.max(1),
            item,
            problem: match self.number {
                0 => Problem::Empty,
                _ => Problem::Missing,
            },
        }
    }
}

impl<'a> Line<'a> {
    /// The fields of the line, separated by spaces or tabs.
    pub(crate) fn fields(self) -> Fields<'a> {
        Fields {
            rest: self.text,
            line: self.number,
        }
    }

    pub(crate) fn fault(self, item: &'static str, problem: Problem) -> Fault {
        Fault {
            line: self.number,
            item,
            problem,
        }
    }
}

/// Fields of a line, in order.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    line: u32,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(text: &'a [u8], line: u32) -> Self {
        Self { rest: text, line }
    }

    /// The next field as bytes.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|&byte| !is_blank(byte))?;
        let rest = &self.rest[start..];
        let end = rest
            .iter()
            .position(|&byte| is_blank(byte))
            .unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }

    /// The next field as an unsigned number.
    #[inline]
    pub(crate) fn number(&mut self, item: &'static str) -> Result<u64, Fault> {
        let line = self.line;
        let field = self.next().ok_or(Problem::Missing);
        field.and_then(unsigned).map_err(|problem| Fault {
            line,
            item,
            problem,
        })
    }

    /// Skips fields that are not of interest; the next one tells whether they were there.
    pub(crate) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// An unsigned decimal number, and nothing else.
#[inline]
pub(crate) fn unsigned(text: &[u8]) -> Result<u64, Problem> {
    if text.is_empty() {
        return Err(Problem::Missing);
    }
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Problem::NotANumber);
        }
        value = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit)))
            .ok_or(Problem::TooLarge)?;
    }
    Ok(value)
}

/// The number that is all of a file, such as `scaling_cur_freq`.
pub(crate) fn only_number(text: &[u8], item: &'static str) -> Result<u64, Fault> {
    Lines::new(text).expect(item)?.fields().number(item)
}

/// The numbers of a list of CPUs, as in `/sys/devices/system/cpu/present`: `0-3,8`.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    // The kernel's own limit (CONFIG_NR_CPUS) is 8192: a longer range is not a list of CPUs.
    const LIMIT: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= LIMIT {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests;
