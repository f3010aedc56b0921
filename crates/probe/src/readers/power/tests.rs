use super::meter::ABSENT;
use super::spec::FileSpec;
use super::*;
use crate::Probe;
use crate::Status;
use crate::readers::tests::{Tree, sample};

fn probes(host: &Host) -> Vec<Probe> {
    build(host)
        .iter()
        .flat_map(|reader| reader.probes())
        .collect()
}

#[test]
fn a_host_without_meters_says_of_each_why() {
    let probes = probes(&Tree::empty().host());
    let names: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "power:rapl_powercap",
            "power:rapl_perf",
            "power:nvml",
            "power:ipmi_dcmi",
            "power:hwmon"
        ]
    );
    for probe in probes {
        assert_eq!(probe.status, Status::Missing);
        assert!(probe.reason.starts_with(ABSENT), "{}", probe.reason);
        assert!(!probe.needs.is_empty());
    }
    let switched_off = Host {
        local_meters: false,
        ..Tree::empty().host()
    };
    assert!(build(&switched_off).is_empty());
}

fn file(path: &std::path::Path, domain: &str) -> MeterSpec {
    MeterSpec::File(FileSpec {
        path: path.to_owned(),
        measured: Measured {
            domain: domain.to_owned(),
            quantity: Quantity::Watts,
            scale: 1.0,
        },
        interval_seconds: 60.0,
    })
}

#[test]
fn a_column_is_one_meters_alone() {
    let tree = Tree::with("watts", "250\n");
    let path = tree.root().join("watts");
    let host = Host {
        local_meters: false,
        meters: vec![
            file(&path, "server"),
            file(&path, "server"),
            file(&path, "rack"),
        ],
        ..tree.host()
    };
    let probes = probes(&host);
    let statuses: Vec<Status> = probes.iter().map(|probe| probe.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Missing, Status::Ok]);
    assert!(
        probes[1].reason.contains("another meter gives"),
        "{}",
        probes[1].reason
    );
}

#[test]
fn meters_cross_as_json() {
    let text = r#"[
        {"kind": "snmp", "address": "192.0.2.7", "port": 161, "community": "public", "interval_seconds": 1,
         "timeout_seconds": 0.5, "readings": [{"oid": "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4",
         "measured": {"domain": "outlet-4", "quantity": "watts", "scale": 1}}]},
        {"kind": "file", "path": "/run/meter", "interval_seconds": 1.0,
         "measured": {"domain": "server", "quantity": "joules", "scale": 1000.0}},
        {"kind": "command", "arguments": ["meter", "--now"], "interval_seconds": 2, "timeout_seconds": 5,
         "measured": {"domain": "server", "quantity": "watts", "scale": 1}}
    ]"#;
    let specs: Vec<MeterSpec> = serde_json::from_str(text).unwrap();
    assert_eq!(specs.len(), 3);
    for spec in &specs {
        assert_eq!(spec.check(), Ok(()));
    }
    assert!(matches!(&specs[0], MeterSpec::Snmp(strip) if strip.interval_seconds == 1.0));
}

#[test]
fn what_cannot_be_of_a_meter_is_refused() {
    let good = |kind: &str, more: &str| {
        format!(
            r#"{{"kind": "{kind}", "interval_seconds": 1, "measured": {{"domain": "server", "quantity": "watts",
            "scale": 1}}, {more}}}"#
        )
    };
    let file = good("file", r#""path": "/run/meter""#);
    let command = good("command", r#""arguments": ["meter"], "timeout_seconds": 1"#);
    let checked = |text: &str| {
        let spec: MeterSpec = serde_json::from_str(text).map_err(|error| error.to_string())?;
        spec.check()
    };
    assert_eq!((checked(&file), checked(&command)), (Ok(()), Ok(())));
    let named = |bytes: usize| checked(&file.replace("server", &"n".repeat(bytes)));
    assert_eq!(named(64), Ok(()));
    assert!(named(65).unwrap_err().contains("not a valid name"));
    for (text, words) in [
        (file.replace("/run/meter", "meter"), "not an absolute path"),
        (file.replace("server", ""), "not a valid name of a domain"),
        (
            file.replace("server", "a\\nb"),
            "not a valid name of a domain",
        ),
        (
            file.replace(r#""scale": 1"#, r#""scale": -1"#),
            "-1 is not a valid scale",
        ),
        (
            file.replace(r#"seconds": 1"#, r#"seconds": 0"#),
            "interval of 0 s",
        ),
        (file.replace("watts", "volts"), "unknown variant `volts`"),
        (
            file.replace("file", "wattmeter"),
            "unknown variant `wattmeter`",
        ),
        (file.replace("path", "paths"), "unknown field `paths`"),
        (command.replace(r#"["meter"]"#, "[]"), "without a program"),
        (
            command.replace(r#"out_seconds": 1"#, r#"out_seconds": 1e9"#),
            "timeout of 1000000000 s",
        ),
    ] {
        let error = checked(&text).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// The processor's counters as both ways give them.
#[test]
fn processors_are_not_counted_twice() {
    let tree = Tree::empty();
    let zone = "sys/class/powercap/intel-rapl:0";
    tree.write(&format!("{zone}/name"), "package-0\n");
    tree.write(&format!("{zone}/energy_uj"), "1000000\n");
    tree.write(&format!("{zone}/max_energy_range_uj"), "262143328850\n");
    tree.write("sys/bus/event_source/devices/power/type", "18\n");
    let names: Vec<String> = probes(&tree.host())
        .into_iter()
        .map(|probe| probe.name)
        .collect();
    assert!(names.contains(&"power:rapl_powercap".to_owned()));
    assert!(!names.contains(&"power:rapl_perf".to_owned()));
}

#[test]
fn energy_of_a_package_wraps_and_grows() {
    let tree = Tree::empty();
    let zone = "sys/class/powercap/intel-rapl:0";
    tree.write(&format!("{zone}/name"), "package-0\n");
    tree.write(&format!("{zone}/max_energy_range_uj"), "262143328850\n");
    tree.write(&format!("{zone}/energy_uj"), "262143000000\n");
    let mut reader = build(&tree.host()).remove(0);
    let column = r#"energy_joules_total{domain="package-0",meter="rapl_powercap"}"#;
    // Not moved yet: a zone that nothing is connected to looks the same.
    assert!(sample(&mut *reader).get(column).is_nan());
    tree.write(&format!("{zone}/energy_uj"), "262143328850\n");
    assert!((sample(&mut *reader).get(column) - 0.32885).abs() < 1e-9);
    tree.write(&format!("{zone}/energy_uj"), "1000000\n");
    assert!((sample(&mut *reader).get(column) - 1.32885).abs() < 1e-9);
    assert_eq!(reader.probes()[0].status, Status::Ok);
    tree.write(&format!("{zone}/energy_uj"), "broken\n");
    assert!(sample(&mut *reader).get(column).is_nan());
    let probe = reader.probes().remove(0);
    assert_eq!(probe.status, Status::Untrusted);
    assert!(
        probe
            .reason
            .contains("energy_uj, line 1: the reading is not a number"),
        "{}",
        probe.reason
    );
}
