//! A file of the user's that holds a number: what another meter's program writes.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use super::background::Pace;
use super::found::Found;
use super::meter::{About, Meter};
use super::sheet::Sheet;
use super::spec::{FileSpec, duration};
use crate::readers::Reader;

const NEEDS: &str = "a file whose first line is a number";

/// A number is shorter.
pub(super) const LONGEST_NUMBER: usize = 64;

pub(super) fn build(spec: &FileSpec) -> Box<dyn Reader> {
    let found = Found {
        about: About::new("file", NEEDS).of(&spec.measured.domain),
        channels: vec![spec.measured.channel()],
        meter: Box::new(spec.clone()),
    };
    found.in_background(Pace {
        interval: duration(spec.interval_seconds),
        share: 2,
        patience: Duration::from_secs(3),
    })
}

impl FileSpec {
    fn number(&self) -> Result<f64, String> {
        let shown = self.path.display();
        // Opened anew: whoever writes it may put another in its place. Without waiting for a writer of a pipe.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&self.path)
            .map_err(|error| format!("cannot open {shown}: {error}"))?;
        let is_file = file.metadata().is_ok_and(|found| found.is_file());
        if !is_file {
            return Err(format!("{shown} is no file"));
        }
        let line = first_line(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
        number(&line)
            .ok_or_else(|| format!("{shown}, line 1: '{}' is not a number", shorten(&line)))
    }
}

/// The first line, or as much of it as a number could be and a little more.
fn first_line(file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LONGEST_NUMBER as u64 + 1)
        .read_to_end(&mut bytes)?;
    if let Some(end) = memchr::memchr(b'\n', &bytes) {
        bytes.truncate(end);
    }
    Ok(bytes)
}

/// A line that is a number and nothing else.
pub(super) fn number(line: &[u8]) -> Option<f64> {
    if line.len() > LONGEST_NUMBER {
        return None;
    }
    let number: f64 = std::str::from_utf8(line).ok()?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

/// A line as it can be shown.
pub(super) fn shorten(line: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(line);
    let mut shown: String = text
        .trim()
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.trim().chars().count() > SHOWN {
        shown.push_str("...");
    }
    shown
}

impl Meter for FileSpec {
    fn read(&mut self, sheet: &mut Sheet) {
        match self.number() {
            Ok(number) => sheet.say(0, self.measured.number(number), None),
            Err(why) => sheet.fail(|| why),
        }
    }
}

#[cfg(test)]
mod tests;
