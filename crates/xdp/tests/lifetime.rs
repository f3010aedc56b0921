//! What is there for how long, who may have it, and what is said when it cannot be had.

use crate::common::{End, Pair, pair, ports};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xdp::{Attach, Copying, Error, Interface, Mode, Options, Program, Socket};

/// Far longer than anything takes, so that a test that hangs ends.
const DEADLINE: Duration = Duration::from_secs(300);

fn load() -> Program {
    Program::load(&ports(7_000, 7_000), 1).expect("loads")
}

fn attach(end: &End, attach: Attach) -> Result<xdp::Attachment, Error> {
    let interface = end.look_up();
    end.namespace.run(|| load().attach(&interface, attach))
}

fn bind(end: &End, queue: u32, options: &Options) -> Result<Socket, Error> {
    let interface = end.look_up();
    end.namespace
        .run(|| Socket::bind(&interface, queue, options))
}

/// A process that another test is just starting has a copy of every descriptor for a moment.
fn loses_its_program(end: &End) -> bool {
    let start = Instant::now();
    while end.has_program() {
        if start.elapsed() > DEADLINE {
            return false;
        }
    }
    true
}

#[test]
fn a_program_goes_with_its_attachment() {
    let Some(pair) = pair(1) else { return };
    let left = &pair.left;
    for mode in [Mode::Native, Mode::Generic] {
        assert!(!left.has_program());
        let attachment = attach(left, Attach::Only(mode)).expect("attaches");
        assert!(left.has_program());
        drop(attachment);
        assert!(loses_its_program(left));
    }
}

/// The process that the next test kills.
#[test]
#[ignore = "started by another test, in a network namespace"]
fn a_process_with_a_program() {
    let interface = Interface::by_name("left").expect("the namespace has it");
    let program = load();
    let socket = Socket::bind(&interface, 0, &Options::default()).expect("binds");
    program.register(&socket).expect("registers");
    let _attachment = program
        .attach(&interface, Attach::BestAvailable)
        .expect("attaches");
    println!("\nattached");
    std::io::stdout().flush().expect("told");
    // Until it is killed; at the latest when the other test ends and closes the pipe.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_program_and_a_socket_go_with_a_killed_process() {
    let Some(pair) = pair(1) else { return };
    let left = &pair.left;
    let mut child = left.namespace.run(|| {
        Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "lifetime::a_process_with_a_program",
                "--ignored",
                "--nocapture",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts")
    });
    let told = BufReader::new(child.stdout.take().expect("piped"));
    let attached = told
        .lines()
        .map_while(Result::ok)
        .any(|line| line == "attached");
    let was_there = left.has_program();
    child.kill().expect("it was started");
    child.wait().expect("it ends");
    assert!(attached && was_there);
    assert!(loses_its_program(left));
    bind_when_free(left, 0, &Options::default());
}

fn says(error: &Error, what: &str) -> bool {
    error.to_string().contains(what)
}

/// On a host that is busy, the kernel may take longer to give a queue back than `bind` waits.
fn bind_when_free(end: &End, queue: u32, options: &Options) -> Socket {
    let start = Instant::now();
    loop {
        match bind(end, queue, options) {
            Err(error) if says(&error, "is taken by another") && start.elapsed() < DEADLINE => {}
            bound => return bound.expect("it is free"),
        }
    }
}

#[test]
fn a_queue_has_one_socket_and_is_free_again_when_it_is_closed() {
    let Some(pair) = pair(2) else { return };
    let left = &pair.left;
    let mut sockets: Vec<Socket> = (0..2)
        .map(|queue| bind(left, queue, &Options::default()).expect("binds"))
        .collect();
    let error = bind(left, 1, &Options::default()).expect_err("it is taken");
    assert!(
        error
            .to_string()
            .contains("queue 1 of interface left is taken"),
        "{error}"
    );
    for _ in 0..10 {
        drop(sockets.pop());
        sockets.push(bind_when_free(left, 1, &Options::default()));
    }
    let error = bind(left, 2, &Options::default()).expect_err("there is none");
    assert!(says(&error, "no receive queue 2: it has 2"), "{error}");
    // A program that was loaded for fewer queues.
    let error = load().register(&sockets[1]).expect_err("no place for it");
    assert!(says(&error, "no receive queue 1: it has 1"), "{error}");
    // An interface that lost its queues since it was looked up.
    let mut interface = left.look_up();
    interface.receive_queues = 9;
    let error = left
        .namespace
        .run(|| Socket::bind(&interface, 8, &Options::default()))
        .expect_err("there is none");
    assert!(says(&error, "no receive queue 8"), "{error}");
}

