//! The real memcached, to compare with.

use super::{Client, PATIENCE};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running memcached on a free port of 127.0.0.1, TCP and UDP, killed when dropped.
pub struct Memcached {
    child: Child,
    address: String,
}

impl Memcached {
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        // It does not tell which port it got: find a free one, and another where somebody was faster.
        let mut attempts = (0..10).filter_map(|_| Self::try_start(program, arguments));
        attempts.next().expect("a port for memcached")
    }

    /// `None` where it ended, as it does without its port.
    fn try_start(program: &str, arguments: &[&str]) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port()
            .to_string();
        let mut command = Command::new(program);
        command.args(["-l", "127.0.0.1", "-t", "1", "-m", "64"]);
        command.args(["-p", &port, "-U", &port]);
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "nobody"]);
        }
        command.args(arguments);
        command.stderr(Stdio::null());
        let mut memcached = Self {
            child: command.spawn().expect("start memcached"),
            address: format!("127.0.0.1:{port}"),
        };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&memcached.address).is_err() {
            if memcached.child.try_wait().expect("a child").is_some() {
                return None;
            }
            assert!(
                Instant::now() < deadline,
                "memcached does not listen on {}",
                memcached.address
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(memcached)
    }

    /// What it says of itself, as `[1, 6, 18]`.
    pub fn version(&self) -> [u32; 3] {
        let answer = Client::connect(&self.address).ask(b"version\r\n");
        let answer = String::from_utf8(answer).expect("text");
        let version = answer.trim_end().strip_prefix("VERSION ");
        let numbers: Vec<u32> = version
            .unwrap_or_else(|| panic!("no version in {answer}"))
            .split(['.', '-', '_'])
            .take(3)
            .map_while(|number| number.parse().ok())
            .collect();
        numbers.try_into().expect("three numbers")
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// memcached 1.6, from the variable `RACKSCOPE_MEMCACHED` (a path) or from PATH.
pub fn memcached_program() -> Option<String> {
    let candidates = [
        std::env::var("RACKSCOPE_MEMCACHED").unwrap_or_default(),
        "memcached".to_owned(),
    ];
    candidates.into_iter().find(|program| {
        let output = Command::new(program)
            .arg("-V")
            .stderr(Stdio::null())
            .output();
        output.is_ok_and(|output| output.stdout.starts_with(b"memcached 1.6."))
    })
}
