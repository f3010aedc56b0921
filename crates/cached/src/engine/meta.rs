//! The meta commands.

use super::conditions::{self, Change, NO_MEMORY, NOT_A_NUMBER, OUT_OF_MEMORY, Outcome, TOO_LARGE};
use super::context::Context;
use super::counters::Count;
use super::storage::Storage;
use mica::{Contents, Entry, Item, Key, Marks, Occupied, Partition};
use wire::memcached::server::{Direction, Meta, MetaFlag, MetaMode, StoreMode, reply};

/// `mg`.
pub(crate) fn get<S: Storage>(
    context: &mut Context<'_, S>,
    meta: &Meta<'_>,
    key: Key<'_>,
    out: &mut Vec<u8>,
) {
    let (clock, now) = (context.clock, context.now);
    let hit = context.storage.with(key, |partition, key| {
        let created = vivify(partition, key, now, meta, b"");
        let Entry::Occupied(mut entry) = partition.entry(key, now) else {
            return false;
        };
        let mut won = created;
        let before = entry.item();
        let (marks, accessed_at) = (before.marks, before.accessed_at);
        // A client that has this very item needs no value.
        let with_value = meta.value && meta.cas != Some(before.cas);
        if with_value {
            out.extend_from_slice(b"VA ");
            reply::decimal(out, before.value.len() as u64);
        } else {
            out.extend_from_slice(b"HD");
        }
        for flag in meta.steps() {
            match flag {
                MetaFlag::Exptime => {
                    entry.set_expires_at(clock.deadline(meta.exptime.unwrap_or_default(), now))
                }
                MetaFlag::Vivify if created => {
                    entry.set_expires_at(clock.deadline(meta.vivify.unwrap_or_default(), now))
                }
                MetaFlag::Vivify => {}
                MetaFlag::RenewBefore => {
                    let expires_at = entry.item().expires_at;
                    let before = clock.deadline(meta.renew_before.unwrap_or_default(), now);
                    won |= !created
                        && !marks.has(Marks::RENEWING)
                        && expires_at != 0
                        && expires_at < before;
                }
                MetaFlag::LastAccess => {
                    reply::meta_number(out, b'l', u64::from(now.saturating_sub(accessed_at)))
                }
                MetaFlag::Hit => {
                    reply::meta_number(out, b'h', u64::from(marks.has(Marks::FETCHED)))
                }
                MetaFlag::ClientFlags => reply::meta_number(out, b'f', entry.item().flags.into()),
                MetaFlag::Size => reply::meta_number(out, b's', entry.item().value.len() as u64),
                MetaFlag::Key => reply::meta_key(out, key.bytes(), is_encoded(key, marks)),
                MetaFlag::Cas | MetaFlag::TimeToLive | MetaFlag::Opaque(_) => {
                    common(flag, &entry.item(), now, out)
                }
            }
        }
        won |= renewal(&mut entry, marks, won, out);
        reply::line(out, if won { b" W" } else { b"" });
        if with_value {
            reply::line(out, entry.item().value);
        }
        if !meta.no_update {
            entry.note_hit();
        }
        true
    });
    let touches = meta.exptime.is_some();
    context.counters.add(
        match (hit, touches) {
            (true, true) => Count::TouchHits,
            (true, false) => Count::GetHits,
            (false, true) => Count::TouchMisses,
            (false, false) => Count::GetMisses,
        },
        1,
    );
    if !hit && !meta.quiet {
        out.extend_from_slice(b"EN");
        identity(meta, out);
        reply::line(out, b"");
    }
}

/// Say what is known about the item's renewal, and whether this client is to see to it.
fn renewal(entry: &mut Occupied<'_, '_>, marks: Marks, won: bool, out: &mut Vec<u8>) -> bool {
    let renewing = marks.has(Marks::RENEWING);
    let stale = marks.has(Marks::STALE);
    if renewing {
        reply::meta_flag(out, b'Z');
    }
    if stale {
        reply::meta_flag(out, b'X');
    }
    let won = won || (stale && !renewing);
    if won {
        entry.set_marks(marks.with(Marks::RENEWING));
    }
    won
}

