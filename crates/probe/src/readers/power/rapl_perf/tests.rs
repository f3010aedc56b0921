use super::*;
use crate::readers::tests::Tree;
use crate::{Status, readers::tests::sample};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{PipeWriter, Write, pipe};

const SCALE: &str = "2.3283064365386962890625e-10\n";

/// Two packages of which CPU 0 and CPU 28 answer, with energy of package and memory.
fn server() -> Tree {
    let tree = Tree::with(&format!("{FOLDER}/type"), "18\n");
    tree.write(&format!("{FOLDER}/cpumask"), "0,28\n");
    for (event, code) in [("energy-pkg", "0x02"), ("energy-ram", "0x03")] {
        let path = format!("{FOLDER}/events/{event}");
        tree.write(&path, &format!("event={code}\n"));
        tree.write(&format!("{path}.scale"), SCALE);
        tree.write(&format!("{path}.unit"), "Joules\n");
    }
    for (cpu, package) in [(0, 0), (28, 1)] {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        tree.write(&path, &format!("{package}\n"));
    }
    tree
}

thread_local! {
    static OPENED: RefCell<HashMap<(u32, u64, u32), PipeWriter>> = RefCell::default();
}

/// A pipe in the place of each event.
fn pipes(kind: u32, config: u64, cpu: u32) -> Result<OwnedFd, Errno> {
    let (reader, writer) = pipe().unwrap();
    OPENED.with_borrow_mut(|opened| opened.insert((kind, config, cpu), writer));
    Ok(reader.into())
}

fn count(config: u64, cpu: u32, joules: f64) {
    let count = (joules * f64::from(2_u32.pow(16)).powi(2)) as u64;
    OPENED.with_borrow_mut(|opened| {
        let event = opened.get_mut(&(18, config, cpu)).unwrap();
        event.write_all(&count.to_ne_bytes()).unwrap();
    });
}

#[test]
fn each_package_is_counted_by_the_cpu_that_answers_for_it() {
    let host = server();
    let about = About::new("rapl_perf", NEEDS);
    let mut reader = find_with(&host.host(), about, pipes)
        .map_err(|(_, reason)| reason)
        .unwrap()
        .at_each_tick();
    let parts = [(2, 0), (2, 28), (3, 0), (3, 28)];
    for (config, cpu) in parts {
        count(config, cpu, 1000.0);
    }
    assert!(
        sample(&mut *reader)
            .0
            .iter()
            .all(|(_, joules)| joules.is_nan())
    );
    for ((config, cpu), joules) in parts.into_iter().zip([50.0, 60.0, 7.0, 8.0]) {
        count(config, cpu, 1000.0 + joules);
    }
    let row = sample(&mut *reader);
    for (domain, joules) in [
        ("package-0", 50.0),
        ("package-1", 60.0),
        ("dram-0", 7.0),
        ("dram-1", 8.0),
    ] {
        let column = format!(r#"energy_joules_total{{domain="{domain}",meter="rapl_perf"}}"#);
        assert!((row.get(&column) - joules).abs() < 1e-6, "{column}");
    }
    assert_eq!(reader.probes()[0].status, Status::Ok);
}

#[test]
fn events_in_other_units_or_without_a_scale_are_left_out() {
    let path = format!("{FOLDER}/events/energy-ram");
    for (file, text, is_taken) in [
        ("unit", "Joules\n", true),
        ("unit", "Watts\n", false),
        ("scale", "0\n", false),
        ("scale", "-1.0\n", false),
        ("scale", "inf\n", false),
        ("scale", "NaN\n", false),
        ("scale", "much\n", false),
    ] {
        let tree = server();
        tree.write(&format!("{path}.{file}"), text);
        let parts: Vec<&str> = events(&tree.host())
            .iter()
            .map(|event| event.part)
            .collect();
        assert_eq!(parts.len(), 1 + usize::from(is_taken), "{file}: {text}");
    }
}

fn refused(kind: u32, _: u64, _: u32) -> Result<OwnedFd, Errno> {
    assert_eq!(kind, 18);
    Err(Errno::ACCESS)
}

#[test]
fn a_lack_of_rights_says_which() {
    let host = server();
    host.write("proc/sys/kernel/perf_event_paranoid", "2\n");
    let about = About::new("rapl_perf", NEEDS);
    let (about, reason) = find_with(&host.host(), about, refused).err().unwrap();
    assert!(reason.starts_with("not permitted"), "{reason}");
    assert!(about.needs.contains("perf_event_paranoid <= 0"));
}

#[test]
fn several_dies_of_a_package_are_told_apart() {
    let host = server();
    for (cpu, die) in [(0, 0), (28, 1)] {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        host.write(&format!("{path}/physical_package_id"), "0\n");
        host.write(&format!("{path}/die_id"), &format!("{die}\n"));
    }
    let places = places(&host.host(), &[0, 28]);
    let names: Vec<&str> = places.iter().map(|(_, place)| place.as_str()).collect();
    assert_eq!(names, ["0-die-0", "0-die-1"]);
}

/// The kernel's own clock stands in for energy: opened and read the same way.
#[test]
fn an_event_of_a_cpu_counts() {
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;
    let file = match open_uncore(SOFTWARE, CPU_CLOCK, 0) {
        Ok(file) => file,
        Err(Errno::ACCESS | Errno::PERM | Errno::NOSYS) => {
            eprintln!("skipped: perf events are not permitted here");
            return;
        }
        Err(errno) => panic!("{errno}"),
    };
    let read = || {
        let mut bytes = [0; 8];
        assert_eq!(rustix::io::read(&file, &mut bytes), Ok(8));
        u64::from_ne_bytes(bytes)
    };
    let first = read();
    assert!(read() > first);
}
