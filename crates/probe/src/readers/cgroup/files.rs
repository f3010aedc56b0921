//! The files of a control group, of both versions.

use crate::error::{Fault, Problem};
use crate::parse::{self, Lines};

/// The numbers of lines `key number`, each stored where its key says; several keys may add up to one value.
pub(super) fn keyed(
    text: &[u8],
    keys: &[(&[u8], usize, f64)],
    row: &mut [f64],
) -> Result<(), Fault> {
    let mut lines = Lines::new(text);
    let mut found = 0;
    while let Some(line) = lines.next()? {
        let mut fields = line.fields();
        let key = fields.next().unwrap_or_default();
        for (_, position, factor) in keys.iter().filter(|(known, ..)| *known == key) {
            let number = fields.clone().number("a counter of the group")? as f64 / factor;
            let value = &mut row[*position];
            *value = if value.is_nan() {
                number
            } else {
                *value + number
            };
            found += 1;
        }
    }
    if found == 0 {
        Err(lines.missing("a counter of the group"))
    } else {
        Ok(())
    }
}

/// A limit in bytes, or NaN where there is none: `max` in v2, and in v1 what does not fit in memory at all.
pub(super) fn limit(text: &[u8]) -> Result<f64, Fault> {
    // v1 writes the largest number of whole pages that a signed number of bytes can hold.
    const UNLIMITED: u64 = i64::MAX as u64 - (1 << 20);
    let line = Lines::new(text).expect("memory limit")?;
    if line.text == b"max" {
        return Ok(f64::NAN);
    }
    let number = line.fields().number("memory limit")?;
    Ok(if number >= UNLIMITED {
        f64::NAN
    } else {
        number as f64
    })
}

/// Devices whose traffic is another's as well, by major number.
pub(super) type Layers = Vec<u64>;

/// The major numbers of devices that lie over others, from `/proc/devices`.
pub(super) fn layers(devices: &str) -> Layers {
    const NAMES: [&str; 6] = ["loop", "ramdisk", "zram", "device-mapper", "md", "mdp"];
    let blocks = devices
        .split_once("Block devices:")
        .map_or("", |(_, blocks)| blocks);
    let numbered = blocks
        .lines()
        .filter_map(|line| line.trim().split_once(' '));
    numbered
        .filter(|(_, name)| NAMES.contains(name))
        .filter_map(|(major, _)| major.parse().ok())
        .collect()
}

/// Bytes read and written of v2's `io.stat`: `8:0 rbytes=1 wbytes=2 ...`.
pub(super) fn io_stat(text: &[u8], layers: &Layers) -> Result<[f64; 2], Fault> {
    let mut sums = [0.0; 2];
    let mut lines = Lines::new(text);
    while let Some(line) = lines.next()? {
        let mut fields = line.fields();
        if is_layer(fields.next().unwrap_or_default(), layers) {
            continue;
        }
        while let Some(field) = fields.next() {
            for (sum, key) in sums.iter_mut().zip([&b"rbytes="[..], b"wbytes="]) {
                if let Some(number) = field.strip_prefix(key) {
                    *sum += parse::unsigned(number)
                        .map_err(|problem| line.fault("rbytes or wbytes", problem))?
                        as f64;
                }
            }
        }
    }
    Ok(sums)
}

/// Bytes read and written of v1's `blkio.throttle.io_service_bytes`: `8:0 Read 1`, and last `Total 3`.
///
/// Where it names no device, they are not known: many kernels count only groups that have a throttle.
pub(super) fn io_service_bytes(text: &[u8], layers: &Layers) -> Result<[f64; 2], Fault> {
    let mut sums = [f64::NAN; 2];
    let mut lines = Lines::new(text);
    while let Some(line) = lines.next()? {
        let mut fields = line.fields();
        let device = fields
            .next()
            .ok_or(line.fault("device", Problem::Missing))?;
        let place = match fields.next() {
            Some(b"Read") => 0,
            Some(b"Write") => 1,
            _ => continue,
        };
        let bytes = fields.number("bytes of a device")?;
        let counted = if is_layer(device, layers) { 0 } else { bytes };
        sums[place] = if sums[place].is_nan() {
            0.0
        } else {
            sums[place]
        } + counted as f64;
    }
    Ok(sums)
}

fn is_layer(device: &[u8], layers: &Layers) -> bool {
    let major = memchr::memchr(b':', device).map_or(device, |colon| &device[..colon]);
    parse::unsigned(major).is_ok_and(|major| layers.contains(&major))
}

#[cfg(test)]
mod tests;
