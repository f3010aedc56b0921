//! What `stats` tells.

use crate::arguments::Options;
use crate::clock::Clock;
use crate::counters::{Count, Counters, Totals};
use crate::storage::Storage;
use mica::Statistics;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use wire::memcached::server::reply;

/// The server as a whole, as its clients may see it.
pub struct Report {
    options: Options,
    item_bytes_max: usize,
    clock: Clock,
    workers: Box<[Counters]>,
    refused_connections: AtomicU64,
    /// What `stats reset` found; counting goes on from there.
    baseline: Mutex<Baseline>,
}

#[derive(Clone, Copy, Default)]
struct Baseline {
    totals: Totals,
    refused_connections: u64,
    items: Statistics,
}

/// The partitions together.
#[derive(Default)]
struct Held {
    items: Statistics,
    log_bytes: usize,
    index_bytes: usize,
}

impl Report {
    /// A report for a server with `options`.
    pub fn new(options: Options, item_bytes_max: usize, clock: Clock) -> Self {
        Self {
            workers: (0..options.threads).map(|_| Counters::default()).collect(),
            options,
            item_bytes_max,
            clock,
            refused_connections: AtomicU64::new(0),
            baseline: Mutex::default(),
        }
    }

    /// The counts of worker `index`, which alone may add to them.
    pub fn counters(&self, index: usize) -> &Counters {
        &self.workers[index]
    }

    /// The largest item, in bytes.
    pub fn item_bytes_max(&self) -> usize {
        self.item_bytes_max
    }

    /// The server's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Connections that ended so far.
    pub fn closed_connections(&self) -> u64 {
        Totals::of(&self.workers).get(Count::Closed)
    }

