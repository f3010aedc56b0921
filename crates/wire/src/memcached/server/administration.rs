//! Command lines of those who look after a server. What tunes memcached's slabs and LRU queues, none of which need be
//! behind a server of this crate, is answered as memcached answers it where they are switched off (`no_slab_reassign`, `no_lru_maintainer`,
//! `no_lru_crawler`).

use super::command::{Command, DumpForm, Watched};
use super::line::{Line, Words, whole};
use super::number::parse_u32;

const ERROR: Command<'static> = Command::Reject("ERROR");
const BAD_LINE: Command<'static> = Command::Reject("CLIENT_ERROR bad command line format");
const OK: Command<'static> = Command::Answer("OK");

/// The class that all items are told to be of.
const ONLY_CLASS: u32 = 1;

/// memcached has classes from 1 up to this.
const CLASS_MAX: u32 = 63;

/// `slabs reassign SOURCE DESTINATION`, `slabs automove LEVEL` or `slabs automove ratio RATIO`.
pub(super) fn slabs<'a>(words: &Words<'a>) -> Command<'a> {
    match (words.get(1), words.count()) {
        (b"reassign", 4) => Command::Reject("CLIENT_ERROR slab reassignment disabled"),
        (b"automove", 3..) => match words.get(2) {
            b"ratio" => decimal(words.get(3)).map_or(ERROR, |_| OK),
            level => match parse_u32(level) {
                Some(..=2) => OK,
                Some(_) => ERROR,
                None => BAD_LINE,
            },
        },
        _ => ERROR,
    }
}

/// `lru tune HOT_PERCENT WARM_PERCENT HOT_FACTOR WARM_FACTOR`.
pub(super) fn lru<'a>(words: &Words<'a>) -> Command<'a> {
    if words.get(1) != b"tune" || words.count() < 6 {
        return ERROR;
    }
    let percents = parse_u32(words.get(2)).zip(parse_u32(words.get(3)));
    let factors = decimal(words.get(4)).zip(decimal(words.get(5)));
    match percents.zip(factors) {
        None => ERROR,
        Some(((hot, warm), _)) if hot.wrapping_add(warm) > 80 => {
            Command::Reject("ERROR hot and warm pcts must not exceed 80")
        }
        Some((_, (hot, warm))) if hot <= 0.0 || warm <= 0.0 => {
            Command::Reject("ERROR hot/warm age factors must be greater than 0")
        }
        Some(_) => OK,
    }
}

/// `lru_crawler` with what it is to do. Its dumps are no matter of a crawler here.
pub(super) fn lru_crawler<'a>(words: &Words<'a>) -> Line<'a> {
    let command = match (words.get(1), words.count()) {
        (b"enable", 2) => Command::Reject("ERROR failed to start lru crawler thread"),
        (b"disable", 2) => OK,
        (b"crawl", 3) => Command::Reject("CLIENT_ERROR lru crawler disabled"),
        (b"tocrawl", 3) => parse_u32(words.get(2)).map_or(BAD_LINE, |_| OK),
        (b"sleep", 3) => match parse_u32(words.get(2)) {
            Some(..=1_000_000) => OK,
            Some(_) => Command::Reject("CLIENT_ERROR sleep must be one second or less"),
            None => BAD_LINE,
        },
        (b"metadump", 3) => return dump(DumpForm::Metadata, "END", words.get(2)),
        (b"mgdump", 3) => return dump(DumpForm::Keys, "EN", words.get(2)),
        _ => ERROR,
    };
    whole(command, false)
}

/// A dump of `all`, of `hash`, or of classes.
fn dump<'a>(form: DumpForm, end: &'static str, classes: &[u8]) -> Line<'a> {
    if matches!(classes, b"all" | b"hash") {
        return Line::Dump(form);
    }
    let mut has_items = false;
    for class in classes.split(|&byte| byte == b',') {
        match parse_u32(class) {
            Some(class @ 1..=CLASS_MAX) => has_items |= class == ONLY_CLASS,
            _ => return whole(Command::Reject("BADCLASS invalid class id"), false),
        }
    }
    if has_items {
        Line::Dump(form)
    } else {
        whole(Command::Answer(end), false)
    }
}

/// `watch` with what is to be told; reads where nothing is said. Of some of what memcached knows nothing happens here.
pub(super) fn watch<'a>(words: &Words<'a>) -> Command<'a> {
    if words.count() < 2 {
        return Command::Watch(Watched::FETCHERS);
    }
    let mut watched = Watched::default();
    for number in 1..words.count() {
        watched = watched.with(match words.get(number) {
            b"fetchers" => Watched::FETCHERS,
            b"mutations" => Watched::MUTATIONS,
            b"evictions" => Watched::EVICTIONS,
            b"connevents" => Watched::CONNECTIONS,
            b"sysevents" | b"rawcmds" => Watched::default(),
            _ => return ERROR,
        });
    }
    Command::Watch(watched)
}

/// `cache_memlimit MEBIBYTES`.
pub(super) fn memory_limit<'a>(words: &Words<'a>) -> Command<'a> {
    if !(2..=3).contains(&words.count()) {
        return ERROR;
    }
    match parse_u32(words.get(1)) {
        None => ERROR,
        Some(..8) => Command::Reject("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"),
        Some(mebibytes @ ..=1_000_000_000) => Command::MemoryLimit { mebibytes },
        Some(_) => Command::Reject("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"),
    }
}

fn decimal(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
