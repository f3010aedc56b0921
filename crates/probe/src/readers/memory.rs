//! Memory by kind and what moves in and out of it: `/proc/meminfo` and `/proc/vmstat` (proc(5)).
//!
//! Holds the legend of Awasthi et al. 2015, Table 3 (Map = mapped + anonymous, Buff, Cached, Slab, Inact) and the rest
//! of what tells memory pressure.

use crate::error::{Fault, Problem};
use crate::host::Host;
use crate::parse::{Fields, Lines};
use crate::probes::{Probe, column};
use crate::readers::Reader;
use crate::source::Source;

const NEEDS: &str = "/proc/meminfo and /proc/vmstat";

/// Kind, and its key in `/proc/meminfo`, which counts in KiB.
const KINDS: [(&str, &[u8]); 14] = [
    ("total", b"MemTotal"),
    ("free", b"MemFree"),
    ("available", b"MemAvailable"),
    ("mapped", b"Mapped"),
    ("anonymous", b"AnonPages"),
    ("buffers", b"Buffers"),
    ("cached", b"Cached"),
    ("slab", b"Slab"),
    ("inactive", b"Inactive"),
    ("active", b"Active"),
    ("dirty", b"Dirty"),
    ("writeback", b"Writeback"),
    ("swap_total", b"SwapTotal"),
    ("swap_free", b"SwapFree"),
];
/// Kinds that are counted in huge pages; their columns follow.
const HUGE_PAGES: [(&str, &[u8]); 2] = [
    ("huge_pages_total", b"HugePages_Total"),
    ("huge_pages_free", b"HugePages_Free"),
];

/// Column, key in `/proc/vmstat`, and whether it counts pages that are to become bytes.
const EVENTS: [(&str, &[u8], bool); 6] = [
    ("swap_in_bytes_total", b"pswpin", true),
    ("swap_out_bytes_total", b"pswpout", true),
    ("page_faults_major_total", b"pgmajfault", false),
    (
        r#"refaults_total{kind="anonymous"}"#,
        b"workingset_refault_anon",
        false,
    ),
    (
        r#"refaults_total{kind="file"}"#,
        b"workingset_refault_file",
        false,
    ),
    ("out_of_memory_kills_total", b"oom_kill", false),
];
/// Kernels before 5.9 counted only files' refaults, under this name.
const OLD_FILE_REFAULTS: &[u8] = b"workingset_refault";
const FILE_REFAULTS: usize = 4;

struct Meminfo(Source);

struct Vmstat {
    source: Source,
    page_bytes: f64,
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let meminfo: Box<dyn Reader> = match Source::open(host.path("proc/meminfo")) {
        Ok(source) => Box::new(Meminfo(source)),
        Err(error) => meminfo_probe().missing_reader(error.to_string()),
    };
    let vmstat: Box<dyn Reader> = match Source::open(host.path("proc/vmstat")) {
        Ok(source) => Box::new(Vmstat {
            source,
            page_bytes: host.page_bytes as f64,
        }),
        Err(error) => vmstat_probe().missing_reader(error.to_string()),
    };
    vec![meminfo, vmstat]
}

fn meminfo_probe() -> Probe {
    let columns = KINDS
        .iter()
        .chain(&HUGE_PAGES)
        .map(|(kind, _)| column("memory_bytes", &[("kind", kind)]))
        .collect();
    Probe::new("memory", NEEDS, columns)
}

fn vmstat_probe() -> Probe {
    Probe::new(
        "memory_traffic",
        NEEDS,
        EVENTS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
    )
}

impl Reader for Meminfo {
    fn probes(&self) -> Vec<Probe> {
        vec![meminfo_probe().untrusted_if(self.0.complaint())]
    }

    fn read(&mut self, row: &mut [f64]) {
        self.0.read(|text| kinds(text, row));
    }
}

impl Reader for Vmstat {
    fn probes(&self) -> Vec<Probe> {
        vec![vmstat_probe().untrusted_if(self.source.complaint())]
    }

    fn read(&mut self, row: &mut [f64]) {
        let page_bytes = self.page_bytes;
        self.source.read(|text| events(text, page_bytes, row));
    }
}

fn kinds(text: &[u8], row: &mut [f64]) -> Result<(), Fault> {
    let mut lines = Lines::new(text);
    let (mut huge_pages, mut huge_page_bytes) = ([f64::NAN; HUGE_PAGES.len()], f64::NAN);
    let mut known = 0;
    while let Some(line) = lines.next()? {
        let colon = memchr::memchr(b':', line.text).ok_or(line.fault("a key", Problem::Missing))?;
        let key = &line.text[..colon];
        let mut fields = Fields::new(&line.text[colon + 1..], line.number);
        if let Some(position) = KINDS.iter().position(|(_, known)| *known == key) {
            row[position] = fields.number(KINDS[position].0)? as f64 * 1024.0;
            known += 1;
        } else if let Some(position) = HUGE_PAGES.iter().position(|(_, known)| *known == key) {
            huge_pages[position] = fields.number(HUGE_PAGES[position].0)? as f64;
        } else if key == b"Hugepagesize" {
            huge_page_bytes = fields.number("Hugepagesize")? as f64 * 1024.0;
        }
    }
    for (value, pages) in row[KINDS.len()..].iter_mut().zip(huge_pages) {
        *value = pages * huge_page_bytes;
    }
    if known == 0 {
        Err(lines.missing("MemTotal"))
    } else {
        Ok(())
    }
}

fn events(text: &[u8], page_bytes: f64, row: &mut [f64]) -> Result<(), Fault> {
    let mut lines = Lines::new(text);
    let mut known = 0;
    while let Some(line) = lines.next()? {
        let mut fields = line.fields();
        let key = fields.next().unwrap_or_default();
        if let Some(position) = EVENTS.iter().position(|(_, known, _)| *known == key) {
            let (name, _, pages) = EVENTS[position];
            row[position] = fields.number(name)? as f64 * if pages { page_bytes } else { 1.0 };
            known += 1;
        } else if key == OLD_FILE_REFAULTS {
            row[FILE_REFAULTS] = fields.number("workingset_refault")? as f64;
            known += 1;
        }
    }
    if known == 0 {
        Err(lines.missing("pgmajfault"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
