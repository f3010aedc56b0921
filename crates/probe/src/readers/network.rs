//! What network interfaces carry and drop, and what TCP and UDP lose: `/proc/net/dev`, `/proc/net/snmp` and
//! `/proc/net/netstat` (Documentation/networking/snmp_counter.rst).

use std::fs;

use crate::error::{Fault, Problem};
use crate::host::Host;
use crate::parse::{Fields, Line, Lines};
use crate::probes::{Probe, column, some_of};
use crate::readers::Reader;
use crate::readers::late::{Late, position};
use crate::source::{Source, complaints};

const NEEDS: &str = "/proc/net/dev, of the network namespace that rackscope runs in";
const PROTOCOL_NEEDS: &str =
    "/proc/net/snmp and /proc/net/netstat, of the network namespace that rackscope runs in";

/// Columns of an interface, and where they stand behind its name: eight fields of receiving, then eight of sending.
const COLUMNS: [(&str, usize); 8] = [
    ("network_receive_bytes_total", 0),
    ("network_receive_packets_total", 1),
    ("network_receive_errors_total", 2),
    ("network_receive_drops_total", 3),
    ("network_transmit_bytes_total", 8),
    ("network_transmit_packets_total", 9),
    ("network_transmit_errors_total", 10),
    ("network_transmit_drops_total", 11),
];
const FIELDS: usize = 12;
/// Lines above the first interface.
const HEADINGS: usize = 2;

/// Interfaces that carry what another one carries as well, or nothing: ends of containers, tunnels and placeholders.
const LEFT_OUT: [&str; 14] = [
    "veth", "ifb", "dummy", "cali", "lxc", "tunl", "sit", "ip6tnl", "gre", "erspan", "ip_vti",
    "ip6_vti", "ip6gre", "teql",
];

/// More interfaces than this are not followed; the reason says so.
const MOST_INTERFACES: usize = 256;

/// Column, file, prefix of its two lines, and the name of its field in the first of them.
const PROTOCOLS: [(&str, usize, &[u8], &[u8]); 4] = [
    ("tcp_segments_sent_total", 0, b"Tcp:", b"OutSegs"),
    ("tcp_retransmits_total", 0, b"Tcp:", b"RetransSegs"),
    (
        "tcp_listen_overflows_total",
        1,
        b"TcpExt:",
        b"ListenOverflows",
    ),
    (
        "udp_receive_buffer_errors_total",
        0,
        b"Udp:",
        b"RcvbufErrors",
    ),
];
const PROTOCOL_FILES: [&str; 2] = ["proc/net/snmp", "proc/net/netstat"];

struct Interfaces {
    source: Source,
    /// Interfaces with columns, in the order of the file.
    names: Vec<String>,
    left_out: Vec<String>,
    late: Late,
}

struct Protocols(Vec<(usize, Source)>);

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    vec![interfaces(host), protocols(host)]
}

fn interfaces(host: &Host) -> Box<dyn Reader> {
    let probe = Probe::new("network", NEEDS, Vec::new());
    let path = host.path("proc/net/dev");
    let source = match Source::open(&path) {
        Ok(source) => source,
        Err(error) => return probe.missing_reader(error.to_string()),
    };
    let text = fs::read(&path).unwrap_or_default();
    let (mut names, mut left_out) = (Vec::new(), Vec::new());
    let mut lines = Lines::new(&text);
    while let Ok(Some(line)) = lines.next() {
        if let Some((name, _)) = interface(line) {
            let name = String::from_utf8_lossy(name).into_owned();
            if is_left_out(&name) || names.len() >= MOST_INTERFACES {
                left_out.push(name)
            } else {
                names.push(name)
            }
        }
    }
    if names.is_empty() {
        return probe.missing_reader(format!("{} lists no interface", path.display()));
    }
    Box::new(Interfaces {
        source,
        names,
        left_out,
        late: Late::default(),
    })
}

fn is_left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|prefix| name.starts_with(prefix))
}

/// The name of an interface and what follows it.
fn interface(line: Line<'_>) -> Option<(&[u8], Fields<'_>)> {
    // A name may hold a colon (an alias such as eth0:1); what follows the last one is numbers.
    let colon = memchr::memrchr(b':', line.text)?;
    Some((
        line.text[..colon].trim_ascii(),
        Fields::new(&line.text[colon + 1..], line.number),
    ))
}

