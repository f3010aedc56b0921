//! A server as a child process, and a client that waits for answers.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod datagrams;
pub mod memcached;
pub mod newer_words;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rackscope-cached");

/// A test that waits longer is stuck.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The environment variable that says what servers serve over; `io_uring.rs` sets it.
pub const TRANSPORT: &str = "RACKSCOPE_TEST_TRANSPORT";

/// What servers are asked to serve over.
pub fn transport() -> String {
    std::env::var(TRANSPORT).unwrap_or_else(|_| "epoll".to_owned())
}

/// A running `rackscope-cached`, killed when dropped.
pub struct Server {
    child: Child,
    messages: BufReader<ChildStderr>,
    said: String,
    addresses: Vec<String>,
}

impl Server {
    /// On a free port of 127.0.0.1, with `arguments`.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        // Connections move between workers, and are encrypted, over epoll only.
        let takes_epoll = |one: &&str| matches!(*one, "erew" | "crew" | "-Z" | "-U");
        let transport = if arguments.iter().any(takes_epoll) {
            "epoll".to_owned()
        } else {
            transport()
        };
        command
            .args(["-p", "0", "--transport", &transport])
            .args(arguments);
        Self::from_command(command)
    }

    /// The same, and where datagrams are served.
    pub fn start_with_datagrams(arguments: &[&str]) -> (Self, String) {
        let mut server = Self::start(&[&["-U", "free"], arguments].concat());
        let mut line = server.message();
        if line.contains("each worker has its own keys") {
            line = server.message();
        }
        let address = line
            .trim()
            .strip_prefix("rackscope-cached: datagrams are served at ");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        (server, address)
    }

    pub fn from_command(mut command: Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the server");
        let mut messages = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        let addresses = loop {
            let start = said.len();
            if messages.read_line(&mut said).expect("read what it says") == 0 {
                panic!("not ready: {said}");
            }
            let ready = said[start..].strip_prefix("rackscope-cached: ready on ");
            if let Some((addresses, _)) = ready.and_then(|rest| rest.split_once(" (")) {
                let addresses = addresses.split(", ").map(str::to_owned).collect();
                said.truncate(start);
                break addresses;
            }
        };
        Self {
            child,
            messages,
            said,
            addresses,
        }
    }

    /// Where it listens: `127.0.0.1:11211`, or `unix:/path`.
    pub fn address(&self) -> &str {
        &self.addresses[0]
    }

    /// What it said before it was ready.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// All the places where it listens.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// The next line that it says on standard error.
    pub fn message(&mut self) -> String {
        let mut line = String::new();
        self.messages.read_line(&mut line).expect("read a line");
        line
    }

    /// Wait until it ends by itself.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("wait for the server")
    }

    /// A connection without the client around it.
    pub fn tcp(&self) -> TcpStream {
        tcp(self.address())
    }

    /// Send a signal, wait for the end, and return how it ended and what it said.
    pub fn end_by(mut self, signal: Signal) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), signal).expect("send a signal");
        let status = self.child.wait().expect("wait for the server");
        let mut said = String::new();
        self.messages
            .read_to_string(&mut said)
            .expect("read what it said");
        (status, said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Run the program to its end: its exit status, standard output and standard error.
pub fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("run the program");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A folder of this test's own, removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = format!("cached-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&path).expect("make a folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0
            .join(name)
            .to_str()
            .expect("a path of text")
            .to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A connection to `address` that does not wait for ever.
pub fn tcp(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connect");
    stream.set_nodelay(true).expect("set an option");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("set an option");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("set an option");
    stream
}

trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// A connection that knows where answers end: after each question it asks `mn` too.
pub struct Client {
    socket: Box<dyn Socket>,
}

impl Client {
    pub fn connect(address: &str) -> Self {
        let socket: Box<dyn Socket> = if let Some(path) = address.strip_prefix("unix:") {
            let stream = UnixStream::connect(path).expect("connect");
            stream
                .set_read_timeout(Some(PATIENCE))
                .expect("set an option");
            stream
                .set_write_timeout(Some(PATIENCE))
                .expect("set an option");
            Box::new(stream)
        } else {
            Box::new(tcp(address))
        };
        Self { socket }
    }

    /// Over whatever is connected already.
    pub fn over(socket: impl Read + Write + Send + 'static) -> Self {
        Self {
            socket: Box::new(socket),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("send");
    }

    /// Everything up to and without the answer to `mn`, which was sent last.
    pub fn receive(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut piece = vec![0; 1 << 16];
        while !answer.ends_with(b"MN\r\n") {
            match self.socket.read(&mut piece) {
                Ok(0) => panic!("closed after {:?}", shown(&answer)),
                Ok(length) => answer.extend_from_slice(&piece[..length]),
                // With a timeout, a read is not taken up again by itself.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error} after {:?}", shown(&answer)),
            }
        }
        answer.truncate(answer.len() - 4);
        answer
    }

    /// What comes next, at least a byte.
    pub fn some(&mut self) -> Vec<u8> {
        let mut piece = vec![0; 1 << 16];
        loop {
            match self.socket.read(&mut piece) {
                Ok(0) => panic!("closed"),
                Ok(length) => {
                    piece.truncate(length);
                    return piece;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// What comes, until it ends with `end`.
    pub fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut piece = [0; 1 << 12];
        while !answer.ends_with(end) {
            match self.socket.read(&mut piece) {
                Ok(0) => panic!("closed after {:?}", shown(&answer)),
                Ok(length) => answer.extend_from_slice(&piece[..length]),
                // With a timeout, a read is not taken up again by itself.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error} after {:?}", shown(&answer)),
            }
        }
        answer
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        let mut answer = vec![0; length];
        self.socket.read_exact(&mut answer).expect("receive");
        answer
    }

    /// The answer to `question`.
    pub fn ask(&mut self, question: &[u8]) -> Vec<u8> {
        self.send(&[question, b"mn\r\n"].concat());
        self.receive()
    }

    /// The same, sent byte by byte.
    pub fn ask_slowly(&mut self, question: &[u8]) -> Vec<u8> {
        for byte in [question, b"mn\r\n"].concat() {
            self.send(&[byte]);
        }
        self.receive()
    }

    /// All that comes until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        match self.socket.read_to_end(&mut answer) {
            Ok(_) => answer,
            // Closed with bytes of ours unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => answer,
            Err(error) => panic!("{error} after {:?}", shown(&answer)),
        }
    }

    /// A number of `stats`.
    pub fn statistic(&mut self, name: &str) -> u64 {
        let answer = String::from_utf8(self.ask(b"stats\r\n")).expect("text");
        answer
            .lines()
            .find_map(|line| {
                line.strip_prefix("STAT ")?
                    .strip_prefix(name)?
                    .strip_prefix(' ')
            })
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {answer}"))
    }
}

/// Bytes as a person can read them.
pub fn shown(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    match text.char_indices().nth(2000) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], bytes.len()),
        None => text,
    }
}

/// `VmRSS` of `/proc/[pid]/status`.
pub fn resident_bytes(pid: u32) -> usize {
    let status =
        std::fs::read_to_string(format!("/proc/{pid}/status")).expect("read the process's status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a resident size");
    let kibibytes: usize = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kibibytes * 1024
}
