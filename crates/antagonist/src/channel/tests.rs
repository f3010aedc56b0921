use super::*;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

/// A file of a test's own, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("antagonist-channel-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const RATE: u64 = 100_000_000;

#[test]
fn draws_queue_behind_each_other_at_the_rate() {
    let file = Scratch::new();
    let channel = Channel::create(&file.0, RATE).unwrap();
    // Far more than the kept bandwidth, so that only what was drawn before counts.
    let first = channel.draw(RATE * 10);
    let second = channel.draw(RATE);
    let third = channel.draw(RATE / 4);
    assert_eq!(second.0 - first.0, NANOSECONDS);
    assert_eq!(third.0 - second.0, NANOSECONDS / 4);
    assert_eq!(channel.carried_bytes(), RATE * 11 + RATE / 4);
}

#[test]
fn threads_and_openers_share_one_channel_and_lose_nothing() {
    let file = Scratch::new();
    let channel = Channel::create(&file.0, RATE).unwrap();
    let first = channel.draw(RATE * 60);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = Channel::open(&file.0).unwrap();
                for _ in 0..1000 {
                    let _ = own.draw(RATE / 1000);
                }
            });
        }
    });
    let last = channel.draw(0);
    assert_eq!(last.0 - first.0, 4 * NANOSECONDS);
    assert_eq!(channel.carried_bytes(), 64 * RATE);
}

#[test]
fn unused_bandwidth_is_kept_for_the_depth_only() {
    let file = Scratch::new();
    let channel = Channel::create(&file.0, RATE).unwrap();
    // As if nothing had been drawn for an hour.
    let hour = 3600 * NANOSECONDS;
    channel
        .words
        .free_at_ns()
        .store(monotonic_ns().saturating_sub(hour), Ordering::Relaxed);
    let depth = DEPTH.as_nanos() as u64;
    let before = monotonic_ns();
    let passage = channel.draw(RATE);
    assert!(passage.0 >= before - depth + NANOSECONDS);
    assert!(passage.0 <= monotonic_ns() - depth + NANOSECONDS);
}

#[test]
fn what_was_waited_for_has_passed() {
    let file = Scratch::new();
    let channel = Channel::create(&file.0, RATE).unwrap();
    let passage = channel.draw(RATE / 100);
    channel.wait_for(passage);
    assert!(monotonic_ns() >= passage.0);
    // No more than the rate and what was kept can be measured, however fast the host is.
    let (bytes, time) = channel.measure(Duration::from_millis(20));
    assert!(bytes as f64 <= RATE as f64 * (time + DEPTH).as_secs_f64());
}

#[test]
fn a_hold_leaves_the_fraction_to_all_who_draw_until_it_ends() {
    let file = Scratch::new();
    let channel = Channel::create(&file.0, RATE).unwrap();
    let first = channel.draw(RATE * 60);
    let mut hold = Hold::start(&file.0, 0.25).unwrap();
    assert_eq!(channel.bytes_per_second(), RATE);
    assert_eq!(channel.bytes_per_second_left(), RATE / 4);
    let second = channel.draw(RATE);
    assert_eq!(second.0 - first.0, 4 * NANOSECONDS);
    assert!(matches!(Hold::start(&file.0, 0.5), Err(Error::Held { .. })));
    let taken = hold.stop();
    assert_eq!(hold.stop(), taken);
    assert_eq!(channel.bytes_per_second_left(), RATE);
    drop(Hold::start(&file.0, 0.5).unwrap());
    assert_eq!(channel.bytes_per_second_left(), RATE);
}

#[test]
fn what_a_killed_holder_left_ends_by_itself() {
    let file = Scratch::new();
    let channel = Channel::create(&file.0, RATE).unwrap();
    let words = &channel.words;
    words.held_millionths().store(900_000, Ordering::Relaxed);
    let now = monotonic_ns();
    words.held_until_ns().store(now + 1000, Ordering::Relaxed);
    assert_eq!(left(words, now + 999), RATE / 10);
    assert_eq!(left(words, now + 1000), RATE);
    // And another may take over from then on.
    words.held_until_ns().store(now, Ordering::Relaxed);
    drop(Hold::start(&file.0, 0.5).unwrap());
}

#[test]
fn only_a_channel_is_opened() {
    let file = Scratch::new();
    let said = |path: &Path| Channel::open(path).unwrap_err().to_string();
    assert!(said(&file.0).contains("could not be opened"));
    for content in [vec![], vec![0; 4096], vec![1; 4096], b"rschann1".to_vec()] {
        std::fs::write(&file.0, content).unwrap();
        assert!(said(&file.0).contains("is not a regulated channel"));
    }
    assert!(said(&std::env::temp_dir()).contains("regulated channel"));
    // Making one replaces whatever is there.
    Channel::create(&file.0, RATE).unwrap();
    assert_eq!(Channel::open(&file.0).unwrap().bytes_per_second(), RATE);
    assert!(Channel::create(&file.0, 1).is_err());
}

#[test]
fn a_fraction_that_cannot_be_left_is_refused() {
    let file = Scratch::new();
    Channel::create(&file.0, RATE).unwrap();
    for fraction in [0.0, -1.0, 1.1, 1e-9, f64::NAN, f64::INFINITY] {
        let message = Hold::start(&file.0, fraction).unwrap_err().to_string();
        assert!(message.contains("cannot be left"), "{message}");
    }
}

proptest! {
    #[test]
    fn no_amount_overflows(bytes in any::<u64>(), rate in RATE_BOUNDS) {
        let nanoseconds = nanoseconds_for(bytes, rate);
        let exact = bytes as f64 / rate as f64 * 1e9;
        prop_assert!((nanoseconds as f64 - exact).abs() <= 1.0 + exact * 1e-9 || nanoseconds == u64::MAX);
    }
}
