use super::*;

#[test]
fn whoever_has_no_such_parent_sleeps() {
    stay_awake(Pid::as_raw(getppid()) + 1);
}
