//! A meter that was found, and the two ways to read it: at each tick, or on a thread of its own.

use super::background::{Background, Pace};
use super::meter::{About, Meter};
use super::sheet::{Channel, Sheet};
use crate::clock;
use crate::probes::{Probe, join};
use crate::readers::Reader;

/// A meter that was found, before it is read.
pub(super) struct Found {
    pub about: About,
    pub channels: Vec<Channel>,
    pub meter: Box<dyn Meter>,
}

impl Found {
    /// To be read at each tick.
    pub fn at_each_tick(self) -> Box<dyn Reader> {
        let sheet = Sheet::new(self.about.meter, &self.channels);
        Box::new(Direct {
            about: self.about,
            meter: self.meter,
            sheet,
        })
    }

    /// To be read by a thread of its own.
    pub fn in_background(self, pace: Pace) -> Box<dyn Reader> {
        let sheet = Sheet::new(self.about.meter, &self.channels);
        let columns = sheet.columns().to_vec();
        match Background::start(self.meter, sheet, pace) {
            Ok(background) if background.has_answered() => Box::new(InBackground {
                about: self.about,
                columns,
                pace,
                background,
            }),
            Ok(background) => {
                let (complaint, _) = background.account();
                self.about.probe(columns).missing_reader(complaint)
            }
            Err(error) => self.about.missing(error.to_string()),
        }
    }
}

/// A meter that a tick reads itself.
struct Direct {
    about: About,
    meter: Box<dyn Meter>,
    sheet: Sheet,
}

impl Reader for Direct {
    fn probes(&self) -> Vec<Probe> {
        let complaint = join(self.meter.complaint(), &self.sheet.complaint());
        let probe = self.about.probe(self.sheet.columns().to_vec());
        vec![probe.untrusted_if(complaint)]
    }

    fn read(&mut self, row: &mut [f64]) {
        self.sheet.begin(clock::monotonic());
        self.meter.read(&mut self.sheet);
        self.sheet.write(row);
    }
}

/// A meter that is read beside the ticks.
struct InBackground {
    about: About,
    columns: Vec<String>,
    pace: Pace,
    background: Background,
}

impl Reader for InBackground {
    fn probes(&self) -> Vec<Probe> {
        let (complaint, seconds) = self.background.account();
        let mut probe = self.about.probe(self.columns.clone());
        probe.note(format!(
            "read every {} on a thread of its own, which takes {}",
            in_words(self.pace.interval.as_secs_f64()),
            in_words(seconds)
        ));
        vec![probe.untrusted_if(complaint)]
    }

    fn read(&mut self, row: &mut [f64]) {
        self.background.write(row, clock::monotonic());
    }
}

fn in_words(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds} s")
    }
}