/// `ms`.
pub(crate) fn set<S: Storage>(
    context: &mut Context<'_, S>,
    meta: &Meta<'_>,
    key: Key<'_>,
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let now = context.now;
    let contents = Contents {
        value,
        flags: meta.client_flags,
        expires_at: context
            .clock
            .deadline(meta.exptime.unwrap_or_default(), now),
        marks: key_marks(meta),
        cas: meta.new_cas,
    };
    let mode = match meta.mode {
        Some(MetaMode::Store(mode)) => mode,
        _ => StoreMode::Set,
    };
    let mode = match (mode, meta.cas) {
        (StoreMode::Set | StoreMode::Replace, Some(_)) => StoreMode::Cas,
        _ => mode,
    };
    let joins = matches!(mode, StoreMode::Append | StoreMode::Prepend);
    let clock = context.clock;
    let mut value_bytes = value.len();
    let outcome = context.storage.with(key, |partition, key| {
        let entry = match (partition.entry(key, now), meta.vivify) {
            // There is nothing to append to, and the client asked for an item all the same.
            (Entry::Vacant(entry), Some(exptime)) if joins => {
                let contents = Contents {
                    expires_at: clock.deadline(exptime, now),
                    ..contents
                };
                return conditions::store(Entry::Vacant(entry), StoreMode::Set, contents, 0, false);
            }
            (entry, _) => entry,
        };
        let compared = meta.cas.unwrap_or_default();
        let outcome = conditions::store(entry, mode, contents, compared, meta.invalidate);
        if outcome.is_refusal() {
            // Whatever the mode, as memcached does.
            conditions::remove(partition, key, now);
        }
        if joins && let Entry::Occupied(entry) = partition.entry(key, now) {
            value_bytes = entry.item().value.len();
        }
        outcome
    });
    context.count_store(mode, outcome);
    let (code, cas) = match outcome {
        Outcome::Stored(_) if meta.quiet => return,
        Outcome::Stored(cas) => (b"HD", cas),
        Outcome::NotStored => (b"NS", 0),
        Outcome::Exists => (b"EX", 0),
        Outcome::NotFound => (b"NF", 0),
        Outcome::TooLarge => return reply::line(out, TOO_LARGE),
        Outcome::OutOfMemory => return reply::line(out, OUT_OF_MEMORY),
    };
    out.extend_from_slice(code);
    for flag in meta.steps() {
        match flag {
            MetaFlag::Opaque(_) | MetaFlag::Key => identify(flag, meta, out),
            MetaFlag::Cas => reply::meta_number(out, b'c', cas),
            MetaFlag::Size if code == b"HD" => reply::meta_number(out, b's', value_bytes as u64),
            _ => {}
        }
    }
    reply::line(out, b"");
}

/// `md`.
pub(crate) fn delete<S: Storage>(
    context: &mut Context<'_, S>,
    meta: &Meta<'_>,
    key: Key<'_>,
    out: &mut Vec<u8>,
) {
    let (clock, now) = (context.clock, context.now);
    let (code, count) = context.storage.with(key, |partition, key| {
        let Entry::Occupied(mut entry) = partition.entry(key, now) else {
            return (&b"NF"[..], Some(Count::DeleteMisses));
        };
        if meta.cas.is_some_and(|cas| cas != entry.item().cas) {
            return (b"EX", Some(Count::DeleteMisses));
        }
        if !meta.invalidate && !meta.remove_value {
            entry.remove();
            return (b"HD", Some(Count::DeleteHits));
        }
        if meta.remove_value {
            let item = entry.item();
            let contents = Contents {
                flags: meta.client_flags,
                expires_at: clock.deadline(meta.exptime.unwrap_or_default(), now),
                cas: if meta.new_cas == 0 {
                    item.cas
                } else {
                    meta.new_cas
                },
                ..Contents::of(b"")
            };
            // An empty value fits where any did, but perhaps not with flags that were not there before. Then the item
            // stays, as with memcached.
            if entry.replace(contents).is_err() {
                return (NO_MEMORY, None);
            }
            if !meta.invalidate {
                return (b"HD", Some(Count::DeleteHits));
            }
            let Entry::Occupied(again) = partition.entry(key, now) else {
                return (b"HD", None);
            };
            entry = again;
        }
        if let Some(exptime) = meta.exptime {
            entry.set_expires_at(clock.deadline(exptime, now));
        }
        // The next client that reads it is asked to renew it.
        let marks = entry.item().marks;
        entry.set_marks(marks.with(Marks::STALE).without(Marks::RENEWING));
        entry.renew_cas(meta.new_cas);
        (b"HD", None)
    });
    if let Some(count) = count {
        context.counters.add(count, 1);
    }
    if code == NO_MEMORY {
        return reply::line(out, code);
    }
    if code == b"HD" && meta.quiet {
        return;
    }
    out.extend_from_slice(code);
    identity(meta, out);
    reply::line(out, b"");
}

