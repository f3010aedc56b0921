//! What a tree of processes used in all, so that it never goes back when one of them ends.
//!
//! A process that ended is no longer in `/proc`. If its parent waited for it, the kernel adds what it used to what the
//! parent's children used; if nobody did, or somebody outside of the tree, it is gone. So a process is kept in the sum
//! until its parent is seen to have taken it over or, if that does not happen, for good.

/// CPU time in clock ticks (user, system), major page faults, bytes read and written.
pub(super) type Usage = [u64; 5];
pub(super) const USER: usize = 0;
pub(super) const SYSTEM: usize = 1;
pub(super) const FAULTS: usize = 2;
pub(super) const READ: usize = 3;
pub(super) const WRITTEN: usize = 4;

/// A process in the sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub pid: u32,
    pub parent: u32,
    /// What it and its children that were waited for used, when last read.
    pub usage: Usage,
    /// The CPU time of its children that were waited for, when last read; None before that.
    pub children_ticks: Option<u64>,
    /// By how much that grew with the last reading; what processes that ended are taken from.
    pub growth: u64,
    /// How many readings ago it ended; None if it lives.
    pub ended: Option<u8>,
}

/// The sum over a tree.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Parents before their children, as they were found.
    pub entries: Vec<Entry>,
    /// What processes used that ended without being waited for within the tree.
    kept: Usage,
    highest: Usage,
}

impl Account {
    /// Settles those that ended and returns the sum, after every process was read, parents before children.
    pub(super) fn total(&mut self) -> Usage {
        let mut position = 0;
        while position < self.entries.len() {
            let Some(readings) = self.entries[position].ended else {
                position += 1;
                continue;
            };
            let entry = self.entries[position];
            let used = entry.usage[USER].saturating_add(entry.usage[SYSTEM]);
            match self.heir(entry.parent) {
                Some(heir) if self.entries[heir].growth >= used => {
                    self.entries[heir].growth -= used
                }
                // The parent was read just before it waited: the next reading shows it.
                Some(_) if readings == 0 => {
                    self.entries[position].ended = Some(1);
                    position += 1;
                    continue;
                }
                _ => add(&mut self.kept, &entry.usage),
            }
            let ended = self.entries.remove(position);
            self.pass_on(ended);
        }
        let mut sum = self.kept;
        for entry in &self.entries {
            add(&mut sum, &entry.usage);
        }
        for (highest, value) in self.highest.iter_mut().zip(sum) {
            *highest = value.max(*highest);
        }
        self.highest
    }

    /// The nearest living ancestor within the tree.
    fn heir(&self, mut parent: u32) -> Option<usize> {
        // A chain is at most as long as there are entries; more would be a ring of reused numbers.
        for _ in 0..=self.entries.len() {
            let position = self.entries.iter().position(|entry| entry.pid == parent)?;
            match self.entries[position].ended {
                None => return Some(position),
                Some(_) => parent = self.entries[position].parent,
            }
        }
        None
    }

    /// Children of one that is gone, and that ended as well, are its parent's to wait for.
    fn pass_on(&mut self, gone: Entry) {
        for entry in &mut self.entries {
            if entry.parent == gone.pid && entry.ended.is_some() {
                entry.parent = gone.parent;
            }
        }
    }
}

fn add(sum: &mut Usage, usage: &Usage) {
    for (sum, value) in sum.iter_mut().zip(usage) {
        *sum = sum.saturating_add(*value);
    }
}

#[cfg(test)]
mod tests;
