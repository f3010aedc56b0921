//! What `stats` tells.

use crate::accounts::Accounts;
use crate::classes;
use crate::clock::Clock;
use crate::counters::{Count, Counters, Totals};
use crate::hot_keys::{self, HotKeys};
use crate::options::Options;
use crate::prefixes::Prefixes;
use crate::settings;
use crate::storage::Storage;
use crate::tls::Tls;
use crate::watch::Watch;
use mica::Statistics;
use net::Endpoint;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The server as a whole, as its clients may see it.
pub struct Report {
    options: Options,
    accounts: Option<Accounts>,
    tls: Option<Tls>,
    item_bytes_max: usize,
    /// Where each worker is reached by itself, where each has keys of its own.
    doors: Vec<Endpoint>,
    /// Where datagrams are served: for all, then for each worker by itself where each has keys of its own.
    datagram_addresses: Vec<SocketAddr>,
    clock: Clock,
    workers: Box<[Counters]>,
    refused_connections: AtomicU64,
    prefixes: Prefixes,
    watch: Arc<Watch>,
    /// What `stats reset` found; counting goes on from there.
    baseline: Mutex<Baseline>,
}

#[derive(Clone, Copy, Default)]
struct Baseline {
    totals: Totals,
    refused_connections: u64,
    items: Statistics,
}

/// What became of a question for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// All of them were told.
    Told,
    /// Counting begins again.
    Reset,
    /// There is no such section.
    Unknown,
}

/// Whoever is told.
pub(crate) struct Told<'t>(&'t mut dyn FnMut(&str, &dyn Display));

impl Told<'_> {
    pub fn tell(&mut self, name: &str, value: impl Display) {
        (self.0)(name, &value);
    }
}

/// The partitions together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    pub(crate) items: Statistics,
    pub(crate) log_bytes: usize,
    free_bytes: usize,
    index_bytes: usize,
    /// Of the item that was not used for longest.
    pub(crate) oldest_age_seconds: Option<u32>,
}

impl AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.log_bytes += other.log_bytes;
        self.free_bytes += other.free_bytes;
        self.index_bytes += other.index_bytes;
        self.oldest_age_seconds = self.oldest_age_seconds.max(other.oldest_age_seconds);
    }
}