impl Reader for Interfaces {
    fn probes(&self) -> Vec<Probe> {
        let columns = self
            .names
            .iter()
            .flat_map(|name| {
                COLUMNS
                    .iter()
                    .map(|(metric, _)| column(metric, &[("interface", name)]))
            })
            .collect();
        let mut probe = Probe::new("network", NEEDS, columns).untrusted_if(self.source.complaint());
        if !self.left_out.is_empty() {
            probe.note(format!("left out: {}", some_of(&self.left_out)));
        }
        self.late.tell(&mut probe);
        vec![probe]
    }

    fn read(&mut self, row: &mut [f64]) {
        let Self {
            source,
            names,
            left_out,
            late,
        } = self;
        source.read(|text| {
            let mut lines = Lines::new(text);
            let mut expected = 0;
            for _ in 0..HEADINGS {
                lines.expect("an interface")?;
            }
            while let Some(line) = lines.next()? {
                let (name, fields) =
                    interface(line).ok_or(line.fault("an interface", Problem::Missing))?;
                let is = |known: &String| known.as_bytes() == name;
                if let Some(position) = position(names, expected, is) {
                    expected = position + 1;
                    let start = position * COLUMNS.len();
                    traffic(fields, &mut row[start..start + COLUMNS.len()])?;
                } else if !left_out.iter().any(is) {
                    late.note(name, is_left_out);
                }
            }
            Ok(())
        });
    }
}

/// Stores the columns of an interface.
fn traffic(mut fields: Fields<'_>, row: &mut [f64]) -> Result<(), Fault> {
    let mut numbers = [0; FIELDS];
    for number in &mut numbers {
        *number = fields.number("a counter of the interface")?;
    }
    for (value, (_, position)) in row.iter_mut().zip(COLUMNS) {
        *value = numbers[position] as f64;
    }
    Ok(())
}

fn protocols(host: &Host) -> Box<dyn Reader> {
    let mut sources = Vec::new();
    let mut reason = String::new();
    for (position, path) in PROTOCOL_FILES.iter().enumerate() {
        match Source::open(host.path(path)) {
            Ok(source) => sources.push((position, source)),
            Err(error) => reason = error.to_string(),
        }
    }
    if sources.is_empty() {
        return protocol_probe().missing_reader(reason);
    }
    Box::new(Protocols(sources))
}

fn protocol_probe() -> Probe {
    let columns = PROTOCOLS
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .collect();
    Probe::new("network_protocols", PROTOCOL_NEEDS, columns)
}

impl Reader for Protocols {
    fn probes(&self) -> Vec<Probe> {
        vec![protocol_probe().untrusted_if(complaints(self.0.iter().map(|(_, source)| source)))]
    }

    fn read(&mut self, row: &mut [f64]) {
        for (file, source) in &mut self.0 {
            source.read(|text| counters(text, *file, row));
        }
    }
}

/// Stores the counters of a file: pairs of lines that start with the same word, names in the first and numbers below.
fn counters(text: &[u8], file: usize, row: &mut [f64]) -> Result<(), Fault> {
    let mut lines = Lines::new(text);
    let mut known = 0;
    while let Some(names) = lines.next()? {
        let numbers = lines.expect("the numbers of a protocol")?;
        let (mut keys, mut values) = (names.fields(), numbers.fields());
        let protocol = keys.next().unwrap_or_default();
        if values.next() != Some(protocol) {
            return Err(numbers.fault("the numbers of a protocol", Problem::Missing));
        }
        let is_wanted =
            |wanted: &(&str, usize, &[u8], &[u8])| wanted.1 == file && wanted.2 == protocol;
        if !PROTOCOLS.iter().any(is_wanted) {
            continue;
        }
        while let Some(key) = keys.next() {
            match PROTOCOLS
                .iter()
                .position(|wanted| is_wanted(wanted) && wanted.3 == key)
            {
                Some(position) => {
                    row[position] = values.number(PROTOCOLS[position].0)? as f64;
                    known += 1;
                }
                // Some, such as MaxConn, may be negative.
                None => values.skip(1),
            }
        }
    }
    if known == 0 {
        Err(lines.missing("a protocol"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
