//! Network namespaces joined by a veth pair, which end with the value that holds them.
#![allow(dead_code, reason = "each test, and the example, uses a part of this")]

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};
use xdp::packet::Endpoint;
use xdp::{Error, Filter, Interface, Program};

/// A network namespace, for as long as this lives and no socket is in it.
pub struct Namespace(OwnedFd);

impl Namespace {
    fn make() -> std::io::Result<Self> {
        let made = std::thread::spawn(|| {
            // SAFETY: a new network namespace for this thread touches neither memory nor descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            Ok(Self(File::open("/proc/thread-self/ns/net")?.into()))
        });
        made.join().expect("the thread ends")
    }

    /// Do something with the calling thread in this namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("a namespace of our own can be entered");
                work()
            });
            match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// What `ip` answers in this namespace.
    pub fn ip(&self, arguments: &str) -> String {
        let output = self.run(|| {
            let mut command = Command::new("ip");
            command.args(arguments.split_ascii_whitespace()).output()
        });
        let output = output.expect("ip of iproute2 is there");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "ip {arguments}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// One end of the pair: a namespace and its interface.
pub struct End {
    pub namespace: Namespace,
    pub interface: Interface,
    pub ipv4: IpAddr,
    pub ipv6: IpAddr,
}

impl End {
    pub fn look_up(&self) -> Interface {
        let name = &self.interface.name;
        self.namespace
            .run(|| Interface::by_name(name).expect("its interface is there"))
    }

    /// An endpoint over IPv4.
    pub fn endpoint(&self, port: u16) -> Endpoint {
        Endpoint {
            hardware_address: self.interface.hardware_address,
            address: SocketAddr::new(self.ipv4, port),
        }
    }

    /// An endpoint over IPv6.
    pub fn endpoint6(&self, port: u16) -> Endpoint {
        Endpoint {
            hardware_address: self.interface.hardware_address,
            address: SocketAddr::new(self.ipv6, port),
        }
    }

    /// Wait until the kernel sends on the interface. Brought up before its peer, it has a queue that drops everything until
    /// the kernel gets round to the change, which takes a lock that much else takes.
    fn wait_until_ready(&self) {
        let start = Instant::now();
        loop {
            let name = &self.interface.name;
            let shown = self.namespace.ip(&format!("link show dev {name}"));
            if shown.contains("state UP") && !shown.contains("qdisc noop ") {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "{shown}");
        }
    }

    /// Whether `ip` shows an XDP program at the interface.
    pub fn has_program(&self) -> bool {
        let shown = self
            .namespace
            .ip(&format!("-d link show dev {}", self.interface.name));
        assert!(shown.contains("mtu"), "{shown}");
        shown.contains("prog/xdp")
    }
}

/// Two namespaces joined by a veth pair, both ends up and with addresses.
pub struct Pair {
    pub left: End,
    pub right: End,
}

/// Why a test cannot be done here: a right or a program is missing.
fn obstacle() -> Option<String> {
    if let Err(error) = Command::new("ip").arg("-V").output() {
        return Some(format!("no ip of iproute2: {error}"));
    }
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    if let Err(error) = socket_with(AddressFamily::XDP, kind, flags, None) {
        return Some(format!("no AF_XDP socket can be made: {error}"));
    }
    let filter = Filter {
        ports: 1..=1,
        addresses: vec![],
    };
    match Program::load(&filter, 1) {
        Err(Error::Unavailable(reason)) => Some(reason),
        _ => None,
    }
}

/// A pair of interfaces with so many queues each; `None`, with the reason printed, where none can be made.
pub fn pair(queues: u32) -> Option<Pair> {
    let made = match obstacle() {
        None => Namespace::make()
            .and_then(|left| Ok((left, Namespace::make()?)))
            .map_err(|error| format!("no network namespace can be made: {error}")),
        Some(reason) => Err(reason),
    };
    let (left, right) = match made {
        Ok(made) => made,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return None;
        }
    };
    let queues = format!("numrxqueues {queues} numtxqueues {queues}");
    left.ip(&format!(
        "link add left {queues} type veth peer name right {queues} netns {}",
        right.path()
    ));
    let end = |namespace: Namespace, name: &str, number: u8| {
        let (ipv4, ipv6) = (format!("198.18.0.{number}"), format!("fd00::{number}"));
        namespace.ip(&format!("addr add {ipv4}/24 dev {name}"));
        namespace.ip(&format!("addr add {ipv6}/64 dev {name} nodad"));
        namespace.ip(&format!("link set {name} up"));
        End {
            interface: namespace.run(|| Interface::by_name(name).expect("it was just made")),
            namespace,
            ipv4: ipv4.parse().expect("an address"),
            ipv6: ipv6.parse().expect("an address"),
        }
    };
    let pair = Pair {
        left: end(left, "left", 1),
        right: end(right, "right", 2),
    };
    pair.left.wait_until_ready();
    pair.right.wait_until_ready();
    Some(pair)
}

/// All datagrams for these ports.
pub fn ports(first: u16, last: u16) -> Filter {
    Filter {
        ports: first..=last,
        addresses: vec![],
    }
}
