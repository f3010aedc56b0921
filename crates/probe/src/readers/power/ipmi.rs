//! What the whole server takes, as its management controller measures it: *Get Power Reading* of DCMI 1.5, section 6.6.1,
//! over IPMI.
//!
//! An answer takes 10 to 500 ms, in which a kernel thread may poll the controller, so it is asked seldom.

use std::io;
use std::time::Duration;

use super::background::Pace;
use super::ipmi_device::Device;
use super::sheet::{Channel, Gives, Sheet};
use super::{ABSENT, About, Found, Meter};
use crate::host::Host;
use crate::readers::Reader;

const NEEDS: &str = "a management controller with DCMI, the modules ipmi_si and ipmi_devintf, and the right to /dev/ipmi0 (root's)";

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

/// How a management controller is asked.
pub(super) trait Transport: Send {
    /// Sends a request and waits for its answer, the completion code first; how long it is.
    fn ask(
        &mut self,
        network_function: u8,
        command: u8,
        request: &[u8],
        answer: &mut [u8],
    ) -> io::Result<usize>;
}

/// Why an answer holds no power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the management controller answered with {0} bytes, which is no power reading")]
    Length(usize),
    #[error("the management controller knows no power readings (DCMI; completion code {0:#04x})")]
    Unknown(u8),
    #[error("the management controller refused a power reading (completion code {0:#04x})")]
    Code(u8),
    #[error("the management controller answered for another group ({0:#04x})")]
    Group(u8),
    #[error(
        "the management controller's power measurement is switched off (activate it in its settings)"
    )]
    Inactive,
}

/// Watts at this moment, out of an answer with its completion code.
fn parse(answer: &[u8]) -> Result<u16, Refusal> {
    match answer {
        [] => Err(Refusal::Length(0)),
        // Invalid command, command not for this unit, parameter not for this unit.
        [code @ (0xc1 | 0xc2 | 0xcc | 0xd6), ..] => Err(Refusal::Unknown(*code)),
        [code @ 1..=0xff, ..] => Err(Refusal::Code(*code)),
        [0, group, ..] if *group != GROUP => Err(Refusal::Group(*group)),
        // Group, four powers of 16 bits, time and period of 32 bits, state.
        [0, _, low, high, middle @ .., state] if middle.len() == 14 => {
            // Bit 6: measurement is active.
            if state & 0x40 == 0 {
                Err(Refusal::Inactive)
            } else {
                Ok(u16::from_le_bytes([*low, *high]))
            }
        }
        _ => Err(Refusal::Length(answer.len())),
    }
}

struct Dcmi {
    transport: Box<dyn Transport>,
}

pub(super) fn build(host: &Host) -> Box<dyn Reader> {
    let about = About::new("ipmi_dcmi", NEEDS);
    if !host.is_live() {
        return about.missing(format!(
            "{ABSENT}a recorded tree has no management controller"
        ));
    }
    match Device::open() {
        Ok(Some(device)) => found(about, Box::new(device)).beside(PACE),
        Ok(None) => about.missing(format!(
            "{ABSENT}no /dev/ipmi0 (no management controller, or the module ipmi_devintf is not loaded)"
        )),
        Err(reason) => about.missing(reason),
    }
}

fn found(about: About, transport: Box<dyn Transport>) -> Found {
    Found {
        about,
        channels: vec![Channel {
            domain: "server".to_owned(),
            gives: Gives::Watts { never_zero: true },
        }],
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
                Err(refusal) => sheet.fail(|| refusal.to_string()),
            },
            Err(error) => {
                sheet.fail(|| format!("the management controller did not answer: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::testing::sample;
    use proptest::prelude::*;

    /// 220 W now, 8 to 500 W since the start, 216 W in the mean, over 1 s, measurement active.
    const ANSWER: [u8; 19] = [
        0x00, 0xdc, 0xdc, 0x00, 0x08, 0x00, 0xf4, 0x01, 0xd8, 0x00, 0x5f, 0x33, 0x6b, 0x65, 0xe8,
        0x03, 0x00, 0x00, 0x40,
    ];

    /// A management controller that gives recorded answers, one after the other.
    struct Simulator(Vec<io::Result<Vec<u8>>>);

    impl Transport for Simulator {
        fn ask(
            &mut self,
            network_function: u8,
            command: u8,
            request: &[u8],
            answer: &mut [u8],
        ) -> io::Result<usize> {
            assert_eq!((network_function, command), (0x2c, 0x02));
            assert_eq!(request, [0xdc, 1, 0, 0]);
            let bytes = self.0.remove(0)?;
            answer[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }

    fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut answer = ANSWER.to_vec();
        change(&mut answer);
        answer
    }

    #[test]
    fn the_power_at_this_moment_is_read() {
        assert_eq!(parse(&ANSWER), Ok(220));
    }

    #[test]
    fn every_refusal_is_told() {
        let inactive = changed(|answer| answer[18] = 0);
        let refusals = [
            (&[0xc1][..], Refusal::Unknown(0xc1)),
            (&[0xd4, 0xdc], Refusal::Code(0xd4)),
            (&inactive, Refusal::Inactive),
            (&ANSWER[..18], Refusal::Length(18)),
            (&[0, 0xdd], Refusal::Group(0xdd)),
            (&[], Refusal::Length(0)),
        ];
        for (answer, refusal) in refusals {
            assert_eq!(parse(answer), Err(refusal));
        }
    }

    #[test]
    fn what_is_no_power_is_missing() {
        let answers = vec![
            Ok(ANSWER.to_vec()),
            Ok(changed(|answer| answer[2..4].fill(0xff))),
            Ok(changed(|answer| answer[2..4].fill(0))),
            Err(io::Error::from(io::ErrorKind::TimedOut)),
            Ok(ANSWER.to_vec()),
        ];
        let about = About::new("ipmi_dcmi", NEEDS);
        let mut reader = found(about, Box::new(Simulator(answers))).at_each_tick();
        let column = r#"power_watts{domain="server",meter="ipmi_dcmi"}"#;
        let seen: Vec<f64> = (0..5).map(|_| sample(&mut *reader).get(column)).collect();
        assert_eq!((seen[0], seen[4]), (220.0, 220.0));
        assert!(seen[1..4].iter().all(|watts| watts.is_nan()), "{seen:?}");
        let reason = &reader.probes()[0].reason;
        assert!(
            reason.contains("1 of 5 readings failed") && reason.contains("2 values of 5 readings"),
            "{reason}"
        );
    }

    proptest! {
        #[test]
        fn any_answer_is_power_or_refused(answer in prop::collection::vec(any::<u8>(), 0..40)) {
            if parse(&answer).is_ok() {
                prop_assert!(answer.len() == 19 && answer[0] == 0 && answer[1] == 0xdc);
            }
        }
    }
}
