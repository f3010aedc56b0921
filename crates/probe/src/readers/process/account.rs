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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(pid: u32, parent: u32, ticks: u64) -> Entry {
        Entry {
            pid,
            parent,
            usage: [ticks, 0, 0, 0, 0],
            children_ticks: Some(0),
            growth: 0,
            ended: None,
        }
    }

    /// A reading of a living process: its own ticks, and those of children that it waited for.
    fn read(account: &mut Account, pid: u32, own: u64, children: u64) {
        let entry = account
            .entries
            .iter_mut()
            .find(|entry| entry.pid == pid)
            .unwrap();
        entry.growth = children - entry.children_ticks.unwrap();
        entry.children_ticks = Some(children);
        entry.usage[USER] = own + children;
    }

    fn end(account: &mut Account, pid: u32) {
        account
            .entries
            .iter_mut()
            .find(|entry| entry.pid == pid)
            .unwrap()
            .ended = Some(0);
    }

    fn tree() -> Account {
        Account {
            entries: vec![entry(1, 0, 100), entry(2, 1, 50), entry(3, 2, 7)],
            ..Account::default()
        }
    }

    #[test]
    fn a_child_that_was_waited_for_is_in_its_parent() {
        let mut account = tree();
        assert_eq!(account.total()[USER], 157);
        read(&mut account, 1, 100, 0);
        read(&mut account, 2, 50, 8);
        end(&mut account, 3);
        assert_eq!(account.total()[USER], 158);
        assert_eq!(account.entries.len(), 2);
    }

    #[test]
    fn a_child_is_not_counted_twice_when_the_parent_was_read_before_it_waited() {
        let mut account = tree();
        account.total();
        read(&mut account, 2, 50, 0);
        end(&mut account, 3);
        assert_eq!(account.total()[USER], 157);
        read(&mut account, 2, 51, 7);
        assert_eq!(account.total()[USER], 158);
    }

    #[test]
    fn a_child_that_nobody_in_the_tree_waited_for_is_kept() {
        let mut account = tree();
        account.total();
        end(&mut account, 3);
        for _ in 0..3 {
            read(&mut account, 2, 50, 0);
            assert_eq!(account.total()[USER], 157);
        }
        assert_eq!(account.entries.len(), 2);
        // Its parent died before it: whoever is outside waits for it.
        let mut account = tree();
        account.entries[2].parent = 99;
        end(&mut account, 3);
        assert_eq!(account.total()[USER], 157);
        assert_eq!(account.entries.len(), 2);
    }

    #[test]
    fn two_generations_that_end_together_are_inherited() {
        let mut account = tree();
        account.total();
        read(&mut account, 1, 100, 57);
        end(&mut account, 2);
        end(&mut account, 3);
        assert_eq!(account.total()[USER], 157);
        assert_eq!(account.entries.len(), 1);
    }

    proptest! {
        /// Processes of a tree work, and end in any order, waited for at once or a reading later.
        #[test]
        fn the_sum_is_exact_and_never_goes_back(steps in prop::collection::vec((0u64..20, 0u64..20, 0u8..4), 1..30)) {
            let mut account = Account { entries: vec![entry(1, 0, 0)], ..Account::default() };
            let (mut root, mut child, mut waited, mut truth, mut next_pid) = (0, None, 0, 0, 2);
            let mut late = 0;
            let mut before = 0;
            for (root_work, child_work, what) in steps {
                root += root_work;
                truth += root_work;
                waited += std::mem::take(&mut late);
                match (child, what) {
                    (None, 0) => {
                        account.entries.push(entry(next_pid, 1, 0));
                        child = Some((next_pid, 0));
                        next_pid += 1;
                    }
                    (Some((pid, used)), 1) => {
                        waited += used;
                        end(&mut account, pid);
                        child = None;
                    }
                    (Some((pid, used)), 2) => {
                        late = used;
                        end(&mut account, pid);
                        child = None;
                    }
                    (Some((pid, used)), _) => {
                        child = Some((pid, used + child_work));
                        truth += child_work;
                        read(&mut account, pid, used + child_work, 0);
                    }
                    _ => {}
                }
                read(&mut account, 1, root, waited);
                let total = account.total()[USER];
                prop_assert_eq!(total, truth);
                prop_assert!(total >= before);
                before = total;
            }
        }

        #[test]
        fn rings_of_parents_end(parents in prop::collection::vec((1u32..5, any::<bool>()), 1..5)) {
            let mut account = Account::default();
            for (pid, (parent, ended)) in (1..).zip(parents) {
                let ended = ended.then_some(0);
                account.entries.push(Entry { ended, ..entry(pid, parent, 1) });
            }
            account.total();
            account.total();
        }
    }
}
