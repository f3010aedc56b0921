//! What was written, and what a reader must therefore see.
//!
//! Each write of a key gets the next version. Writes that overlap in time may take effect in any order, so while at
//! least one is under way (a burst) nothing new can be said; but once every write of a burst is acknowledged, the
//! key holds one of them, and a read that is sent from then on must see the burst's first version or a later one:
//! the floor. A read that sees less is stale, however the server spread its work over threads; and none sees a
//! version that was never issued.
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};

/// Writes under way (upper 20 bits) and last version (lower 44 bits) are one word, so that versions are issued in
/// the order in which writes join a burst. The others are the lower 32 bits of versions not far below.
#[derive(Debug, Default)]
struct Entry {
    state: AtomicU64,
    burst_first: AtomicU32,
    floor: AtomicU32,
}

const VERSION_BITS: u32 = 44;
const VERSION_MASK: u64 = (1 << VERSION_BITS) - 1;
const ONE_UNDER_WAY: u64 = 1 << VERSION_BITS;
/// In a burst so long that versions would run this far ahead of the floor, writes share a version instead.
const MOST_ABOVE_FLOOR: u32 = 1 << 31;
/// Where this many writes of a key are under way, some that are lost among them for ever, further lost ones end: there is
/// room in the word for those that are truly under way.
const MOST_LOST: u64 = 1 << 19;

/// Keys in a segment beyond the first.
const SEGMENT_KEYS: u64 = 1 << 16;
/// Segments beyond the first; keys beyond these are not tracked.
const SEGMENTS: usize = 1 << 14;

/// Versions of all keys.
#[derive(Debug)]
pub(crate) struct Ledger {
    initial: Box<[Entry]>,
    /// For keys that inserts add: made one ahead of need, as the key space reaches them.
    added: Box<[OnceLock<Box<[Entry]>>]>,
}

/// A version that a read must not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongVersion {
    /// Older than what was acknowledged before the read was sent.
    #[error(
        "is stale: version {found}, though version {floor} or a later one was acknowledged before the read was sent"
    )]
    Stale { found: u64, floor: u64 },
    /// Newer than all that were written.
    #[error(
        "has version {found}, though this client has written versions up to {last} only (is the server's data from another run?)"
    )]
    NeverWritten { found: u64, last: u64 },
}

impl Ledger {
    /// Memory for each key, in bytes.
    pub(crate) const BYTES_PER_KEY: u64 = size_of::<Entry>() as u64;

    pub(crate) fn new(keys: u64) -> Self {
        Self {
            initial: entries(keys),
            added: std::iter::repeat_with(OnceLock::new)
                .take(SEGMENTS)
                .collect(),
        }
    }

    /// A write of `id` is about to be sent: the version to write.
    #[inline]
    pub(crate) fn begin_write(&self, id: u64) -> u64 {
        let Some(entry) = self.entry_or_new(id) else {
            return 1;
        };
        let floor = entry.floor.load(Acquire);
        let mut state = entry.state.load(Acquire);
        loop {
            let version = state & VERSION_MASK;
            let ahead = (version as u32).wrapping_sub(floor);
            let step = u64::from(ahead < MOST_ABOVE_FLOOR);
            match entry.state.compare_exchange_weak(
                state,
                state + ONE_UNDER_WAY + step,
                AcqRel,
                Acquire,
            ) {
                Ok(_) => {
                    let version = version + step;
                    if state >> VERSION_BITS == 0 {
                        entry.burst_first.store(version as u32, Release);
                    }
                    return version;
                }
                Err(current) => state = current,
            }
        }
    }

    /// The write of `id` was acknowledged.
    #[inline]
    pub(crate) fn end_write(&self, id: u64) {
        let Some(entry) = self.entry(id) else { return };
        let mut state = entry.state.load(Acquire);
        loop {
            // Where only this write is under way, the one that began the burst has ended or is this one, so the
            // burst's first version is settled; it stays so if the exchange succeeds, which needs that no other
            // write has begun since.
            let first = entry.burst_first.load(Acquire);
            match entry
                .state
                .compare_exchange_weak(state, state - ONE_UNDER_WAY, AcqRel, Acquire)
            {
                Ok(_) if state >> VERSION_BITS == 1 => {
                    // Another worker may just have ended a later burst.
                    let raise =
                        |floor: u32| (first.wrapping_sub(floor).cast_signed() > 0).then_some(first);
                    _ = entry.floor.fetch_update(AcqRel, Acquire, raise);
                    return;
                }
                Ok(_) => return,
                Err(current) => state = current,
            }
        }
    }

    /// The write of `id` was refused, and may or may not have had an effect: nothing can be concluded from its burst.
    pub(crate) fn abandon_write(&self, id: u64) {
        if let Some(entry) = self.entry(id) {
            entry.burst_first.store(entry.floor.load(Acquire), Release);
        }
        self.end_write(id);
    }

