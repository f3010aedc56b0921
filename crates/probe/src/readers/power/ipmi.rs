//! What the whole server takes, as its management controller measures it: *Get Power Reading* of DCMI 1.5, section 6.6.1,
//! over IPMI.
//!
//! An answer takes 10 to 500 ms, in which a kernel thread may poll the controller, so it is asked seldom.

use std::time::Duration;

use super::background::Pace;
use super::found::Found;
use super::ipmi_device::{Device, Transport};
use super::meter::{ABSENT, About, Meter};
use super::sheet::{Channel, Sheet};
use crate::host::Host;
use crate::readers::Reader;

const NEEDS: &str = "a management controller with DCMI, the modules ipmi_si and ipmi_devintf, and access to /dev/ipmi0 (root)";

/// Network function of the DCMI group, its command, and the group's number, which begins request and answer.
const NETWORK_FUNCTION: u8 = 0x2c;
const GET_POWER_READING: u8 = 0x02;
const GROUP: u8 = 0xdc;
/// The mode of system power statistics, its attributes, and a byte that is reserved.
const REQUEST: [u8; 4] = [GROUP, 0x01, 0x00, 0x00];

const PACE: Pace = Pace {
    interval: Duration::from_secs(1),
    share: 10,
    patience: Duration::from_secs(5),
};

/// Watts at this moment, out of an answer with its completion code; else why there are none.
fn parse(answer: &[u8]) -> Result<u16, String> {
    Err(match answer {
        // Invalid command, command not for this unit, parameter not for this unit.
        [code @ (0xc1 | 0xc2 | 0xcc | 0xd6), ..] => format!(
            "the management controller does not support power readings (DCMI; completion code {code:#04x})"
        ),
        [code @ 1..=0xff, ..] => format!(
            "the management controller refused a power reading (completion code {code:#04x})"
        ),
        [0, group, ..] if *group != GROUP => {
            format!("the management controller answered for another group ({group:#04x})")
        }
        // Group, four powers of 16 bits, time and period of 32 bits, state.
        [0, _, low, high, middle @ .., state] if middle.len() == 14 => {
            // Bit 6: measurement is active.
            if state & 0x40 != 0 {
                return Ok(u16::from_le_bytes([*low, *high]));
            }
            "the management controller's power measurement is switched off (activate it in its settings)".to_owned()
        }
        _ => format!(
            "the management controller answered with {} bytes, which is not a power reading",
            answer.len()
        ),
    })
}

struct Dcmi {
    transport: Box<dyn Transport>,
}

pub(super) fn build(host: &Host) -> Box<dyn Reader> {
    let about = About::new("ipmi_dcmi", NEEDS).expecting(&Channel::watts("server"));
    if !host.is_live() {
        return about.missing(format!(
            "{ABSENT}a recorded tree has no management controller"
        ));
    }
    match Device::open() {
        Ok(Some(device)) => found(about, Box::new(device)).in_background(PACE),
        Ok(None) => about.missing(format!(
            "{ABSENT}no /dev/ipmi0 (no management controller, or the module ipmi_devintf is not loaded)"
        )),
        Err(reason) => about.missing(reason),
    }
}

fn found(about: About, transport: Box<dyn Transport>) -> Found {
    Found {
        about,
        channels: vec![Channel::watts_above_zero("server")],
        meter: Box::new(Dcmi { transport }),
    }
}

impl Meter for Dcmi {
    fn read(&mut self, sheet: &mut Sheet) {
        let mut answer = [0; 64];
        let asked = self
            .transport
            .ask(NETWORK_FUNCTION, GET_POWER_READING, &REQUEST, &mut answer);
        match asked {
            Ok(length) => match parse(&answer[..length.min(answer.len())]) {
                // What controllers say that do not know.
                Ok(u16::MAX) => sheet.say(0, f64::INFINITY, None),
                Ok(watts) => sheet.say(0, f64::from(watts), None),
                Err(refusal) => sheet.fail(|| refusal),
            },
            Err(error) => {
                sheet.fail(|| format!("the management controller did not answer: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