impl Report {
    /// A report for a server with `options`.
    pub fn new(
        options: Options,
        (accounts, tls): (Option<Accounts>, Option<Tls>),
        item_bytes_max: usize,
        (doors, datagram_addresses): (Vec<Endpoint>, Vec<SocketAddr>),
        clock: Clock,
    ) -> Self {
        Self {
            watch: Arc::default(),
            prefixes: Prefixes::new(options.prefix_delimiter, options.counts_prefixes),
            workers: (0..options.threads)
                .map(|_| Counters::new(options.hot_keys))
                .collect(),
            options,
            accounts,
            tls,
            item_bytes_max,
            doors,
            datagram_addresses,
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

    /// Those who may use the server; `None` where anybody may.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.accounts.as_ref()
    }

    /// What connections are encrypted with; `None` where none are.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// How the server was started.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Where datagrams are served.
    pub fn datagram_addresses(&self) -> &[SocketAddr] {
        &self.datagram_addresses
    }

    /// Of how many workers each has partitions of its own; 1 where all have the same.
    pub fn parts(&self) -> usize {
        self.doors.len().max(1)
    }

    /// The server's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Who is told what happens.
    #[inline]
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// What is counted by the prefixes of keys.
    pub(crate) fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// Connections that ended so far.
    pub fn closed_connections(&self) -> u64 {
        Totals::of(&self.workers).get(Count::Closed)
    }

    /// Count a connection that was refused because there were too many.
    pub fn count_refused(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Tell `each` the name and the value of every statistic of `section`; empty for the general ones. `held` is what
    /// all workers hold.
    pub fn tell(
        &self,
        section: &[u8],
        held: &Held,
        now: u32,
        each: &mut dyn FnMut(&str, &dyn Display),
    ) -> Section {
        let mut out = Told(each);
        match section {
            b"" => self.general(held, now, &mut out),
            b"settings" => settings::tell(self, &mut out),
            b"items" => {
                let since_reset = held.items.since(&self.baseline().items);
                classes::items(held, &since_reset, &mut out);
            }
            b"slabs" => {
                let totals = Totals::of(&self.workers).since(&self.baseline().totals);
                classes::slabs(held, &totals, &mut out);
            }
            // There are no classes of sizes to choose well.
            b"sizes" => out.tell("sizes_status", "disabled"),
            b"partitions" => self.partitions(&mut out),
            b"conns" => {
                for worker in &self.workers {
                    worker.roster().tell(now, out.0);
                }
            }
            b"hotkeys" if self.options.hot_keys == 0 => out.tell("hotkeys:enabled", "no"),
            b"hotkeys" => {
                let workers = self.workers.iter().filter_map(Counters::hot_keys);
                hot_keys::tell(workers, self.options.hot_keys, out.0);
            }
            b"reset" => {
                self.prefixes.reset();
                let hot = self.workers.iter().filter_map(Counters::hot_keys);
                hot.for_each(HotKeys::reset);
                let baseline = Baseline {
                    totals: Totals::of(&self.workers),
                    refused_connections: self.refused_connections.load(Ordering::Relaxed),
                    items: held.items,
                };
                *self.baseline.lock().unwrap_or_else(PoisonError::into_inner) = baseline;
                return Section::Reset;
            }
            _ => return Section::Unknown,
        }
        Section::Told
    }

    fn general(&self, held: &Held, now: u32, out: &mut Told<'_>) {
        let baseline = self.baseline();
        let ever = Totals::of(&self.workers);
        let totals = ever.since(&baseline.totals);
        let count = |count| totals.get(count);
        let refused =
            self.refused_connections.load(Ordering::Relaxed) - baseline.refused_connections;
        let items = held.items.since(&baseline.items);
        let touches = count(Count::TouchHits) + count(Count::TouchMisses);

        out.tell("pid", std::process::id());
        out.tell("uptime", self.clock.uptime_seconds(now));
        out.tell("time", self.clock.unix_seconds(now));
        out.tell("version", protocol_version!());
        out.tell("pointer_size", usize::BITS);
        if let Some((user, system)) = processor_seconds() {
            out.tell("rusage_user", format_args!("{user:.6}"));
            out.tell("rusage_system", format_args!("{system:.6}"));
        }
        out.tell("max_connections", self.options.connections);
        // The two are read one after the other, while workers go on.
        out.tell(
            "curr_connections",
            ever.get(Count::Opened)
                .saturating_sub(ever.get(Count::Closed)),
        );
        out.tell("total_connections", count(Count::Opened));
        out.tell("rejected_connections", refused);
        out.tell("cmd_get", count(Count::GetHits) + count(Count::GetMisses));
        out.tell("cmd_set", count(Count::Sets));
        out.tell("cmd_flush", count(Count::Flushes));
        out.tell("cmd_touch", touches);
        out.tell("cmd_meta", count(Count::MetaDebugs));
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
            ("store_no_memory", Count::OutOfMemory),
            ("bytes_read", Count::BytesRead),
            ("bytes_written", Count::BytesWritten),
            ("conn_stalls", Count::Stalls),
            ("idle_kicks", Count::IdleKicks),
            ("auth_cmds", Count::Authentications),
            ("auth_errors", Count::AuthenticationFailures),
            ("moves", Count::Moves),
            ("datagrams_received", Count::DatagramsReceived),
            ("datagrams_sent", Count::DatagramsSent),
            ("datagrams_dropped", Count::DatagramsDropped),
        ] {
            out.tell(name, count(which));
        }
        if let Some(tls) = &self.tls {
            if tls.options().has_session_cache {
                out.tell("ssl_new_sessions", count(Count::TlsNewSessions));
            }
            out.tell("ssl_handshake_errors", count(Count::TlsHandshakeErrors));
            out.tell("ssl_proto_errors", count(Count::TlsProtocolErrors));
            out.tell("time_since_server_cert_refresh", tls.age_seconds());
        }
        self.watch.tell(|name, value| out.tell(name, value));
        out.tell("limit_maxbytes", self.options.memory_mebibytes << 20);
        out.tell("accepting_conns", 1);
        out.tell("threads", self.options.threads);
        out.tell("hash_bytes", held.index_bytes);
        out.tell("log_bytes", held.log_bytes);
        if !self.options.evicts {
            out.tell("free_bytes", held.free_bytes);
        }
        out.tell("bytes", items.bytes);
        out.tell("curr_items", items.items);
        out.tell("total_items", items.items_stored);
        out.tell("expired", items.expired);
        // memcached's name for it.
        out.tell("reclaimed", items.expired);
        out.tell("overwritten", items.overwritten);
        out.tell("reinserted", items.reinserted);
        out.tell("evictions", items.evictions + items.bucket_evictions);
        out.tell("log_evictions", items.evictions);
        out.tell("bucket_evictions", items.bucket_evictions);
    }

    fn baseline(&self) -> Baseline {
        *self.baseline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition map: see [`wire::memcached::partition_map`].
    fn partitions(&self, out: &mut Told<'_>) {
        out.tell("access", self.options.access.name());
        out.tell("hash", "crc32");
        out.tell("workers", self.parts());
        for (worker, door) in self.doors.iter().enumerate() {
            match door {
                Endpoint::Tcp(address) => {
                    out.tell(&format!("{worker}:port"), address.port());
                }
                Endpoint::Unix(path) => out.tell(&format!("{worker}:socket"), path.display()),
            }
        }
        let common = self
            .datagram_addresses
            .len()
            .saturating_sub(self.doors.len());
        for (worker, address) in self.datagram_addresses.iter().skip(common).enumerate() {
            if !self.doors.is_empty() {
                out.tell(&format!("{worker}:udp_port"), address.port());
            }
        }
    }
}

/// What a worker holds at second `now`.
pub fn held(storage: &mut impl Storage, now: u32) -> Held {
    let mut held = Held::default();
    storage.each(|partition| {
        held.items += partition.statistics();
        held.log_bytes += partition.log_bytes();
        held.free_bytes += partition.free_bytes().unwrap_or_default();
        held.index_bytes += partition.index_bytes();
        held.oldest_age_seconds = held
            .oldest_age_seconds
            .max(partition.oldest_age_seconds(now));
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
