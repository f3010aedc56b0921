//! A file of the user's that holds a number: what another meter's program writes.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::background::Pace;
use super::sheet::Sheet;
use super::spec::Measured;
use super::{About, Found, Meter};
use crate::readers::Reader;

const NEEDS: &str = "a file whose first line is a number";

/// A number is shorter.
pub(super) const LONGEST_NUMBER: usize = 64;

struct NumberFile {
    path: PathBuf,
    measured: Measured,
}

pub(super) fn build(path: &Path, measured: &Measured, interval: Duration) -> Box<dyn Reader> {
    let mut about = About::new("file", NEEDS);
    about.which = measured.domain.clone();
    let found = Found {
        about,
        channels: vec![measured.channel()],
        meter: Box::new(NumberFile {
            path: path.to_owned(),
            measured: measured.clone(),
        }),
    };
    found.beside(Pace {
        interval,
        share: 2,
        patience: Duration::from_secs(3),
    })
}

impl NumberFile {
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

impl Meter for NumberFile {
    fn read(&mut self, sheet: &mut Sheet) {
        match self.number() {
            Ok(number) => sheet.say(0, self.measured.number(number), None),
            Err(why) => sheet.fail(|| why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Quantity;
    use super::*;
    use crate::Status;
    use crate::readers::testing::{Tree, sample};
    use proptest::prelude::*;

    fn measured(quantity: Quantity, scale: f64) -> Measured {
        Measured {
            domain: "server".to_owned(),
            quantity,
            scale,
        }
    }

    fn meter(path: &Path, quantity: Quantity, scale: f64) -> Box<dyn Reader> {
        let meter = NumberFile {
            path: path.to_owned(),
            measured: measured(quantity, scale),
        };
        let found = Found {
            about: About::new("file", NEEDS),
            channels: vec![meter.measured.channel()],
            meter: Box::new(meter),
        };
        found.at_each_tick()
    }

    #[test]
    fn the_first_line_is_the_number() {
        let tree = Tree::empty();
        let path = tree.write("watts", "0.2505e3\nmore\n");
        let mut reader = meter(&path, Quantity::Watts, 0.5);
        let column = r#"power_watts{domain="server",meter="file"}"#;
        assert_eq!(sample(&mut *reader).get(column), 125.25);
        // Written anew, without an end of line.
        std::fs::remove_file(&path).unwrap();
        tree.write("watts", "300");
        assert_eq!(sample(&mut *reader).get(column), 150.0);
    }

    #[test]
    fn joules_count_from_the_start_and_a_counter_set_back_is_told() {
        let tree = Tree::empty();
        let path = tree.write("kilojoules", "12\n");
        let mut reader = meter(&path, Quantity::Joules, 1000.0);
        let column = r#"energy_joules_total{domain="server",meter="file"}"#;
        assert_eq!(sample(&mut *reader).get(column), 0.0);
        tree.write("kilojoules", "15\n");
        assert_eq!(sample(&mut *reader).get(column), 3000.0);
        tree.write("kilojoules", "1\n");
        assert!(sample(&mut *reader).get(column).is_nan());
        tree.write("kilojoules", "2\n");
        assert_eq!(sample(&mut *reader).get(column), 4000.0);
        assert_eq!(reader.probes()[0].status, Status::Untrusted);
    }

    #[test]
    fn what_is_no_number_is_missing_with_path_and_line() {
        let tree = Tree::empty();
        let path = tree.write("watts", "");
        let long = "1".repeat(LONGEST_NUMBER + 1);
        for text in ["", "\n", "12 W\n", "nan\n", "inf\n", "1e999\n", &long] {
            tree.write("watts", text);
            let mut reader = meter(&path, Quantity::Watts, 1.0);
            assert!(sample(&mut *reader).0[0].1.is_nan());
            let reason = &reader.probes()[0].reason;
            let place = format!("{}, line 1: ", path.display());
            assert!(reason.starts_with(&place), "{text}: {reason}");
        }
        for path in ["absent", ""] {
            let mut reader = meter(&tree.root().join(path), Quantity::Watts, 1.0);
            assert!(sample(&mut *reader).0[0].1.is_nan());
            assert_eq!(reader.probes()[0].status, Status::Untrusted);
        }
    }

    #[test]
    fn a_file_is_read_beside_the_ticks() {
        let tree = Tree::empty();
        let path = tree.write("watts", "250\n");
        let mut reader = build(
            &path,
            &measured(Quantity::Watts, 1.0),
            Duration::from_secs(60),
        );
        assert_eq!(sample(&mut *reader).0[0].1, 250.0);
        assert_eq!(reader.probes()[0].name, "power:file:server");
        let absent = tree.root().join("absent");
        let reader = build(
            &absent,
            &measured(Quantity::Watts, 1.0),
            Duration::from_millis(50),
        );
        let probe = reader.probes().remove(0);
        assert_eq!(probe.status, Status::Missing);
        assert!(
            probe.reason.contains("absent: No such file"),
            "{}",
            probe.reason
        );
    }

    proptest! {
        #[test]
        fn any_line_is_a_number_or_none(line: Vec<u8>) {
            prop_assert!(number(&line).is_none_or(f64::is_finite));
            prop_assert!(shorten(&line).chars().all(|character| !character.is_control()));
        }
    }
}