    /// The write of `id` was given up: whatever carries it may still bring it to the server, behind any number of later
    /// ones. So its burst never ends.
    pub(crate) fn lose_write(&self, id: u64) {
        if let Some(entry) = self.entry(id)
            && entry.state.load(Acquire) >> VERSION_BITS > MOST_LOST
        {
            self.end_write(id);
        }
    }

    /// The least version that a read of `id` may see if it is sent from now on.
    #[inline]
    pub(crate) fn floor(&self, id: u64) -> u64 {
        let Some(entry) = self.entry(id) else {
            return 0;
        };
        let floor = entry.floor.load(Acquire);
        let version = entry.state.load(Acquire) & VERSION_MASK;
        version - u64::from((version as u32).wrapping_sub(floor))
    }

    /// Judge the version that a read of `id` saw; `floor` is from when it was sent.
    #[inline]
    pub(crate) fn check(&self, id: u64, floor: u64, found: u64) -> Result<(), WrongVersion> {
        let Some(entry) = self.entry(id) else {
            return Ok(());
        };
        let last = entry.state.load(Acquire) & VERSION_MASK;
        if found > last {
            Err(WrongVersion::NeverWritten { found, last })
        } else if found < floor || found == 0 {
            Err(WrongVersion::Stale { found, floor })
        } else {
            Ok(())
        }
    }

    #[inline]
    fn entry(&self, id: u64) -> Option<&Entry> {
        match self.initial.get(id as usize) {
            Some(entry) => Some(entry),
            None => self.added_entry(id),
        }
    }

    fn added_entry(&self, id: u64) -> Option<&Entry> {
        let beyond = id - self.initial.len() as u64;
        let segment = self.added.get((beyond / SEGMENT_KEYS) as usize)?.get()?;
        segment.get((beyond % SEGMENT_KEYS) as usize)
    }

    #[inline]
    fn entry_or_new(&self, id: u64) -> Option<&Entry> {
        if id >= self.initial.len() as u64 {
            let index = ((id - self.initial.len() as u64) / SEGMENT_KEYS) as usize;
            // Once in 65,536 inserts: a megabyte.
            self.added.get(index)?.get_or_init(|| entries(SEGMENT_KEYS));
        }
        self.entry(id)
    }
}

