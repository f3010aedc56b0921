//! What whole disks read and write, how long it takes and how much waits: `/proc/diskstats`
//! (Documentation/admin-guide/iostats.rst).

use std::fs;
use std::path::Path;

use crate::error::{Fault, Problem};
use crate::host::Host;
use crate::parse::{Fields, Lines};
use crate::probes::{Probe, column};
use crate::readers::Reader;
use crate::readers::late::{Late, position};
use crate::source::Source;

const NEEDS: &str = "/proc/diskstats with a disk in it";

/// Columns of a disk, in their order in a row.
const COLUMNS: [&str; 9] = [
    "disk_read_bytes_total",
    "disk_write_bytes_total",
    "disk_reads_total",
    "disk_writes_total",
    "disk_read_seconds_total",
    "disk_write_seconds_total",
    "disk_busy_seconds_total",
    "disk_queue_seconds_total",
    "disk_in_flight",
];

/// `/proc/diskstats` counts in sectors of this size whatever the disk's own.
const SECTOR_BYTES: f64 = 512.0;

/// Devices that are no disks of their own: memory, files, optical and floppy drives, and layers over other disks, whose
/// traffic would be counted twice.
const NOT_DISKS: [&str; 7] = ["loop", "ram", "zram", "sr", "fd", "dm-", "md"];

/// More disks than this are not followed; the reason says so.
const MOST_DISKS: usize = 256;

struct Disk {
    source: Source,
    /// Every device seen at the start, in the order of the file.
    devices: Vec<Device>,
    disks: usize,
    /// Disks that came after the start, and have no columns.
    late: Late,
    left_out: usize,
}

struct Device {
    name: String,
    /// Where its columns are, or None if it is not a disk of its own.
    disk: Option<usize>,
    times: [Milliseconds; 4],
}

/// A count of milliseconds that the kernel writes as 32 bits, and that therefore starts over after 49.7 days.
#[derive(Clone, Copy, Default)]
struct Milliseconds {
    last: u64,
    total: u64,
}

impl Milliseconds {
    /// Seconds in all, when the file says `now`.
    fn seconds(&mut self, now: u64) -> f64 {
        // A step back by more than half of the range is a start over; a smaller one is a counter that goes backwards,
        // which is passed on to be noticed.
        const RANGE: u64 = 1 << 32;
        if now < self.last && self.last < RANGE && self.last - now > RANGE / 2 {
            self.total += RANGE;
        }
        self.last = now;
        self.total.saturating_add(now) as f64 / 1e3
    }
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let probe = Probe::new("disk", NEEDS, Vec::new());
    let path = host.path("proc/diskstats");
    let source = match Source::open(&path) {
        Ok(source) => source,
        Err(error) => return vec![probe.missing_reader(error.to_string())],
    };
    let text = fs::read(&path).unwrap_or_default();
    let blocks = host.path("sys/block");
    let mut devices = Vec::new();
    let (mut disks, mut left_out) = (0, 0);
    let mut lines = Lines::new(&text);
    while let Ok(Some(line)) = lines.next() {
        let mut fields = line.fields();
        fields.skip(2);
        let Some(name) = fields.next() else { continue };
        let name = String::from_utf8_lossy(name).into_owned();
        let disk = match is_disk(&name, &blocks) {
            false => None,
            true if disks >= MOST_DISKS => {
                left_out += 1;
                None
            }
            true => {
                disks += 1;
                Some(disks - 1)
            }
        };
        devices.push(Device {
            name,
            disk,
            times: Default::default(),
        });
    }
    if disks == 0 {
        return vec![probe.missing_reader(format!("{} lists no disk", path.display()))];
    }
    vec![Box::new(Disk {
        source,
        devices,
        disks,
        late: Late::default(),
        left_out,
    })]
}

