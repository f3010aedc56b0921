use super::*;

/// Each test has a thread of its own beside that of the program.
#[test]
fn a_process_of_several_threads_does_not_go_to_the_background() {
    let options = ProcessOptions {
        is_daemon: true,
        ..ProcessOptions::default()
    };
    let (process, text) = (std::process::id(), "to the background: another thread runs");
    let refused = prepare(&options)
        .map(drop)
        .map_err(|error| error.to_string());
    assert_eq!(std::process::id(), process);
    assert!(refused.is_err_and(|error| error.contains(text)));
}

#[test]
fn users_are_found_by_name() {
    assert_eq!(find_user(c"root"), Some((0, 0)));
    assert_eq!(find_user(c"nobody at all"), None);
}
