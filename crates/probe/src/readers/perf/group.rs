//! A group of events that are counted together, and how counts are scaled when the kernel could not count all the time.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::open::{self, Event, Target};

/// A core has few counters, some of which the kernel may use itself: more events than this take turns.
pub(super) const MOST_EVENTS: usize = 4;

/// Events counted together.
pub(super) struct Group {
    leader: OwnedFd,
    /// Kept open: an event counts as long as its descriptor is open.
    _members: Vec<OwnedFd>,
    events: usize,
    previous: Counts,
}

/// What a group of events says when it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    /// Nanoseconds in which the group should have counted, and in which it did.
    enabled: u64,
    running: u64,
    values: [u64; MOST_EVENTS],
}

/// What happened since the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Progress {
    /// The growth of each event, scaled up for the time in which the group did not count.
    pub values: [f64; MOST_EVENTS],
    pub enabled: u64,
    pub running: u64,
}

impl Group {
    /// Opens and starts `events` (1 to 4 of them).
    pub(super) fn open(events: &[Event], target: Target, user_only: bool) -> Result<Self, Errno> {
        let (first, rest) = events.split_first().ok_or(Errno::INVAL)?;
        if events.len() > MOST_EVENTS {
            return Err(Errno::INVAL);
        }
        let leader = open::open(*first, target, user_only, None)?;
        let members = rest
            .iter()
            .map(|event| open::open(*event, target, user_only, Some(&leader)))
            .collect::<Result<Vec<_>, _>>()?;
        open::enable(&leader)?;
        Ok(Self {
            leader,
            _members: members,
            events: events.len(),
            previous: Counts::default(),
        })
    }

    /// What happened since the last reading; None if the group cannot be read, as on a CPU that went offline.
    pub(super) fn advance(&mut self) -> Option<Progress> {
        // Number of events, time enabled, time running, then the values (perf_event_open(2), PERF_FORMAT_GROUP).
        let mut bytes = [0; (3 + MOST_EVENTS) * size_of::<u64>()];
        let length = rustix::io::read(&self.leader, &mut bytes).ok()?;
        let counts = parse(&bytes[..length], self.events)?;
        Some(self.previous.step(counts))
    }
}

fn parse(bytes: &[u8], events: usize) -> Option<Counts> {
    let (words, _) = bytes.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
    if words.next()? != events as u64 {
        return None;
    }
    let mut counts = Counts {
        enabled: words.next()?,
        running: words.next()?,
        ..Counts::default()
    };
    for value in &mut counts.values[..events] {
        *value = words.next()?;
    }
    Some(counts)
}

impl Counts {
    /// The progress from `self` to `now`, which takes its place. Where the group did not run at all, nothing is known
    /// of that time: it is made up for when the group runs again.
    fn step(&mut self, now: Counts) -> Progress {
        let enabled = now.enabled.saturating_sub(self.enabled);
        let running = now.running.saturating_sub(self.running);
        if running == 0 {
            return Progress {
                enabled,
                ..Progress::default()
            };
        }
        let scale = enabled.max(running) as f64 / running as f64;
        let mut values = [0.0; MOST_EVENTS];
        for ((value, now), before) in values.iter_mut().zip(now.values).zip(self.values) {
            *value = now.saturating_sub(before) as f64 * scale;
        }
        *self = now;
        Progress {
            values,
            enabled,
            running,
        }
    }
}

#[cfg(test)]
mod tests;
