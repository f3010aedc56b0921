use super::*;

#[test]
fn labels_are_sorted_and_quoted() {
    assert_eq!(column("interrupts_total", &[]), "interrupts_total");
    assert_eq!(
        column(
            "cpu_core_seconds_total",
            &[("state", "user"), ("core", "0")]
        ),
        r#"cpu_core_seconds_total{core="0",state="user"}"#
    );
    assert_eq!(
        column("a", &[("b", "say \"\\\"\n")]),
        "a{b=\"say \\\"\\\\\\\"\\n\"}"
    );
}

#[test]
fn long_lists_are_shortened() {
    let names: Vec<String> = (0..6).map(|number| number.to_string()).collect();
    assert_eq!(some_of(&names[..2]), "0, 1");
    assert_eq!(some_of(&names), "0, 1, 2, 3 and 2 more");
}

#[test]
fn a_missing_probe_stays_missing_when_more_is_found_wrong() {
    let probe = Probe::new("disk", "", vec![])
        .missing("no disks")
        .untrusted("odd");
    assert_eq!(
        (probe.status, probe.reason.as_str()),
        (Status::Missing, "no disks; odd")
    );
}
