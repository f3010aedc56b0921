//! Lines of a table that are known by a name, such as disks and network interfaces.

use crate::probes::{Probe, some_of};

/// The place of what `is` the line that was read: usually the one after the last.
pub(super) fn position<T>(known: &[T], expected: usize, is: impl Fn(&T) -> bool) -> Option<usize> {
    match known.get(expected) {
        Some(next) if is(next) => Some(expected),
        _ => known.iter().position(is),
    }
}

/// Names that came after the start, and have no columns; a bounded number of them.
#[derive(Default)]
pub(super) struct Late(Vec<String>);

impl Late {
    /// Remembers a name, unless it is of something that has no columns anyway.
    pub(super) fn note(&mut self, name: &[u8], is_ignored: impl Fn(&str) -> bool) {
        const MOST: usize = 16;
        let name = String::from_utf8_lossy(name);
        let ignored =
            name.is_empty() || is_ignored(&name) || self.0.iter().any(|known| *known == name);
        if !ignored && self.0.len() < MOST {
            self.0.push(name.into_owned());
        }
    }

    pub(super) fn tell(&self, probe: &mut Probe) {
        if !self.0.is_empty() {
            probe.note(format!(
                "appeared after the start and not sampled: {}",
                some_of(&self.0)
            ));
        }
    }
}