#[test]
fn an_interface_has_one_program() {
    let Some(pair) = pair(1) else { return };
    let left = &pair.left;
    for first in [Mode::Native, Mode::Generic] {
        let _attachment = attach(left, Attach::Only(first)).expect("attaches");
        for second in [Mode::Native, Mode::Generic] {
            let error = attach(left, Attach::Only(second)).expect_err("there is one");
            assert!(
                says(&error, "has another XDP program"),
                "{first:?}, {second:?}: {error}"
            );
        }
        let error = attach(left, Attach::BestAvailable).expect_err("there is one");
        assert!(says(&error, "has another XDP program"), "{error}");
    }
}

#[test]
fn what_a_driver_refuses_is_told_and_the_next_best_is_had() {
    let Some(Pair { left, right }) = pair(1) else {
        return;
    };
    // veth reads and writes no frames of ours.
    let zero_copy = Options {
        copying: Copying::ZeroCopy,
        ..Options::default()
    };
    let error = bind(&left, 0, &zero_copy).expect_err("veth cannot");
    assert!(matches!(error, Error::ZeroCopyRefused { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("interface left refuses zero-copy mode on queue 0"),
        "{error}"
    );
    let socket = bind(&left, 0, &Options::default()).expect("copies");
    assert!(!socket.is_zero_copy());

    // With veth it is the peer's packets that must fit.
    let attachment = attach(&left, Attach::BestAvailable).expect("attaches");
    assert_eq!(attachment.mode(), Mode::Native);
    assert!(attachment.native_refusal().is_none());
    drop(attachment);
    let mtu = |mtu: u32| {
        for end in [&left, &right] {
            end.namespace
                .ip(&format!("link set {} mtu {mtu}", end.interface.name));
        }
    };
    mtu(3_400);
    attach(&left, Attach::Only(Mode::Native)).expect("packets fit a page");
    // More than the largest page has room for.
    mtu(65_535);
    let error = attach(&left, Attach::Only(Mode::Native)).expect_err("too long");
    assert!(matches!(error, Error::NativeRefused { .. }), "{error}");
    assert!(error.to_string().contains("lower the MTU"), "{error}");
    let attachment = attach(&left, Attach::BestAvailable).expect("attaches");
    assert_eq!(attachment.mode(), Mode::Generic);
    assert!(matches!(
        attachment.native_refusal(),
        Some(Error::NativeRefused { .. })
    ));
    // A socket's frames must hold the packets too.
    drop(socket);
    mtu(3_600);
    let error = bind(&left, 0, &Options::default()).expect_err("too long");
    assert!(
        says(
            &error,
            "3600 bytes, is too large for frames of 2048 bytes: lower it to 1778"
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("use frames of 4096 bytes"),
        "{error}"
    );
    let longer = Options {
        frame_bytes: 4_096,
        ..Options::default()
    };
    bind_when_free(&left, 0, &longer);
    left.namespace.ip("link set left mtu 9000");
    let error = bind(&left, 0, &longer).expect_err("too long");
    assert!(
        error.to_string().contains("`ip link set left mtu 3826`"),
        "{error}"
    );
    assert!(!error.to_string().contains("or use frames"), "{error}");
}

#[test]
fn veth_takes_a_program_only_with_as_many_queues_as_its_peer_sends_on() {
    let Some(Pair { left, right }) = pair(2) else {
        return;
    };
    left.namespace.ip("link delete left");
    drop(right);
    left.namespace.ip("link add left numrxqueues 1 numtxqueues 1 type veth peer name fewer numrxqueues 2 numtxqueues 2");
    let error = attach(&left, Attach::Only(Mode::Native)).expect_err("too few queues");
    assert!(matches!(error, Error::NativeRefused { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("the peer may not transmit on more"),
        "{error}"
    );
}

#[test]
fn what_is_missing_is_named() {
    let Some(pair) = pair(1) else { return };
    let left = &pair.left;
    let interface = &left.interface;
    let program = load();
    left.namespace.run(|| {
        let mut sets = capabilities(None).expect("our own");
        sets.effective = CapabilitySet::empty();
        set_capabilities(None, sets).expect("they can be given up");
        let refused = |error: Error, capability: &str| {
            assert!(matches!(error, Error::Unavailable(_)), "{error}");
            assert!(error.to_string().contains(capability), "{error}");
        };
        let socket = Socket::bind(interface, 0, &Options::default());
        refused(socket.expect_err("not permitted"), "CAP_NET_RAW");
        let loaded = Program::load(&ports(1, 1), 1);
        refused(
            loaded.expect_err("not permitted"),
            "CAP_BPF and CAP_NET_ADMIN",
        );
    });
    left.namespace.ip("link delete left");
    let error = left
        .namespace
        .run(|| Socket::bind(interface, 0, &Options::default()))
        .expect_err("it is gone");
    assert!(
        says(&error, "there is no network interface 'left'"),
        "{error}"
    );
    let error = left
        .namespace
        .run(|| program.attach(interface, Attach::BestAvailable))
        .expect_err("it is gone");
    assert!(
        says(&error, "there is no network interface 'left'"),
        "{error}"
    );
    let error = left
        .namespace
        .run(|| Interface::by_name("left"))
        .expect_err("it is gone");
    assert!(
        error.to_string().contains("no network interface 'left'"),
        "{error}"
    );
}

#[test]
fn options_that_cannot_be_are_refused() {
    let interface = Interface::by_name("lo").expect("every namespace has one");
    let good = Options::default();
    for (options, said) in [
        (
            Options {
                frame_bytes: 1_024,
                ..good
            },
            "frame_bytes must be 2048 or 4096, not 1024",
        ),
        (
            Options {
                receive_frames: 100,
                ..good
            },
            "receive_frames must be a power of two",
        ),
        (
            Options {
                receive_frames: 0,
                ..good
            },
            "receive_frames must be a power of two",
        ),
        (
            Options {
                transmit_frames: 1 << 21,
                ..good
            },
            "transmit_frames must be a power of two",
        ),
    ] {
        let error = Socket::bind(&interface, 0, &options).expect_err("refused");
        assert!(error.to_string().contains(said), "{error}");
    }
}

/// Without the right to lock any amount, there is room for one socket's memory, again and again.
#[test]
fn locked_memory_is_given_back_and_its_lack_is_named() {
    let Some(pair) = pair(2) else { return };
    let left = &pair.left;
    // The other tests of this process have the right, so that the limit is nothing to them.
    let limit = Rlimit {
        current: Some(6 << 20),
        ..getrlimit(Resource::Memlock)
    };
    if limit.maximum.is_some_and(|maximum| maximum < 6 << 20) {
        eprintln!("skipped: less than 6 MiB of memory may be locked here: {limit:?}");
        return;
    }
    let options = Options {
        receive_frames: 1_024,
        transmit_frames: 1_024,
        ..Options::default()
    };
    left.namespace.run(|| {
        let mut sets = capabilities(None).expect("our own");
        sets.effective.remove(CapabilitySet::IPC_LOCK);
        setrlimit(Resource::Memlock, limit).expect("it is within the hard limit");
        set_capabilities(None, sets).expect("it can be given up");
        let bind = |queue| Socket::bind(&left.interface, queue, &options);
        for _ in 0..5 {
            // On a host that is busy, the kernel may take longer to give memory back than `bind` waits.
            let start = Instant::now();
            let _first = loop {
                match bind(0) {
                    Err(error) if says(&error, "cannot lock") && start.elapsed() < DEADLINE => {}
                    bound => break bound.expect("there is room for one"),
                }
            };
            let error = bind(1).expect_err("there is no room for two");
            assert!(says(&error, "cannot lock 4194304 bytes"), "{error}");
        }
    });
}
