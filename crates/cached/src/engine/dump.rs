//! Lists of keys: `stats cachedump`, `lru_crawler metadump` and `lru_crawler mgdump`.

use super::context::{Context, Listed};
use super::storage::Storage;
use mica::{Item, Key, Marks};
use std::io::Write;
use wire::memcached::server::{DUMP_SHARES, DumpForm, parse_u32, reply};

/// The answer to `stats cachedump` ends before it has more bytes, as memcached's does; then comes `END`.
const CLASS_BYTES_MAX: usize = (2 << 20) - 5;

/// memcached's classes are below this; ours is number 1.
const CLASSES: u32 = 64;

/// `stats cachedump CLASS LIMIT`: the first items of a class, all of them where the limit is 0.
pub(crate) fn of_class<S: Storage>(
    context: &mut Context<'_, S>,
    arguments: &[u8],
    out: &mut Vec<u8>,
) {
    let mut listed = context.gathered.take().unwrap_or_default().listed;
    match limit(context, arguments) {
        Ok(limit) => {
            first_items(context, limit, &mut listed, out);
            reply::line(out, b"END");
        }
        Err(error) => reply::line(out, error),
    }
}

/// Do this worker's part of [`of_class`], and say which worker is next; `None` for the last.
pub(crate) fn gather_class<S: Storage>(
    context: &mut Context<'_, S>,
    arguments: &[u8],
    out: &mut Vec<u8>,
) -> Option<usize> {
    let limit = limit(context, arguments).ok()?;
    let next = context.next_worker()?;
    let mut gathered = context.gathered.take().unwrap_or_default();
    first_items(context, limit, &mut gathered.listed, out);
    context.gathered = Some(gathered);
    Some(next)
}

/// How many items are to be listed at most, or what is wrong.
fn limit<S>(context: &Context<'_, S>, arguments: &[u8]) -> Result<u32, &'static [u8]> {
    if !context.state.options.allows_dump {
        return Err(b"CLIENT_ERROR stats cachedump not allowed");
    }
    let mut words = arguments
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    let (Some(class), Some(limit)) = (words.next(), words.next()) else {
        return Err(b"CLIENT_ERROR bad command line");
    };
    let (Some(class), Some(limit)) = (parse_u32(class), parse_u32(limit)) else {
        return Err(b"CLIENT_ERROR bad command line format");
    };
    match (class, limit) {
        (CLASSES.., _) => Err(b"CLIENT_ERROR Illegal slab id"),
        (1, 0) => Ok(u32::MAX),
        (1, limit) => Ok(limit),
        _ => Ok(0),
    }
}

fn first_items<S: Storage>(
    context: &mut Context<'_, S>,
    limit: u32,
    listed: &mut Listed,
    out: &mut Vec<u8>,
) {
    let clock = context.clock;
    let mut is_full = listed.items >= limit;
    for share in 0..DUMP_SHARES {
        if is_full {
            break;
        }
        walk(context, (share, DUMP_SHARES), &mut |key, item| {
            // A key that the text protocol cannot ask for would be half a line of it.
            if is_full || is_binary(key, item) {
                return;
            }
            let start = out.len();
            let expires_at = match item.expires_at {
                0 => 0,
                at => clock.unix_seconds(at),
            };
            out.extend_from_slice(b"ITEM ");
            out.extend_from_slice(key.bytes());
            // Writing to a vector cannot fail.
            _ = write!(out, " [{} b; {expires_at} s]\r\n", item.value.len());
            let bytes = listed.bytes + out.len() - start;
            if bytes > CLASS_BYTES_MAX {
                out.truncate(start);
                // Nor does what other workers have fit.
                listed.items = u32::MAX;
            } else {
                listed.items += 1;
                listed.bytes = bytes;
            }
            is_full = listed.items >= limit;
        });
    }
}

/// Where each worker has partitions of its own, each has a run of the shares, in which it lists all that it has: so a
/// dump goes from one to the next once. Into how many shares it divides that.
fn shares_of_each(parts: usize) -> u32 {
    let each = DUMP_SHARES as usize / parts;
    1 << each.max(1).ilog2()
}

/// The worker that must list `share`, if that is not this one.
pub(crate) fn other_worker<S: Storage>(context: &Context<'_, S>, share: u32) -> Option<usize> {
    let parts = context.storage.parts();
    let worker = (share / shares_of_each(parts)) as usize;
    let is_here = worker == context.worker || worker >= parts;
    (context.state.options.allows_dump && !is_here).then_some(worker)
}

/// One share of all items, and the end behind the last.
pub(crate) fn of_all<S: Storage>(
    context: &mut Context<'_, S>,
    form: DumpForm,
    share: u32,
    out: &mut Vec<u8>,
) {
    if !context.state.options.allows_dump {
        if share == 0 {
            reply::line(
                out,
                match form {
                    DumpForm::Metadata => b"ERROR metadump not allowed",
                    DumpForm::Keys => b"ERROR mgdump not allowed",
                },
            );
        }
        return;
    }
    let clock = context.clock;
    let each = shares_of_each(context.storage.parts());
    if share / each < context.storage.parts() as u32 {
        walk(context, (share % each, each), &mut |key, item| match form {
            DumpForm::Metadata => {
                out.extend_from_slice(b"key=");
                reply::percent_encoded(out, key.bytes());
                let expires_at = match item.expires_at {
                    0 => -1,
                    at => clock.unix_seconds(at),
                };
                _ = writeln!(
                    out,
                    " exp={expires_at} la={} cas={} fetch={} cls=1 size={}",
                    clock.unix_seconds(item.accessed_at),
                    item.cas,
                    if item.marks.has(Marks::FETCHED) {
                        "yes"
                    } else {
                        "no"
                    },
                    mica::HEADER_BYTES + key.bytes().len() + item.value.len(),
                );
            }
            DumpForm::Keys => {
                let is_binary = is_binary(key, item);
                out.extend_from_slice(b"mg ");
                reply::key(out, key.bytes(), is_binary);
                reply::line(out, if is_binary { b" b" } else { b"" });
            }
        });
    }
    if share + 1 == DUMP_SHARES {
        reply::line(
            out,
            match form {
                DumpForm::Metadata => b"END",
                DumpForm::Keys => b"EN",
            },
        );
    }
}

fn walk<S: Storage>(
    context: &mut Context<'_, S>,
    share: (u32, u32),
    each: &mut dyn FnMut(Key<'_>, &Item<'_>),
) {
    let now = context.now;
    context.storage.each(|partition| {
        partition.for_each_of_share(share, now, |key, item| each(key, &item));
    });
}

/// Whether the text protocol needs base64 to name a key, which a client of another protocol may have stored.
fn is_binary(key: Key<'_>, item: &Item<'_>) -> bool {
    item.marks.has(Marks::BINARY_KEY)
        || key
            .bytes()
            .iter()
            .any(|byte| byte.is_ascii_control() || *byte == b' ')
}
