//! What `stats` writes.

mod classes;
mod output;
mod settings;
mod stored;

pub(crate) use self::stored::{StorageTotals, totals};

use self::output::Output;
use super::counters::{Count, Counters, Totals};
use super::hot_keys::{self, HotKeys};
use super::state::{Baseline, ServerState};
use net::Endpoint;
use std::fmt::Display;

/// What became of a request for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// All of it was written.
    Written,
    /// Counting begins again.
    Reset,
    /// There is no such section.
    Unknown,
}

impl ServerState {
    /// Hand the name and the value of every statistic of `section` to `each`; the general ones where it is empty.
    /// `stored` is what all workers hold.
    pub fn statistics(
        &self,
        section: &[u8],
        stored: &StorageTotals,
        now: u32,
        each: &mut dyn FnMut(&str, &dyn Display),
    ) -> Section {
        let mut out = Output(each);
        match section {
            b"" => self.general(stored, now, &mut out),
            b"settings" => settings::write(self, &mut out),
            b"items" => {
                let since_reset = stored.items.since(&self.baseline().items);
                classes::items(stored, &since_reset, &mut out);
            }
            b"slabs" => {
                let totals = Totals::of(&self.counters).since(&self.baseline().totals);
                classes::slabs(stored, &totals, &mut out);
            }
            // There are no classes of sizes to choose well.
            b"sizes" => out.write("sizes_status", "disabled"),
            b"partitions" => self.partitions(&mut out),
            b"conns" => {
                for worker in &self.counters {
                    worker.roster().statistics(now, out.0);
                }
            }
            b"hotkeys" if self.options.hot_keys == 0 => out.write("hotkeys:enabled", "no"),
            b"hotkeys" => {
                let workers = self.counters.iter().filter_map(Counters::hot_keys);
                hot_keys::statistics(workers, self.options.hot_keys, out.0);
            }
            b"reset" => {
                self.prefixes.reset();
                let hot = self.counters.iter().filter_map(Counters::hot_keys);
                hot.for_each(HotKeys::reset);
                let baseline = Baseline {
                    totals: Totals::of(&self.counters),
                    refused_connections: self.refused_connections(),
                    items: stored.items,
                };
                self.set_baseline(baseline);
                return Section::Reset;
            }
            _ => return Section::Unknown,
        }
        Section::Written
    }

    fn general(&self, stored: &StorageTotals, now: u32, out: &mut Output<'_>) {
        let baseline = self.baseline();
        let ever = Totals::of(&self.counters);
        let totals = ever.since(&baseline.totals);
        let count = |count| totals.get(count);
        let refused = self.refused_connections() - baseline.refused_connections;
        let items = stored.items.since(&baseline.items);
        let touches = count(Count::TouchHits) + count(Count::TouchMisses);

        out.write("pid", std::process::id());
        out.write("uptime", self.clock.uptime_seconds(now));
        out.write("time", self.clock.unix_seconds(now));
        out.write("version", protocol_version!());
        out.write("pointer_size", usize::BITS);
        if let Some((user, system)) = processor_seconds() {
            out.write("rusage_user", format_args!("{user:.6}"));
            out.write("rusage_system", format_args!("{system:.6}"));
        }
        out.write("max_connections", self.options.connections);
        // The two are read one after the other, while workers go on.
        out.write(
            "curr_connections",
            ever.get(Count::Opened)
                .saturating_sub(ever.get(Count::Closed)),
        );
        out.write("total_connections", count(Count::Opened));
        out.write("rejected_connections", refused);
        out.write("cmd_get", count(Count::GetHits) + count(Count::GetMisses));
        out.write("cmd_set", count(Count::Sets));
        out.write("cmd_flush", count(Count::Flushes));
        out.write("cmd_touch", touches);
        out.write("cmd_meta", count(Count::MetaDebugs));
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
            out.write(name, count(which));
        }
        if let (Some(certificates), Some(tls)) = (&self.certificates, &self.options.tls) {
            if tls.has_session_cache {
                out.write("ssl_new_sessions", count(Count::TlsNewSessions));
            }
            out.write("ssl_handshake_errors", count(Count::TlsHandshakeErrors));
            out.write("ssl_proto_errors", count(Count::TlsProtocolErrors));
            out.write("time_since_server_cert_refresh", certificates.age_seconds());
        }
        self.events.statistics(|name, value| out.write(name, value));
        out.write("limit_maxbytes", self.options.memory_mebibytes << 20);
        out.write("accepting_conns", 1);
        out.write("threads", self.options.threads);
        out.write("hash_bytes", stored.index_bytes);
        out.write("log_bytes", stored.log_bytes);
        if !self.options.evicts {
            out.write("free_bytes", stored.free_bytes);
        }
        out.write("bytes", items.bytes);
        out.write("curr_items", items.items);
        out.write("total_items", items.items_stored);
        out.write("expired", items.expired);
        // memcached's name for it.
        out.write("reclaimed", items.expired);
        out.write("overwritten", items.overwritten);
        out.write("reinserted", items.reinserted);
        out.write("evictions", items.evictions + items.bucket_evictions);
        out.write("log_evictions", items.evictions);
        out.write("bucket_evictions", items.bucket_evictions);
    }

    /// The partition map: see [`wire::memcached::partition_map`].
    fn partitions(&self, out: &mut Output<'_>) {
        out.write("access", self.options.access.name());
        out.write("hash", "crc32");
        out.write("workers", self.parts());
        for (worker, endpoint) in self.addresses.workers.iter().enumerate() {
            match endpoint {
                Endpoint::Tcp(address) => {
                    out.write(&format!("{worker}:port"), address.port());
                }
                Endpoint::Unix(path) => out.write(&format!("{worker}:socket"), path.display()),
            }
        }
        let common = self
            .addresses
            .datagrams
            .len()
            .saturating_sub(self.addresses.workers.len());
        for (worker, address) in self.addresses.datagrams.iter().skip(common).enumerate() {
            if !self.addresses.workers.is_empty() {
                out.write(&format!("{worker}:udp_port"), address.port());
            }
        }
    }
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
