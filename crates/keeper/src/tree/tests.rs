use super::*;

const REST: &str = "1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";

#[test]
fn parses_commands_with_spaces_and_parentheses() {
    let read = |text: String| parse_stat(text.as_bytes());
    let expected = Process {
        parent: 7,
        start_time: 4242,
        is_zombie: false,
    };
    assert_eq!(read(format!("12 (cat) S 7 {REST}")), Some(expected));
    assert_eq!(
        read(format!("12 (a) Z 1 (b c)) S 7 {REST}")),
        Some(expected)
    );
    assert_eq!(
        read(format!("12 () Z 7 {REST}")),
        Some(Process {
            is_zombie: true,
            ..expected
        })
    );
    assert_eq!(parse_stat(b"12 (\xff) S 7 "), None);
    assert_eq!(parse_stat(b""), None);
    assert_eq!(parse_stat(b"12 (cat"), None);
}

#[test]
fn finds_all_below_and_nothing_beside() {
    let process = |parent| Process {
        parent,
        start_time: 0,
        is_zombie: false,
    };
    let tree = HashMap::from([
        (1, process(0)),
        (10, process(1)),
        (11, process(10)),
        (12, process(11)),
        (13, process(10)),
        (20, process(1)),
        // A circle, as a snapshot taken over time could show.
        (30, process(31)),
        (31, process(30)),
    ]);
    let mut found = descendants(&tree, 10);
    found.sort_unstable();
    assert_eq!(found, [11, 12, 13]);
    assert_eq!(descendants(&tree, 20), []);
    assert_eq!(descendants(&tree, 30).len(), 2);
}

#[test]
fn reads_this_process() {
    let me = getpid().as_raw_nonzero().get();
    let processes = read_processes(Path::new("/proc"));
    assert_eq!(
        processes.get(&me).copied(),
        read_process(Path::new("/proc"), me)
    );
    assert!(processes.contains_key(&me));
}
