use super::super::sheet::Channel;
use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Reads what the test sends it, and tells when it has.
struct Scripted {
    numbers: Receiver<Option<f64>>,
    dropped: Sender<()>,
}

impl Meter for Scripted {
    fn read(&mut self, sheet: &mut Sheet) {
        match self.numbers.recv() {
            Ok(Some(number)) => sheet.say(0, number, None),
            Ok(None) => sheet.fail(|| "no answer".to_owned()),
            Err(_) => {}
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.dropped.send(());
    }
}

fn scripted(first: &[Option<f64>]) -> (Background, Sender<Option<f64>>, Receiver<()>) {
    let (sender, numbers) = channel();
    let (dropped, gone) = channel();
    for number in first {
        sender.send(*number).unwrap();
    }
    let pace = Pace {
        interval: Duration::from_millis(1),
        share: 0,
        patience: Duration::from_secs(60),
    };
    let sheet = Sheet::new("command", &[Channel::watts("server")]);
    let meter = Box::new(Scripted { numbers, dropped });
    let background = Background::start(meter, sheet, pace).unwrap();
    (background, sender, gone)
}

/// How far the thread has come.
fn wait_for(background: &Background, attempts: u64) {
    let shared = &background.shared;
    assert!(shared.wait_until(Duration::from_secs(60), |state| state.attempts >= attempts));
}

#[test]
fn a_tick_takes_the_latest_value_until_it_is_too_old() {
    let (background, sender, _) = scripted(&[Some(250.0)]);
    let time = background.shared.slots[0].time.load(Ordering::Relaxed);
    let oldest = background.shared.oldest.load(Ordering::Relaxed);
    let at = |now| {
        let mut row = [0.0];
        background.write(&mut row, now);
        row[0]
    };
    assert_eq!(at(time), 250.0);
    assert_eq!(at(time + oldest), 250.0);
    assert!(at(time + oldest + 1).is_nan());
    // What cannot be true takes the place of what was.
    sender.send(Some(-1.0)).unwrap();
    wait_for(&background, 2);
    assert!(at(background.shared.slots[0].time.load(Ordering::Relaxed)).is_nan());
    drop(sender);
}

#[test]
fn a_failure_leaves_the_last_value_and_is_told() {
    let (background, sender, _) = scripted(&[Some(250.0), None]);
    wait_for(&background, 2);
    let mut row = [0.0];
    background.write(
        &mut row,
        background.shared.slots[0].time.load(Ordering::Relaxed),
    );
    assert_eq!(row[0], 250.0);
    assert_eq!(
        background.account().0,
        "1 of 2 readings failed, the first: no answer"
    );
    drop(sender);
}

#[test]
fn a_meter_that_never_answers_is_not_waited_for_twice() {
    let (background, sender, gone) = scripted(&[None, None]);
    assert!(!background.has_answered());
    drop(sender);
    drop(background);
    // Joined: the meter is gone already.
    gone.try_recv().unwrap();
}

#[test]
fn a_value_is_stale_after_three_intervals_and_the_time_that_reading_takes() {
    let began = clock::monotonic();
    let (sender, numbers) = channel();
    let (dropped, _gone) = channel();
    sender.send(Some(250.0)).unwrap();
    let interval = Duration::from_millis(50);
    let pace = Pace {
        interval,
        share: 0,
        patience: Duration::from_secs(60),
    };
    let sheet = Sheet::new("command", &[Channel::watts("server")]);
    let meter = Box::new(Scripted { numbers, dropped });
    let background = Background::start(meter, sheet, pace).unwrap();
    wait_for(&background, 1);
    let oldest = background.shared.oldest.load(Ordering::Relaxed);
    let least = 3 * interval.as_nanos() as u64;
    let elapsed = clock::monotonic() - began;
    assert!((least..=least + elapsed).contains(&oldest), "{oldest}");
    drop(sender);
}
