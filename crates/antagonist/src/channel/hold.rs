//! A part of a channel taken away for as long as this process wants and lives.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Channel, MILLION, monotonic_ns};
use crate::{Error, Result};

/// How long a hold lasts beyond the last time that it was put off: what a killed process leaves behind is gone by then.
const LEASE: Duration = Duration::from_millis(500);
const RENEWAL: Duration = Duration::from_millis(50);

/// Takes a part of a channel's bandwidth away until dropped.
///
/// It does not race for tokens with those who draw, which would leave each a share by their numbers: it lowers the
/// rate at which there are any, so that what is left is the fraction asked for, however many want it.
#[derive(Debug)]
pub struct Hold {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<u64>>,
    taken_bytes: u64,
}

impl Hold {
    /// Leaves `fraction` of the channel at `path`. Refused unless `0 < fraction <= 1`, and while another process holds
    /// a part ([`Error::Held`]).
    pub fn start(path: &Path, fraction: f64) -> Result<Self> {
        let held_millionths = (MILLION as f64 * (1.0 - fraction)).round();
        if !(fraction > 0.0 && fraction <= 1.0) || held_millionths >= MILLION as f64 {
            return Err(Error::Argument(format!(
                "a fraction of {fraction} cannot be left of a channel: it must be above 0 and at most 1"
            )));
        }
        let channel = Channel::open(path)?;
        let words = &channel.words;
        let now = monotonic_ns();
        let until = words.held_until_ns().load(Ordering::Acquire);
        let leased = now + LEASE.as_nanos() as u64;
        let free = until <= now
            && words
                .held_until_ns()
                .compare_exchange(until, leased, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if !free {
            return Err(Error::Held(path.to_owned()));
        }
        words
            .held_millionths()
            .store(held_millionths as u64, Ordering::Relaxed);
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("channel-hold".into())
            .spawn(move || keep(&channel, now, &stopped))
            .map_err(ceiling::Error::host(
                "an antagonist's thread could not be started",
            ))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            taken_bytes: 0,
        })
    }

    /// Gives the part back; bytes that the channel could have carried meanwhile and did not let through. Idempotent.
    pub fn stop(&mut self) -> u64 {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            self.taken_bytes = thread.join().unwrap_or_default();
        }
        self.taken_bytes
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.stop();
    }
}

fn keep(channel: &Channel, start_ns: u64, stopped: &mpsc::Receiver<()>) -> u64 {
    let words = &channel.words;
    while stopped.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Timeout) {
        let until = monotonic_ns() + LEASE.as_nanos() as u64;
        words.held_until_ns().store(until, Ordering::Release);
    }
    words.held_until_ns().store(0, Ordering::Release);
    let seconds = (monotonic_ns() - start_ns) as f64 / 1e9;
    let held = words.held_millionths().load(Ordering::Relaxed) as f64 / MILLION as f64;
    (seconds * held * channel.bytes_per_second() as f64) as u64
}