/// Whether a device of `/proc/diskstats` is a whole disk of its own.
fn is_disk(name: &str, blocks: &Path) -> bool {
    if is_no_disk(name) {
        return false;
    }
    if !blocks.is_dir() {
        return !looks_like_partition(name);
    }
    // Partitions have no folder here. A device of no size is an idle slot, as of network block devices.
    let size = fs::read_to_string(blocks.join(name).join("size"));
    blocks.join(name).exists() && size.map_or(true, |size| size.trim() != "0")
}

fn is_no_disk(name: &str) -> bool {
    NOT_DISKS.iter().any(|prefix| name.starts_with(prefix))
}

/// By name alone: `sda1`, `vda2`, `nvme0n1p3`, `mmcblk0p1`.
fn looks_like_partition(name: &str) -> bool {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    if stem.len() == name.len() {
        return false;
    }
    match stem.strip_suffix('p') {
        Some(disk) => disk.ends_with(|character: char| character.is_ascii_digit()),
        None => ["sd", "vd", "hd", "xvd"]
            .iter()
            .any(|prefix| stem.starts_with(prefix)),
    }
}

impl Reader for Disk {
    fn probes(&self) -> Vec<Probe> {
        let columns = self
            .devices
            .iter()
            .filter(|device| device.disk.is_some())
            .flat_map(|device| {
                COLUMNS
                    .iter()
                    .map(|name| column(name, &[("device", &device.name)]))
            })
            .collect();
        let mut probe = Probe::new("disk", NEEDS, columns).untrusted_if(self.source.complaint());
        self.late.tell(&mut probe);
        if self.left_out > 0 {
            probe.note(format!(
                "{} disks more than the {MOST_DISKS} that are sampled",
                self.left_out
            ));
        }
        vec![probe]
    }

    fn read(&mut self, row: &mut [f64]) {
        let Self {
            source,
            devices,
            late,
            ..
        } = self;
        debug_assert_eq!(row.len(), self.disks * COLUMNS.len());
        source.read(|text| {
            let mut lines = Lines::new(text);
            let mut expected = 0;
            while let Some(line) = lines.next()? {
                let mut fields = line.fields();
                fields.number("major number")?;
                fields.number("minor number")?;
                let name = fields
                    .next()
                    .ok_or(line.fault("device", Problem::Missing))?;
                let is = |device: &Device| device.name.as_bytes() == name;
                let Some(position) = position(devices, expected, is) else {
                    late.note(name, |name| is_no_disk(name) || looks_like_partition(name));
                    continue;
                };
                expected = position + 1;
                let device = &mut devices[position];
                if let Some(disk) = device.disk {
                    let start = disk * COLUMNS.len();
                    values(
                        fields,
                        &mut device.times,
                        &mut row[start..start + COLUMNS.len()],
                    )?;
                }
            }
            if expected == 0 {
                return Err(lines.missing("a disk"));
            }
            Ok(())
        });
    }
}

/// Stores what follows the name: 11 fields at least, of which kernels since 4.18 and 5.5 have 15 and 17.
fn values(
    mut fields: Fields<'_>,
    times: &mut [Milliseconds; 4],
    row: &mut [f64],
) -> Result<(), Fault> {
    let reads = fields.number("reads")?;
    fields.skip(1);
    let sectors_read = fields.number("sectors read")?;
    let read_time = fields.number("time reading")?;
    let writes = fields.number("writes")?;
    fields.skip(1);
    let sectors_written = fields.number("sectors written")?;
    let write_time = fields.number("time writing")?;
    let in_flight = fields.number("requests in flight")?;
    let busy_time = fields.number("time busy")?;
    let queue_time = fields.number("weighted time")?;
    let values = [
        sectors_read as f64 * SECTOR_BYTES,
        sectors_written as f64 * SECTOR_BYTES,
        reads as f64,
        writes as f64,
        times[0].seconds(read_time),
        times[1].seconds(write_time),
        times[2].seconds(busy_time),
        times[3].seconds(queue_time),
        in_flight as f64,
    ];
    row.copy_from_slice(&values);
    Ok(())
}

#[cfg(test)]
mod tests;