/// `ma`.
pub(crate) fn arithmetic<S: Storage>(
    context: &mut Context<'_, S>,
    meta: &Meta<'_>,
    key: Key<'_>,
    out: &mut Vec<u8>,
) {
    let (clock, now) = (context.clock, context.now);
    let direction = match meta.mode {
        Some(MetaMode::Count(direction)) => direction,
        _ => Direction::Up,
    };
    let mut digits = [0; reply::DECIMAL_BYTES_MAX];
    let from = reply::write_decimal(&mut digits, meta.initial);
    let initial = &digits[from..];
    let start = out.len();
    let (change, created) = context.storage.with(key, |partition, key| {
        let change = match partition.entry(key, now) {
            Entry::Occupied(entry) => {
                conditions::count(entry, direction, meta.delta, meta.cas.unwrap_or_default())
            }
            Entry::Vacant(_) => Change::NotFound,
        };
        let created = change == Change::NotFound && vivify(partition, key, now, meta, initial);
        let number = match change {
            Change::Done { value, .. } => value,
            Change::NotFound if created => meta.initial,
            Change::NotFound | Change::NotANumber | Change::Exists | Change::OutOfMemory => {
                return (change, false);
            }
        };
        if let Entry::Occupied(mut entry) = partition.entry(key, now) {
            if meta.new_cas != 0 {
                entry.renew_cas(meta.new_cas);
            }
            changed(
                entry,
                meta,
                number,
                created,
                &|exptime| clock.deadline(exptime, now),
                now,
                out,
            );
        }
        (change, created)
    });
    context.count_arithmetic(direction, change);
    let code = match change {
        Change::Done { .. } if meta.quiet => return out.truncate(start),
        Change::Done { .. } => return,
        Change::NotFound if created => return,
        Change::NotFound if meta.vivify.is_some() => {
            return reply::line(out, b"SERVER_ERROR Out of memory allocating new item");
        }
        Change::NotFound => b"NF",
        Change::Exists => b"EX",
        Change::NotANumber => return reply::line(out, NOT_A_NUMBER),
        Change::OutOfMemory => return reply::line(out, NO_MEMORY),
    };
    out.extend_from_slice(code);
    identity(meta, out);
    reply::line(out, b"");
}

/// Create an item that is missing if the client asked for that. It does not expire before its `N` flag is looked at,
/// so that the answer is about it even if it is over at once.
fn vivify(
    partition: &mut Partition,
    key: Key<'_>,
    now: u32,
    meta: &Meta<'_>,
    value: &[u8],
) -> bool {
    let contents = Contents {
        marks: key_marks(meta),
        cas: meta.new_cas,
        ..Contents::of(value)
    };
    match partition.entry(key, now) {
        Entry::Vacant(entry) if meta.vivify.is_some() => entry.insert(contents).is_ok(),
        _ => false,
    }
}

