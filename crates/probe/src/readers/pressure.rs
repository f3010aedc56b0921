//! Time in which work stood still for want of a resource: `/proc/pressure/*`
//! (Documentation/accounting/psi.rst).

use crate::error::{Fault, Problem};
use crate::host::Host;
use crate::parse::{self, Lines};
use crate::probes::{Probe, column};
use crate::readers::Reader;
use crate::source::{Source, complaints};

const NEEDS: &str = "/proc/pressure: a kernel with pressure stall information, switched on";

/// File, and the shares that mean something there. The host's own `full` of the CPU is undefined and written as zero
/// (psi.rst); it is left out, as a zero that is none. `irq` has no `some`.
const RESOURCES: [(&str, &[&str]); 4] = [
    ("cpu", &["some"]),
    ("memory", &["some", "full"]),
    ("io", &["some", "full"]),
    ("irq", &["full"]),
];

struct Pressure {
    files: Vec<(&'static str, &'static [&'static str], Source)>,
    /// What was not there, and why.
    absent: String,
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let mut files = Vec::new();
    let mut absent = Vec::new();
    let mut unread = String::new();
    for (resource, shares) in RESOURCES {
        let opened = Source::open_small(host.path(&format!("proc/pressure/{resource}")));
        // A kernel that was started with psi=0 may still show the files, and refuse to read them.
        match opened.and_then(Source::readable) {
            Ok(source) => files.push((resource, shares, source)),
            Err(reason) => {
                absent.push(resource);
                if unread.is_empty() {
                    unread = reason.to_string();
                }
            }
        }
    }
    if files.is_empty() {
        let columns = RESOURCES
            .iter()
            .flat_map(|(resource, shares)| columns(resource, shares))
            .collect();
        let probe = Probe::new("pressure", NEEDS, columns);
        return vec![probe.missing_reader(format!(
            "this kernel gives no pressure stall information ({unread}); start it with psi=1 on its command line, \
             if it was built with CONFIG_PSI"
        ))];
    }
    let absent = match absent.as_slice() {
        [] => String::new(),
        names => format!("not given by this kernel: {}", names.join(", ")),
    };
    vec![Box::new(Pressure { files, absent })]
}

fn columns(
    resource: &'static str,
    shares: &'static [&'static str],
) -> impl Iterator<Item = String> {
    shares.iter().map(move |share| {
        column(
            "pressure_stall_seconds_total",
            &[("resource", resource), ("share", share)],
        )
    })
}

impl Reader for Pressure {
    fn probes(&self) -> Vec<Probe> {
        let columns = self
            .files
            .iter()
            .flat_map(|(resource, shares, _)| columns(resource, shares))
            .collect();
        let complaint = complaints(self.files.iter().map(|(_, _, source)| source));
        let mut probe = Probe::new("pressure", NEEDS, columns).untrusted_if(complaint);
        probe.note(&self.absent);
        vec![probe]
    }

    fn read(&mut self, row: &mut [f64]) {
        let mut start = 0;
        for (_, shares, source) in &mut self.files {
            let row = &mut row[start..start + shares.len()];
            source.read(|text| totals(text, shares, row));
            start += shares.len();
        }
    }
}

/// Stores the seconds stalled (`total=`, in microseconds) of each share.
fn totals(text: &[u8], shares: &[&str], row: &mut [f64]) -> Result<(), Fault> {
    let mut lines = Lines::new(text);
    let mut known = 0;
    while let Some(line) = lines.next()? {
        let mut fields = line.fields();
        let share = fields.next().unwrap_or_default();
        if let Some(position) = shares.iter().position(|known| known.as_bytes() == share) {
            let total = std::iter::from_fn(|| fields.next())
                .find_map(|field| field.strip_prefix(b"total="))
                .ok_or(line.fault("total", Problem::Missing))?;
            let microseconds =
                parse::unsigned(total).map_err(|problem| line.fault("total", problem))?;
            row[position] = microseconds as f64 / 1e6;
            known += 1;
        }
    }
    if known < shares.len() {
        Err(lines.missing("some or full"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
