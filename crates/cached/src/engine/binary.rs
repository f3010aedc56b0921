//! The binary protocol: requests carried out on the storage, answers written to a buffer.

use super::conditions::{self, Change, Outcome};
use super::context::{After, Context};
use super::counters::Count;
use super::statistics::Section;
use super::storage::{Read, Storage};
use mica::{Contents, Entry, Key, Marks};
use std::fmt::Display;
use wire::memcached::binary::{Command, Refusal, Request, Status, error, statistic, success};
use wire::memcached::server::{Direction, StoreMode, reply};

/// Carry out `request`, whose key is `key` if it has one, and append the answer to `out`.
pub(crate) fn execute<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    out: &mut Vec<u8>,
) -> After {
    if context.storage.parts() > 1
        && let Some(worker) = other_worker(&request.command, key, context)
    {
        return After::OtherWorker(worker);
    }
    match request.command {
        Command::Get {
            with_key,
            with_value,
            exptime,
            ..
        } => return get(request, key, context, (with_key, with_value, exptime), out),
        Command::Store {
            mode,
            flags,
            exptime,
            value,
            ..
        } => {
            let contents = Contents {
                value,
                flags,
                expires_at: context.clock.deadline(exptime, context.now),
                ..Contents::default()
            };
            put(request, key, context, mode, contents, out);
        }
        Command::TooLarge { remove, .. } => {
            context.refuse_large(key, remove);
            error(out, request, Status::TooLarge, b"");
        }
        Command::Delete { .. } => delete(request, key, context, out),
        Command::Arithmetic {
            direction,
            delta,
            initial,
            ..
        } => arithmetic(request, key, context, (direction, delta, initial), out),
        Command::Flush { .. } if !context.state.options.allows_flush => {
            error(out, request, Status::NotAllowed, b"");
        }
        Command::Flush { delay } => {
            context.flush_items(delay);
            done(request, 0, out);
        }
        Command::Noop => done(request, 0, out),
        Command::Version => {
            let version = protocol_version!().as_bytes();
            success(out, request, 0, (&[], &[]), version.len());
            out.extend_from_slice(version);
        }
        Command::Stats { section } => stats(request, section, context, out),
        Command::Quit => {
            done(request, 0, out);
            return After::Close;
        }
        Command::Refuse(Refusal { status, close }) => {
            if let Some(status) = status {
                error(out, request, status, b"");
            }
            if close {
                return After::Close;
            }
        }
    }
    After::Continue
}

/// The worker that must carry out `command`, or its part of it, if that is not this one.
fn other_worker<S: Storage>(
    command: &Command<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
) -> Option<usize> {
    match *command {
        Command::Flush { delay } => context.flush_here(delay),
        Command::Stats { section } => context.gather_statistics(section),
        // Any worker may be able to.
        Command::Get { .. } => None,
        _ => command
            .key()
            .and_then(|_| context.storage.other_worker(key)),
    }
}

/// It worked, and there is no more to say.
fn done(request: &Request<'_>, cas: u64, out: &mut Vec<u8>) {
    if !request.quiet {
        success(out, request, cas, (&[], &[]), 0);
    }
}

fn get<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    (with_key, with_value, exptime): (bool, bool, Option<i32>),
    out: &mut Vec<u8>,
) -> After {
    let named = if with_key { key.bytes() } else { b"" };
    let read = match exptime {
        None if with_value => context.storage.read(key, context.now, out, |out, front| {
            let flags = front.flags.to_be_bytes();
            success(out, request, front.cas, (&flags, named), front.value_bytes);
        }),
        _ => touch(request, key, context, (named, with_value, exptime), out),
    };
    let is_touch = exptime.is_some();
    let count = match read {
        Read::Hit if is_touch => Count::TouchHits,
        Read::Hit => Count::GetHits,
        Read::Miss if is_touch => Count::TouchMisses,
        Read::Miss => Count::GetMisses,
        Read::OtherWorker(worker) => return After::OtherWorker(worker),
    };
    context.counters.add(count, 1);
    if read == Read::Miss && !request.quiet {
        error(out, request, Status::NotFound, named);
    }
    After::Continue
}

/// Touch the item, and answer with it or a part of it.
fn touch<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    (named, with_value, exptime): (&[u8], bool, Option<i32>),
    out: &mut Vec<u8>,
) -> Read {
    if let Some(worker) = context.storage.other_worker(key) {
        return Read::OtherWorker(worker);
    }
    let is_hit = context.touch(key, exptime, |item| {
        let value = if with_value { item.value } else { b"" };
        let flags = item.flags.to_be_bytes();
        success(out, request, item.cas, (&flags, named), value.len());
        out.extend_from_slice(value);
    });
    is_hit.map_or(Read::Miss, |()| Read::Hit)
}

