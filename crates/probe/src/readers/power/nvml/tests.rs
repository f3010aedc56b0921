use super::*;
use crate::readers::tests::{Sample, Tree, sample};
use std::path::PathBuf;
use std::process::Command;

/// The library that stands in for NVIDIA's, with what it is to be like; None where there is no C compiler.
fn simulator(tree: &Tree, options: &[&str]) -> Option<PathBuf> {
    let library = tree.root().join("libnvidia-ml.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulators/nvml.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .args(options)
        .arg(source)
        .output();
    match compiled {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            Some(library)
        }
        Err(_) => {
            eprintln!("skipped: no C compiler (cc)");
            None
        }
    }
}

fn twice(library: &Path) -> Sample {
    let mut reader = find(library).unwrap().at_each_tick();
    sample(&mut *reader);
    sample(&mut *reader)
}

#[test]
fn accelerators_count_their_energy() {
    let tree = Tree::empty();
    let Some(library) = simulator(&tree, &["-DDEVICES=2"]) else {
        return;
    };
    // The simulator counts 7 J a reading for the first, 14 J for the second.
    let row = twice(&library);
    let joules = |gpu| {
        row.get(&format!(
            r#"energy_joules_total{{domain="gpu-{gpu}",meter="nvml"}}"#
        ))
    };
    assert!((joules(0) - 7.0).abs() < 1e-9 && (joules(1) - 14.0).abs() < 1e-9);
}

#[test]
fn one_that_does_not_count_says_its_power() {
    let tree = Tree::empty();
    let Some(library) = simulator(&tree, &["-DDEVICES=1", "-DNO_ENERGY"]) else {
        return;
    };
    assert_eq!(
        twice(&library).get(r#"power_watts{domain="gpu-0",meter="nvml"}"#),
        71.5
    );
}

#[test]
fn a_driver_that_fails_says_so_in_its_words() {
    let tree = Tree::empty();
    let Some(library) = simulator(&tree, &["-DDEVICES=1", "-DNO_DRIVER"]) else {
        return;
    };
    let failure = find(&library).err().unwrap().to_string();
    assert!(
        failure.contains("cannot be used") && failure.contains("not loaded"),
        "{failure}"
    );
    let tree = Tree::empty();
    let none = simulator(&tree, &["-DDEVICES=0"]).unwrap();
    assert!(find(&none).err().unwrap().to_string().starts_with(ABSENT));
}

#[test]
fn a_host_without_the_library_has_none() {
    let tree = Tree::empty();
    let failure = find(&tree.root().join("libnvidia-ml.so.1")).err().unwrap();
    assert!(
        failure
            .to_string()
            .starts_with("not present: no NVIDIA driver"),
        "{failure}"
    );
}

#[test]
fn a_library_that_is_another_is_refused() {
    let failure = find(Path::new("libc.so.6")).err().unwrap().to_string();
    assert!(
        failure.contains("libc.so.6 cannot be used") && failure.contains("nvmlInit_v2"),
        "{failure}"
    );
}

#[test]
fn a_recorded_tree_has_no_accelerator_whatever_this_host_has() {
    let tree = Tree::empty();
    let probe = build(&tree.host()).probes().remove(0);
    assert_eq!(
        probe.reason,
        "not present: a recorded tree has no accelerator to ask"
    );
}
