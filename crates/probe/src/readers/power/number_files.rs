//! Files of the kernel's that each hold one number: watts, or a counter of energy.

use super::meter::Meter;
use super::sheet::Sheet;
use crate::parse;
use crate::source::{Source, complaints};

/// One of them.
pub(super) struct NumberFile {
    pub source: Source,
    /// What one is, in the units of the channel.
    pub scale: f64,
    /// Where a counter begins again.
    pub range: Option<f64>,
}

impl Meter for Vec<NumberFile> {
    fn read(&mut self, sheet: &mut Sheet) {
        for (channel, file) in self.iter_mut().enumerate() {
            file.source.read(|text| {
                let number = parse::only_number(text, "the reading")?;
                sheet.say(channel, number as f64 * file.scale, file.range);
                Ok(())
            });
        }
    }

    fn complaint(&self) -> String {
        complaints(self.iter().map(|file| &file.source))
    }
}