/// The answer of `ma` about an item that has its new number.
fn changed(
    mut entry: Occupied<'_, '_>,
    meta: &Meta<'_>,
    number: u64,
    created: bool,
    deadline: &dyn Fn(i32) -> u32,
    now: u32,
    out: &mut Vec<u8>,
) {
    let mut digits = [0; reply::DECIMAL_BYTES_MAX];
    let from = reply::write_decimal(&mut digits, number);
    let digits = &digits[from..];
    if meta.value {
        out.extend_from_slice(b"VA ");
        reply::decimal(out, digits.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    for flag in meta.steps() {
        match flag {
            MetaFlag::Exptime => entry.set_expires_at(deadline(meta.exptime.unwrap_or_default())),
            MetaFlag::Vivify if created => {
                entry.set_expires_at(deadline(meta.vivify.unwrap_or_default()))
            }
            MetaFlag::Key => identify(flag, meta, out),
            MetaFlag::Cas | MetaFlag::TimeToLive | MetaFlag::Opaque(_) => {
                common(flag, &entry.item(), now, out)
            }
            _ => {}
        }
    }
    reply::line(out, b"");
    if meta.value {
        reply::line(out, digits);
    }
}

/// `me`.
pub(crate) fn debug<S: Storage>(context: &mut Context<'_, S>, key: Key<'_>, out: &mut Vec<u8>) {
    use std::io::Write;
    let now = context.now;
    context.counters.add(Count::MetaDebugs, 1);
    context.storage.with(key, |partition, key| {
        let Entry::Occupied(entry) = partition.entry(key, now) else {
            return reply::line(out, b"EN");
        };
        let item = entry.item();
        out.extend_from_slice(b"ME ");
        reply::key(out, key.bytes(), is_encoded(key, item.marks));
        // Writing to a vector cannot fail.
        _ = write!(
            out,
            " exp={} la={} cas={} fetch={} cls=1 size={}\r\n",
            time_to_live(&item, now).map_or(-1, i64::from),
            now.saturating_sub(item.accessed_at),
            item.cas,
            if item.marks.has(Marks::FETCHED) {
                "yes"
            } else {
                "no"
            },
            mica::HEADER_BYTES + key.bytes().len() + item.value.len(),
        );
    });
}

/// Whether an item's key is shown as base64: because it came so, or because it came by the binary protocol and would end
/// a word or a line, so that the rest of it passed for an answer.
fn is_encoded(key: Key<'_>, marks: Marks) -> bool {
    let ends_word = |byte| matches!(byte, &b' ' | &b'\n' | &b'\0');
    marks.has(Marks::BINARY_KEY) || key.bytes().iter().any(ends_word)
}

/// Flags that mean the same in several answers.
fn common(flag: MetaFlag<'_>, item: &Item<'_>, now: u32, out: &mut Vec<u8>) {
    match flag {
        MetaFlag::Cas => reply::meta_number(out, b'c', item.cas),
        MetaFlag::TimeToLive => match time_to_live(item, now) {
            Some(seconds) => reply::meta_number(out, b't', seconds.into()),
            None => out.extend_from_slice(b" t-1"),
        },
        MetaFlag::Opaque(token) => {
            out.push(b' ');
            out.extend_from_slice(token);
        }
        _ => {}
    }
}

/// Seconds until the item expires.
fn time_to_live(item: &Item<'_>, now: u32) -> Option<u32> {
    (item.expires_at != 0).then(|| item.expires_at.saturating_sub(now))
}

/// What lets a client match an answer to its question: the opaque token and the key, if asked for.
fn identity(meta: &Meta<'_>, out: &mut Vec<u8>) {
    for flag in meta.steps() {
        identify(flag, meta, out);
    }
}

fn identify(flag: MetaFlag<'_>, meta: &Meta<'_>, out: &mut Vec<u8>) {
    match flag {
        MetaFlag::Opaque(token) => {
            out.push(b' ');
            out.extend_from_slice(token);
        }
        MetaFlag::Key => reply::meta_key(out, meta.key, meta.binary),
        _ => {}
    }
}

fn key_marks(meta: &Meta<'_>) -> Marks {
    if meta.binary {
        Marks::BINARY_KEY
    } else {
        Marks::default()
    }
}