    /// Count a connection that was refused because there were too many.
    pub fn count_refused(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Answer `stats` with `section` behind it.
    pub fn write(&self, section: &[u8], storage: &mut impl Storage, now: u32, out: &mut Vec<u8>) {
        match section {
            b"" => self.general(&held(storage), now, out),
            b"settings" => self.settings(out),
            b"items" => items(&held(storage).items, out),
            b"reset" => {
                let baseline = Baseline {
                    totals: Totals::of(&self.workers),
                    refused_connections: self.refused_connections.load(Ordering::Relaxed),
                    items: held(storage).items,
                };
                *self.baseline.lock().unwrap_or_else(PoisonError::into_inner) = baseline;
                return reply::line(out, b"RESET");
            }
            _ => return reply::line(out, b"ERROR"),
        }
        reply::line(out, b"END");
    }

    fn general(&self, held: &Held, now: u32, out: &mut Vec<u8>) {
        let baseline = *self.baseline.lock().unwrap_or_else(PoisonError::into_inner);
        let ever = Totals::of(&self.workers);
        let totals = ever.since(&baseline.totals);
        let count = |count| totals.get(count);
        let refused =
            self.refused_connections.load(Ordering::Relaxed) - baseline.refused_connections;
        let items = &held.items;
        let touches = count(Count::TouchHits) + count(Count::TouchMisses);
        let bucket_evictions = items.bucket_evictions - baseline.items.bucket_evictions;
        let log_evictions = items.evictions - baseline.items.evictions;

        reply::statistic(out, "pid", std::process::id());
        reply::statistic(out, "uptime", self.clock.uptime_seconds(now));
        reply::statistic(out, "time", self.clock.unix_seconds(now));
        reply::statistic(out, "version", protocol_version!());
        reply::statistic(out, "pointer_size", usize::BITS);
        if let Some((user, system)) = processor_seconds() {
            reply::statistic(out, "rusage_user", format_args!("{user:.6}"));
            reply::statistic(out, "rusage_system", format_args!("{system:.6}"));
        }
        reply::statistic(out, "max_connections", self.options.connections);
        // The two are read one after the other, while workers go on.
        reply::statistic(
            out,
            "curr_connections",
            ever.get(Count::Opened)
                .saturating_sub(ever.get(Count::Closed)),
        );
        reply::statistic(out, "total_connections", count(Count::Opened));
        reply::statistic(out, "rejected_connections", refused);
        reply::statistic(
            out,
            "cmd_get",
            count(Count::GetHits) + count(Count::GetMisses),
        );
        reply::statistic(out, "cmd_set", count(Count::Sets));
        reply::statistic(out, "cmd_flush", count(Count::Flushes));
        reply::statistic(out, "cmd_touch", touches);
        reply::statistic(out, "cmd_meta", count(Count::MetaDebugs));
        for (name, which) in [
            ("get_hits", Count::GetHits),
            ("get_misses", Count::GetMisses),
            ("delete_misses", Count::DeleteMisses),
            ("delete_hits", Count::DeleteHits),
            ("incr_misses", Count::IncrementMisses),
            ("incr_hits", Count::IncrementHits),
            ("decr_misses", Count::DecrementMisses),
            ("decr_hits", Count::DecrementHits),
            ("cas_misses", Count::CasMisses),
            ("cas_hits", Count::CasHits),
            ("cas_badval", Count::CasMismatches),
            ("touch_hits", Count::TouchHits),
            ("touch_misses", Count::TouchMisses),
            ("store_too_large", Count::TooLarge),
            ("bytes_read", Count::BytesRead),
            ("bytes_written", Count::BytesWritten),
            ("conn_stalls", Count::Stalls),
        ] {
            reply::statistic(out, name, count(which));
        }
        reply::statistic(out, "limit_maxbytes", self.options.memory_mebibytes << 20);
        reply::statistic(out, "accepting_conns", 1);
        reply::statistic(out, "threads", self.options.threads);
        reply::statistic(out, "hash_bytes", held.index_bytes);
        reply::statistic(out, "log_bytes", held.log_bytes);
        reply::statistic(out, "bytes", items.bytes);
        reply::statistic(out, "curr_items", items.items);
        reply::statistic(
            out,
            "total_items",
            items.items_stored - baseline.items.items_stored,
        );
        reply::statistic(out, "expired", items.expired - baseline.items.expired);
        reply::statistic(
            out,
            "overwritten",
            items.overwritten - baseline.items.overwritten,
        );
        reply::statistic(
            out,
            "reinserted",
            items.reinserted - baseline.items.reinserted,
        );
        reply::statistic(out, "evictions", log_evictions + bucket_evictions);
        reply::statistic(out, "log_evictions", log_evictions);
        reply::statistic(out, "bucket_evictions", bucket_evictions);
    }

    fn settings(&self, out: &mut Vec<u8>) {
        let options = &self.options;
        reply::statistic(out, "maxbytes", options.memory_mebibytes << 20);
        reply::statistic(out, "maxconns", options.connections);
        reply::statistic(
            out,
            "tcpport",
            if options.unix_socket.is_some() {
                0
            } else {
                options.port
            },
        );
        reply::statistic(out, "udpport", 0);
        reply::statistic(out, "inter", options.listen.join(","));
        reply::statistic(out, "verbosity", options.verbosity);
        reply::statistic(out, "evictions", "on");
        if let Some(path) = &options.unix_socket {
            reply::statistic(out, "domain_socket", path.display());
        }
        reply::statistic(out, "num_threads", options.threads);
        reply::statistic(out, "cas_enabled", "yes");
        reply::statistic(out, "flush_enabled", "yes");
        reply::statistic(out, "binding_protocol", "ascii");
        reply::statistic(out, "item_size_max", self.item_bytes_max);
        reply::statistic(out, "hash_algorithm", "foldhash");
    }
}

/// All items are of one class.
fn items(items: &Statistics, out: &mut Vec<u8>) {
    if items.items > 0 {
        reply::statistic(out, "items:1:number", items.items);
        reply::statistic(
            out,
            "items:1:evicted",
            items.evictions + items.bucket_evictions,
        );
        reply::statistic(out, "items:1:reclaimed", items.expired);
    }
}

fn held(storage: &mut impl Storage) -> Held {
    let mut held = Held::default();
    storage.each(|partition| {
        held.items += partition.statistics();
        held.log_bytes += partition.log_bytes();
        held.index_bytes += partition.index_bytes();
    });
    held
}

/// What this process used of the processors, in user and in system mode (`/proc/[pid]/stat`, `proc_pid_stat(5)`);
/// nothing where that cannot be read.
fn processor_seconds() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Field 2 is the program's name in parentheses, which may hold anything; field 14 is `utime`, 15 is `stime`.
    let mut fields = text[text.rfind(')')? + 1..]
        .split_ascii_whitespace()
        .skip(11);
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / ticks_per_second);
    Some((seconds()?, seconds()?))
}