fn put<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    mode: StoreMode,
    contents: Contents<'_>,
    out: &mut Vec<u8>,
) {
    let joins = matches!(mode, StoreMode::Append | StoreMode::Prepend);
    let compared = if request.cas != 0 && !joins {
        StoreMode::Cas
    } else {
        mode
    };
    match context.store(compared, key, contents, request.cas) {
        Outcome::Stored(cas) => done(request, cas, out),
        Outcome::Exists => error(out, request, Status::Exists, b""),
        Outcome::NotFound => error(out, request, Status::NotFound, b""),
        Outcome::OutOfMemory => {
            let status = Status::OutOfMemory("Out of memory allocating item");
            error(out, request, status, b"");
        }
        Outcome::TooLarge => error(out, request, Status::TooLarge, b""),
        Outcome::NotStored => {
            let status = match compared {
                StoreMode::Add => Status::Exists,
                StoreMode::Replace => Status::NotFound,
                _ => Status::NotStored,
            };
            error(out, request, status, b"");
        }
    }
}

fn delete<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    out: &mut Vec<u8>,
) {
    let now = context.now;
    let failed = context.storage.with(key, |partition, key| {
        let Entry::Occupied(entry) = partition.entry(key, now) else {
            return Some(Status::NotFound);
        };
        if request.cas != 0 && request.cas != entry.item().cas {
            return Some(Status::Exists);
        }
        entry.remove();
        None
    });
    match failed {
        None => {
            context.counters.add(Count::DeleteHits, 1);
            done(request, 0, out);
        }
        Some(status) => {
            if status == Status::NotFound {
                context.counters.add(Count::DeleteMisses, 1);
            }
            error(out, request, status, b"");
        }
    }
}

fn arithmetic<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    (direction, delta, initial): (Direction, u64, Option<(u64, i32)>),
    out: &mut Vec<u8>,
) {
    let (clock, now) = (context.clock, context.now);
    let (mut created, mut words) = (None, "Out of memory incrementing value");
    let change = context
        .storage
        .with(key, |partition, key| match partition.entry(key, now) {
            Entry::Occupied(entry) => conditions::count(entry, direction, delta, request.cas),
            Entry::Vacant(entry) => {
                if let Some((value, exptime)) = initial {
                    let mut digits = [0; reply::DECIMAL_BYTES_MAX];
                    let from = reply::write_decimal(&mut digits, value);
                    let contents = Contents {
                        value: &digits[from..],
                        expires_at: clock.deadline(exptime, now),
                        marks: Marks::default(),
                        ..Contents::default()
                    };
                    match entry.insert(contents) {
                        Ok(cas) => created = Some((value, cas)),
                        Err(_) => {
                            words = "Out of memory allocating new item";
                            return Change::OutOfMemory;
                        }
                    }
                }
                Change::NotFound
            }
        });
    if created.is_none() {
        context.count_arithmetic(direction, change);
    }
    match (change, created) {
        (Change::Done { value, cas }, _) | (_, Some((value, cas))) => {
            if !request.quiet {
                success(out, request, cas, (&[], &[]), 8);
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        (Change::NotFound, None) => error(out, request, Status::NotFound, b""),
        (Change::NotANumber, None) => error(out, request, Status::NotANumber, b""),
        (Change::Exists, None) => error(out, request, Status::Exists, b""),
        (Change::OutOfMemory, None) => error(out, request, Status::OutOfMemory(words), b""),
    }
}

fn stats<S: Storage>(
    request: &Request<'_>,
    section: &[u8],
    context: &mut Context<'_, S>,
    out: &mut Vec<u8>,
) {
    // As memcached does, which compares these by their beginnings.
    let section: &[u8] = match section {
        section if section.starts_with(b"reset") => b"reset",
        section if section.starts_with(b"settings") => b"settings",
        section => section,
    };
    let mut each = |name: &str, value: &dyn Display| {
        statistic(out, request, name.as_bytes(), value.to_string().as_bytes());
    };
    match context.statistics(section, &mut each) {
        Section::Unknown => error(out, request, Status::NotFound, b""),
        Section::Written | Section::Reset => statistic(out, request, b"", b""),
    }
}