fn entries(keys: u64) -> Box<[Entry]> {
    std::iter::repeat_with(Entry::default)
        .take(keys as usize)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    #[test]
    fn a_read_after_an_acknowledged_write_must_see_it() {
        let ledger = Ledger::new(1);
        assert_eq!(ledger.begin_write(0), 1);
        assert_eq!(ledger.floor(0), 0);
        ledger.end_write(0);
        assert_eq!(ledger.floor(0), 1);
        assert_eq!(ledger.begin_write(0), 2);
        assert_eq!(ledger.floor(0), 1);
        assert_eq!(ledger.check(0, 1, 1), Ok(()));
        assert_eq!(ledger.check(0, 1, 2), Ok(()));
        assert_eq!(
            ledger.check(0, 1, 3),
            Err(WrongVersion::NeverWritten { found: 3, last: 2 })
        );
        ledger.end_write(0);
        let floor = ledger.floor(0);
        assert_eq!(
            ledger.check(0, floor, 1),
            Err(WrongVersion::Stale { found: 1, floor: 2 })
        );
        assert_eq!(
            ledger.check(0, 0, 0),
            Err(WrongVersion::Stale { found: 0, floor: 0 })
        );
    }

    #[test]
    fn a_refused_write_raises_no_floor() {
        let ledger = Ledger::new(1);
        ledger.begin_write(0);
        ledger.end_write(0);
        ledger.begin_write(0);
        ledger.begin_write(0);
        ledger.abandon_write(0);
        ledger.end_write(0);
        assert_eq!(ledger.floor(0), 1);
        ledger.begin_write(0);
        ledger.end_write(0);
        assert_eq!(ledger.floor(0), 4);
    }

    #[test]
    fn a_lost_write_may_take_effect_whenever_it_likes() {
        let ledger = Ledger::new(2);
        for id in [0, 1] {
            ledger.begin_write(id);
            ledger.end_write(id);
        }
        assert_eq!(ledger.begin_write(0), 2);
        ledger.lose_write(0);
        assert_eq!(ledger.begin_write(0), 3);
        ledger.end_write(0);
        let floor = ledger.floor(0);
        assert_eq!(ledger.check(0, floor, 2), Ok(()));
        assert_eq!(ledger.check(0, floor, 3), Ok(()));
        for _ in 0..3 * MOST_LOST {
            ledger.begin_write(1);
            ledger.lose_write(1);
        }
        let state = ledger.initial[1].state.load(Acquire);
        assert_eq!(state >> VERSION_BITS, MOST_LOST);
        assert_eq!(ledger.floor(1), 1);
    }

    #[test]
    fn keys_that_inserts_add_are_tracked() {
        let ledger = Ledger::new(3);
        for id in [3, 4, 3 + SEGMENT_KEYS, 2 + SEGMENT_KEYS * SEGMENTS as u64] {
            assert_eq!(ledger.floor(id), 0);
            assert_eq!(ledger.begin_write(id), 1);
            ledger.end_write(id);
            assert_eq!(ledger.floor(id), 1, "{id}");
        }
        let untracked = 3 + SEGMENT_KEYS * SEGMENTS as u64;
        assert_eq!(ledger.begin_write(untracked), 1);
        ledger.end_write(untracked);
        assert_eq!(ledger.check(untracked, ledger.floor(untracked), 1), Ok(()));
    }

    #[test]
    fn versions_beyond_32_bits_compare_rightly() {
        let ledger = Ledger::new(1);
        let entry = &ledger.initial[0];
        entry.state.store((5 << 32) - 1, Release);
        entry.floor.store(u32::MAX - 9, Release);
        assert_eq!(ledger.floor(0), (5 << 32) - 10);
        assert_eq!(ledger.begin_write(0), 5 << 32);
        ledger.end_write(0);
        assert_eq!(ledger.floor(0), 5 << 32);
    }

    #[test]
    fn an_endless_burst_stops_issuing_versions_rather_than_raise_a_false_alarm() {
        let ledger = Ledger::new(1);
        ledger.begin_write(0);
        let entry = &ledger.initial[0];
        entry
            .state
            .store(ONE_UNDER_WAY | u64::from(MOST_ABOVE_FLOOR), Release);
        assert_eq!(ledger.begin_write(0), u64::from(MOST_ABOVE_FLOOR));
        ledger.end_write(0);
        ledger.end_write(0);
        assert_eq!(ledger.floor(0), 1);
    }

    /// One step of a made-up history of a linearizable register, with operations that overlap.
    #[derive(Debug, Clone)]
    enum Step {
        BeginWrite,
        Apply(prop::sample::Index),
        Acknowledge(prop::sample::Index),
        GiveUp(prop::sample::Index),
        SendRead,
        AnswerRead(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::BeginWrite),
            any::<prop::sample::Index>().prop_map(Step::Apply),
            any::<prop::sample::Index>().prop_map(Step::Acknowledge),
            any::<prop::sample::Index>().prop_map(Step::GiveUp),
            Just(Step::SendRead),
            any::<prop::sample::Index>().prop_map(Step::AnswerRead),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// No history of a correct server raises an alarm: writes take effect at any moment between being sent and
        /// acknowledged, or after being sent if they are given up, reads see the register at any moment between being sent and answered.
        #[test]
        fn a_correct_server_is_never_accused(steps in steps()) {
            let ledger = Ledger::new(1);
            let mut register = 0;
            let (mut sent, mut applied, mut lost) = (Vec::new(), Vec::new(), BTreeSet::new());
            let mut reads = Vec::<(u64, BTreeSet<u64>)>::new();
            for step in steps {
                match step {
                    Step::BeginWrite => sent.push(ledger.begin_write(0)),
                    Step::Apply(index) if !sent.is_empty() => {
                        register = sent.remove(index.index(sent.len()));
                        applied.push(register);
                        for (_, seen) in &mut reads {
                            seen.insert(register);
                        }
                    }
                    Step::Acknowledge(index) if !applied.is_empty() => {
                        let version = applied.remove(index.index(applied.len()));
                        if !lost.contains(&version) {
                            ledger.end_write(0);
                        }
                    }
                    Step::GiveUp(index) if !sent.is_empty() && lost.insert(*index.get(&sent)) => {
                        ledger.lose_write(0);
                    }
                    Step::SendRead if register > 0 => reads.push((ledger.floor(0), [register].into())),
                    Step::AnswerRead(index) if !reads.is_empty() => {
                        let (floor, seen) = reads.remove(index.index(reads.len()));
                        for version in seen {
                            prop_assert_eq!(ledger.check(0, floor, version), Ok(()));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn threads_never_accuse_a_correct_register() {
        let ledger = Ledger::new(1);
        let register = Mutex::new(0);
        let write = |_| {
            let version = ledger.begin_write(0);
            *register.lock().expect("no panic") = version;
            ledger.end_write(0);
        };
        write(());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..20_000).for_each(|_| write(())));
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let floor = ledger.floor(0);
                        let found = *register.lock().expect("no panic");
                        ledger.check(0, floor, found).expect("a correct register");
                    }
                });
            }
        });
        let last = *register.lock().expect("no panic");
        assert_eq!(ledger.floor(0).min(last), ledger.floor(0));
    }
}
