use super::*;
use crate::readers::tests::Tree;

fn write(tree: &Tree, id: u32) {
    let folder = format!("proc/7/task/{id}");
    tree.write(&format!("{folder}/schedstat"), "5 10 1\n");
    let switches = "voluntary_ctxt_switches:\t2\nnonvoluntary_ctxt_switches:\t3\n";
    tree.write(&format!("{folder}/status"), switches);
}

/// Meets these threads in one scan.
fn scan(threads: &mut Threads, opener: &mut Opener, ids: impl Iterator<Item = u32>) {
    threads.begin_scan();
    for id in ids {
        threads.meet(opener, 7, id);
    }
    threads.end_scan();
}

fn open_files(threads: &Threads) -> usize {
    let is_open = |thread: &&Thread| thread.schedstat.is_some() && thread.status.is_some();
    threads.threads.iter().filter(is_open).count()
}

/// A program of thousands of threads must not use up the files that a process may have open.
#[test]
fn files_of_64_threads_stay_open_and_those_that_end_make_room() {
    let tree = Tree::empty();
    for id in 0..100 {
        write(&tree, id);
    }
    let mut opener = Opener::new(tree.root());
    let mut threads = Threads::new();
    scan(&mut threads, &mut opener, 0..63);
    assert_eq!(open_files(&threads), 63);
    scan(&mut threads, &mut opener, 0..70);
    assert_eq!((open_files(&threads), threads.threads.len()), (64, 70));
    // Ten with open files end; what they waited stays, and ten new ones have theirs open.
    scan(&mut threads, &mut opener, 10..70);
    assert_eq!((open_files(&threads), threads.threads.len()), (54, 60));
    scan(&mut threads, &mut opener, 10..100);
    assert_eq!((open_files(&threads), threads.threads.len()), (64, 90));
    assert_eq!(threads.total(&mut opener, 100), [1000, 200, 300]);
    assert_eq!(threads.left_out, 0);
}
