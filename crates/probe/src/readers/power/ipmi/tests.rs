use std::io;

use super::*;
use crate::readers::tests::sample;
use proptest::prelude::*;

/// 220 W now, 8 to 500 W since the start, 216 W in the mean, over 1 s, measurement active.
const ANSWER: [u8; 19] = [
    0x00, 0xdc, 0xdc, 0x00, 0x08, 0x00, 0xf4, 0x01, 0xd8, 0x00, 0x5f, 0x33, 0x6b, 0x65, 0xe8, 0x03,
    0x00, 0x00, 0x40,
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
        (
            &[0xc1][..],
            "does not support power readings (DCMI; completion code 0xc1)",
        ),
        (
            &[0xd4, 0xdc],
            "refused a power reading (completion code 0xd4)",
        ),
        (&inactive, "is switched off"),
        (&ANSWER[..18], "answered with 18 bytes"),
        (&[0, 0xdd], "answered for another group (0xdd)"),
        (&[], "answered with 0 bytes"),
    ];
    for (answer, refusal) in refusals {
        let said = parse(answer).unwrap_err();
        assert!(said.contains(refusal), "{said}");
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
