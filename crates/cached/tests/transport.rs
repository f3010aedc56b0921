//! Which transport serves, and what is said where one cannot.

use crate::support::{PROGRAM, Server, run};
use rustix::process::Signal;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Have the kernel answer a system call with an error in what `command` starts, as containers do.
fn forbid(command: &mut Command, system_call: libc::c_long, error: i32) {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let jump = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let filter = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filters = [
        // The number of the system call.
        filter(load, 0, 0, 0),
        filter(jump, 0, 1, system_call as u32),
        filter(answer, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        filter(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let program = libc::sock_fprog {
            len: filters.len() as u16,
            filter: filters.as_mut_ptr(),
        };
        // SAFETY: two system calls that take numbers and a program, which is there while they last.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ) != 0
        };
        if refused {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(install) };
}

fn transport_of(server: &Server) -> String {
    let settings = server.connect().ask(b"stats settings\r\n");
    let settings = String::from_utf8(settings).expect("text");
    let line = settings
        .lines()
        .find_map(|line| line.strip_prefix("STAT transport "));
    line.unwrap_or_else(|| panic!("{settings}")).to_owned()
}

#[test]
fn what_is_asked_for_serves() {
    let best = match net::Ring::probe() {
        Ok(()) => "io_uring",
        Err(why) => {
            eprintln!("only epoll is tested: {why}");
            "epoll"
        }
    };
    for (asked, expected) in [("epoll", "epoll"), ("auto", best), (best, best)] {
        let mut command = Command::new(PROGRAM);
        command.args(["-p", "0", "-t", "2", "--transport", asked]);
        let server = Server::from_command(command);
        assert_eq!(transport_of(&server), expected, "{asked}");
        let (status, said) = server.end_by(Signal::TERM);
        assert_eq!((status.code(), said.as_str()), (Some(0), ""));
    }
}

#[test]
fn where_io_uring_is_refused_it_is_said_or_epoll_serves() {
    let forbidden = "io_uring is forbidden to this process";
    for (system_call, error, reason) in [
        (libc::SYS_io_uring_setup, libc::EPERM, forbidden),
        (libc::SYS_io_uring_register, libc::EPERM, forbidden),
        (libc::SYS_io_uring_enter, libc::EPERM, forbidden),
        (
            libc::SYS_io_uring_setup,
            libc::ENOSYS,
            "this kernel has no io_uring",
        ),
        (libc::SYS_io_uring_setup, libc::EINVAL, "it takes Linux 6.1"),
        (
            libc::SYS_io_uring_setup,
            libc::EMFILE,
            "io_uring cannot be set up: ",
        ),
    ] {
        // Where it cannot even be set up, that is what is said.
        if net::Ring::probe().is_err() && system_call != libc::SYS_io_uring_setup {
            continue;
        }
        let mut command = Command::new(PROGRAM);
        command.args(["-p", "0", "--transport", "io_uring"]);
        forbid(&mut command, system_call, error);
        let output = command
            .stdin(Stdio::null())
            .output()
            .expect("run the program");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1));
        assert!(said.starts_with("rackscope-cached: "), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(said.contains("--transport auto"), "{said}");

        // Where it was left to the program, it says so if it is to say more.
        for (more, lines) in [(&[][..], 0), (&["-v"], 1)] {
            let mut command = Command::new(PROGRAM);
            command.args(["-p", "0", "--transport", "auto"]).args(more);
            forbid(&mut command, system_call, error);
            let server = Server::from_command(command);
            assert_eq!(transport_of(&server), "epoll");
            let said = server.said();
            assert_eq!(said.lines().count(), lines, "{said}");
            assert!(
                lines == 0 || (said.contains(reason) && said.contains("epoll serves instead")),
                "{said}"
            );
        }
    }
}

/// What serves clients on loopback is settled by an option, whatever the host has.
#[test]
fn congestion_control_is_what_was_asked_for() {
    let host = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let host = host.expect("the host's").trim().to_owned();
    let of = |arguments: &[&str]| {
        let server = Server::start(arguments);
        let _client = server.connect();
        let mut client = server.connect();
        client.ask(b"get a\r\n");
        let (_, port) = server.address().rsplit_once(':').expect("a port");
        let listed = std::process::Command::new("ss")
            .args(["-tinH", "state", "established", "sport", "=", port])
            .output();
        let listed = match listed {
            Ok(output) => String::from_utf8(output.stdout).expect("text"),
            Err(error) => {
                eprintln!("skipped: no ss: {error}");
                return None;
            }
        };
        let mut words: Vec<String> = listed
            .lines()
            .filter(|line| line.starts_with(char::is_whitespace))
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect();
        words.dedup();
        Some(words)
    };
    for (arguments, expected) in [
        (&[][..], "reno"),
        (&["-o", "congestion=system"], &host),
        (&["-o", "congestion=cubic"], "cubic"),
        (&["-o", "congestion=reno"], "reno"),
    ] {
        if let Some(found) = of(arguments) {
            assert_eq!(found, [expected], "{arguments:?}");
        }
    }
    let (status, _, message) = run(&["-p", "0", "-o", "congestion=none_such"]);
    assert_eq!(status, Some(1));
    assert!(
        message.contains("congestion control none_such: ") && message.contains("-o congestion"),
        "{message}"
    );
}
