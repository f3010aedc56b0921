use super::super::spec::{Measured, Quantity};
use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};

fn printer(script: &str, timeout: Duration) -> Printer {
    let spec = CommandSpec {
        arguments: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        measured: Measured {
            domain: "server".to_owned(),
            quantity: Quantity::Watts,
            scale: 1.0,
        },
        interval_seconds: 60.0,
        timeout_seconds: timeout.as_secs_f64(),
    };
    Printer {
        spec,
        running: None,
    }
}

/// Long enough for any machine.
const PATIENT: Duration = Duration::from_secs(60);

fn numbers(script: &str, count: usize) -> Vec<f64> {
    let mut printer = printer(script, PATIENT);
    (0..count)
        .map(|_| printer.number(|| false).unwrap())
        .collect()
}

fn failure(script: &str, timeout: Duration) -> String {
    let mut printer = printer(script, timeout);
    printer.number(|| false).unwrap_err().to_string()
}

#[test]
fn one_that_runs_on_is_read_line_by_line() {
    let tree = Tree::empty();
    let path = tree.root().join("go");
    let path = path.display();
    // A fifo lets the test say when the next line comes.
    let script = format!("mkfifo {path}; echo 250.5; read go < {path}; echo 251; exec sleep 60");
    let mut printer = printer(&script, PATIENT);
    assert_eq!(printer.number(|| false).unwrap(), 250.5);
    std::fs::write(tree.root().join("go"), "go\n").unwrap();
    assert_eq!(printer.number(|| false).unwrap(), 251.0);
}

/// One that never stops is left to print after so many bytes, so that somebody hears of its numbers.
#[test]
fn what_is_taken_is_counted() {
    let script = ["/bin/sh", "-c", "echo 250; echo 251"].map(str::to_owned);
    let mut running = Running::start(&script).unwrap();
    let mut seen = 0;
    while running.take(&mut seen).unwrap() != More::End {
        std::thread::yield_now();
    }
    assert_eq!((seen, running.printed.as_slice()), (8, &b"250\n251\n"[..]));
}

#[test]
fn one_that_ends_is_started_again() {
    let tree = Tree::empty();
    let count = tree.root().join("count");
    let script = format!("echo x >> {0}; wc -l < {0}", count.display());
    assert_eq!(numbers(&script, 3), [1.0, 2.0, 3.0]);
    // The end of a line is not needed.
    assert_eq!(numbers("printf 12", 2), [12.0, 12.0]);
}

#[test]
fn of_lines_that_are_there_the_last_counts() {
    let tree = Tree::empty();
    let done = tree.root().join("done");
    let script = format!(
        "echo 1; echo 2; echo 3; touch {}; exec sleep 60",
        done.display()
    );
    let mut printer = printer(&script, PATIENT);
    let running = Running::start(&printer.spec.arguments).unwrap();
    while !done.exists() {
        running.wait(LONGEST_WAIT).unwrap();
    }
    printer.running = Some(running);
    assert_eq!(printer.number(|| false).unwrap(), 3.0);
}

#[test]
fn whatever_goes_wrong_is_told() {
    for (script, words) in [
        ("echo hot", "/bin/sh printed 'hot', which is not a number"),
        (
            "echo no meter >&2; exit 3",
            "ended (exit status: 3) without a number: no meter",
        ),
        ("exit 0", "ended (exit status: 0) without a number"),
        (
            "yes 1 | tr -d '\\n'",
            "a line of more than 64 bytes, and was ended",
        ),
    ] {
        let failure = failure(script, PATIENT);
        assert!(failure.contains(words), "{script}: {failure}");
    }
    let silent = failure("echo I wait >&2; exec sleep 60", Duration::from_millis(300));
    assert!(
        silent.contains("printed no number within 0.3 s, and was ended"),
        "{silent}"
    );
    let mut absent = printer("", PATIENT);
    absent.spec.arguments = vec!["/no/such/meter".to_owned()];
    let failure = absent.number(|| false).unwrap_err().to_string();
    assert!(
        failure.starts_with("cannot start /no/such/meter: No such file"),
        "{failure}"
    );
}

#[test]
fn no_shell_reads_the_arguments() {
    let mut echo = printer("", PATIENT);
    echo.spec.arguments = ["echo", "$((1+1))"].map(str::to_owned).to_vec();
    let failure = echo.number(|| false).unwrap_err().to_string();
    assert!(failure.contains("'$((1+1))'"), "{failure}");
}

#[test]
fn it_ends_with_all_that_it_started_when_nobody_reads_it() {
    let tree = Tree::empty();
    let pids = tree.root().join("pids");
    let script = format!(
        "sleep 600 & echo $! > {0}.new; mv {0}.new {0}; echo 1; wait",
        pids.display()
    );
    let mut reader = build(&printer(&script, PATIENT).spec);
    assert_eq!(reader.probes()[0].status, Status::Ok);
    assert_eq!(
        sample(&mut *reader).get(r#"power_watts{domain="server",meter="command"}"#),
        1.0
    );
    let sleeper: i32 = std::fs::read_to_string(&pids)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    drop(reader);
    // Killed: gone, or for a moment nobody has taken note of it.
    let state = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    while !matches!(state(sleeper), None | Some('Z' | 'X')) {
        std::thread::yield_now();
    }
}

#[test]
fn nobody_waits_for_one_that_prints_nothing() {
    let mut silent = printer("exec sleep 600", PATIENT);
    let failure = silent.number(|| true).unwrap_err().to_string();
    assert_eq!(failure, "/bin/sh was ended");
    assert!(silent.running.is_none());
}
