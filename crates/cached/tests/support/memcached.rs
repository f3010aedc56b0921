//! memcached as a child process, to be compared with.

use super::PATIENCE;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// memcached 1.6, from the variable `RACKSCOPE_MEMCACHED` (a path) or from PATH. Where there is none, the test says so
/// and passes.
pub fn program() -> Option<String> {
    let candidates = [
        std::env::var("RACKSCOPE_MEMCACHED").unwrap_or_default(),
        "memcached".to_owned(),
    ];
    let found = candidates.into_iter().find(|program| {
        let output = Command::new(program)
            .arg("-V")
            .stderr(Stdio::null())
            .output();
        output.is_ok_and(|output| output.stdout.starts_with(b"memcached 1.6."))
    });
    if found.is_none() {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
    }
    found
}

/// A running memcached, killed when dropped.
pub struct Memcached {
    child: Child,
    address: String,
}

impl Memcached {
    /// On a free port of 127.0.0.1, with `arguments`.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        // memcached does not tell which port it got: find a free one, and hope that nobody is faster.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let mut command = Command::new(program);
        // Its housekeeping threads hold items now and then, and a number that is held is not padded with spaces.
        command.args(["-o", "no_lru_maintainer,no_lru_crawler"]);
        command.args(["-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", "64"]);
        command.args(["-p", &port.to_string()]).args(arguments);
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "nobody"]);
        }
        let memcached = Self {
            child: command.spawn().expect("start memcached"),
            address: format!("127.0.0.1:{port}"),
        };
        let deadline = std::time::Instant::now() + PATIENCE;
        while TcpStream::connect(&memcached.address).is_err() {
            assert!(
                std::time::Instant::now() < deadline,
                "memcached does not listen on {}",
                memcached.address
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        memcached
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
