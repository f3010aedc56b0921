//! Power meters on trees of machines that have them.

use crate::common::{Copy, Sample, host};
use probe::{Probe, ReaderSet, Status};

/// The columns of a probe, each by its domain and what it gives.
fn domains(probe: &Probe) -> Vec<String> {
    let domain = |column: &String| {
        let (name, labels) = column.split_once('{').unwrap();
        let domain = labels.split('"').nth(1).unwrap();
        format!("{domain} {name}")
    };
    probe.columns.iter().map(domain).collect()
}

fn watts(domain: &str) -> String {
    format!(r#"power_watts{{domain="{domain}",meter="hwmon"}}"#)
}

fn joules(domain: &str, meter: &str) -> String {
    format!(r#"energy_joules_total{{domain="{domain}",meter="{meter}"}}"#)
}

#[test]
fn a_workstation_of_intel_with_the_platforms_counter() {
    let copy = Copy::of("intel-with-psys");
    let mut set = ReaderSet::new(&host(&copy.0, None, None));
    let zone = |zone: &str| format!("sys/class/powercap/{zone}/energy_uj");
    for (name, text) in [
        ("intel-rapl:0", "60294987123"),
        ("intel-rapl:0:0", "21453770012"),
        ("intel-rapl:0:2", "9345861234"),
        // Begins again in this second.
        ("intel-rapl:1", "5000"),
    ] {
        copy.rewrite(&zone(name), |_| format!("{text}\n").into_bytes());
    }
    let row = set.read().to_vec();
    set.refresh_probes();
    let sample = Sample {
        columns: set.columns().to_vec(),
        row,
        probes: set.probes().to_vec(),
    };
    // Once, although the same package is there by its memory-mapped registers too.
    let probe = sample.probe("power:rapl_powercap");
    assert_eq!(
        domains(probe),
        [
            "package-0 energy_joules_total",
            "core-0 energy_joules_total",
            "uncore-0 energy_joules_total",
            "dram-0 energy_joules_total",
            "psys energy_joules_total",
        ]
    );
    let energy = |domain| sample.get(&joules(domain, "rapl_powercap"));
    assert!((energy("package-0") - 1.0).abs() < 1e-9);
    assert!((energy("core-0") - 0.5).abs() < 1e-9);
    assert!((energy("dram-0") - 0.25).abs() < 1e-9);
    // No graphics are in use: its counter stands still, and zero is not what is known of it.
    assert!(energy("uncore-0").is_nan());
    // 262 kJ until it begins again, from 144 kJ: 118 kJ in no time cannot be.
    assert!(energy("psys").is_nan());
    assert!(probe.reason.contains("cannot be true"), "{}", probe.reason);
    assert_eq!(probe.status, Status::Untrusted);
    // What the graphics driver counts; what it limits is no reading.
    assert_eq!(
        domains(sample.probe("power:hwmon")),
        ["i915 energy_joules_total"]
    );
    assert!(!sample.has("rapl_perf"));
}

#[test]
fn a_workstation_of_amd() {
    let sample = Sample::of(&host(crate::common::tree("amd-with-rapl"), None, None));
    assert_eq!(
        domains(sample.probe("power:rapl_powercap")),
        [
            "package-0 energy_joules_total",
            "core-0 energy_joules_total"
        ]
    );
    // Two cards of the same kind, by their means; the package once more is left out.
    assert_eq!(
        domains(sample.probe("power:hwmon")),
        ["amdgpu-PPT power_watts", "amdgpu-PPT-1 power_watts"]
    );
    assert_eq!(sample.get(&watts("amdgpu-PPT")), 31.0);
    assert_eq!(sample.get(&watts("amdgpu-PPT-1")), 12.0);
}

#[test]
fn a_server_of_two_packages_with_a_meter_of_the_whole() {
    let sample = Sample::of(&host(crate::common::tree("server-2-packages"), None, None));
    assert_eq!(
        domains(sample.probe("power:rapl_powercap")),
        [
            "package-0 energy_joules_total",
            "dram-0 energy_joules_total",
            "package-1 energy_joules_total",
            "dram-1 energy_joules_total",
        ]
    );
    assert_eq!(sample.get(&watts("server")), 312.0);
    assert_eq!(sample.get(&watts("pmbus-pin")), 171.0);
    assert_eq!(sample.get(&watts("pmbus-pout1")), 156.5);
    sample.assert_missing("power:nvml", "not present: ");
    sample.assert_missing("power:ipmi_dcmi", "not present: ");
}

#[test]
fn without_the_right_to_powercap_the_counters_are_those_of_perf_events() {
    let copy = Copy::of("server-2-packages");
    for zone in ["0", "0:0", "1", "1:0"] {
        let path = format!("sys/class/powercap/intel-rapl:{zone}/energy_uj");
        std::fs::remove_file(copy.0.join(path)).unwrap();
    }
    let sample = Sample::of(&host(&copy.0, None, None));
    // A recorded tree cannot open them; each way says why it is none.
    sample.assert_missing("power:rapl_powercap", "cannot open");
    sample.assert_missing("power:rapl_perf", "a recorded tree has no counters to open");
}
