use super::*;
use crate::readers::tests::Tree;

#[test]
fn a_guest_without_counters_is_told_from_a_lack_of_rights() {
    let tree = Tree::with(
        "proc/cpuinfo",
        "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n",
    );
    tree.write("sys/bus/event_source/devices/software/type", "1\n");
    tree.write("proc/sys/kernel/perf_event_paranoid", "2\n");
    let access = Access::of(&tree.host());
    let reason = access.no_counters().unwrap();
    assert!(
        reason.starts_with("this guest's CPU offers no hardware counters to it"),
        "{reason}"
    );
    tree.write("sys/bus/event_source/devices/cpu/type", "4\n");
    let access = Access {
        is_root: false,
        ..Access::of(&tree.host())
    };
    assert_eq!(access.no_counters(), None);
    let reason = access.explain(Errno::ACCESS, true);
    assert!(
        reason.contains("perf_event_paranoid is 2") && reason.contains("paranoid=0"),
        "{reason}"
    );
    let reason = access.explain(Errno::PERM, false);
    assert!(reason.contains("seccomp"), "{reason}");
    let root = Access {
        is_root: true,
        ..access
    };
    assert!(
        root.explain(Errno::PERM, true)
            .contains("although this is root")
    );
}

#[test]
fn what_sys_hides_is_told_by_the_error() {
    let access = Access::of(&Tree::empty().host());
    assert_eq!((access.no_counters(), access.paranoid), (None, None));
    assert!(
        access
            .explain(Errno::NOENT, true)
            .contains("drives no hardware counters")
    );
    assert!(access.explain(Errno::MFILE, true).contains("ulimit"));
}

#[test]
fn core_counters_by_name() {
    for name in ["cpu", "cpu_core", "armv8_pmuv3_0", "armv8_neoverse_n1"] {
        assert!(is_core_counter(name), "{name}");
    }
    for name in [
        "cpum_cf",
        "software",
        "msr",
        "amd_df",
        "uncore_imc_0",
        "arm_cmn_0",
        "power",
    ] {
        assert!(!is_core_counter(name), "{name}");
    }
}
