use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};

#[test]
fn frequencies_are_hertz_and_cores_in_order() {
    let tree = Tree::empty();
    for core in [0, 2, 10] {
        let path = format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        tree.write(&path, &format!("{}\n", 2_000_000 + core));
    }
    tree.write("sys/devices/system/cpu/cpufreq/ondemand/x", "");
    tree.write("sys/devices/system/cpu/cpu1/topology/core_id", "1\n");
    let mut reader = build(&tree.host()).remove(0);
    let row = sample(&mut *reader);
    assert_eq!(row.get(r#"cpu_frequency_hertz{core="2"}"#), 2_000_002_000.0);
    let columns: Vec<_> = row.0.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        columns,
        [
            r#"cpu_frequency_hertz{core="0"}"#,
            r#"cpu_frequency_hertz{core="2"}"#,
            r#"cpu_frequency_hertz{core="10"}"#
        ]
    );
}

#[test]
fn guests_have_none() {
    assert_eq!(
        build(&Tree::empty().host())[0].probes().remove(0).status,
        Status::Missing
    );
}
