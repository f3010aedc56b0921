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
