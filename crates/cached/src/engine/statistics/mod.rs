//! What `stats` writes.

mod settings;
mod stored;

pub(crate) use self::stored::{StorageTotals, totals};

use super::counters::{Count, Totals};
use super::state::{Addresses, Baseline, ServerState};
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
    /// Hand the name and the value of every statistic of `section` to `out`; the general ones where it is empty.
    /// `stored` is what all workers hold.
    pub fn statistics(
        &self,
        section: &[u8],
        stored: &StorageTotals,
        now: u32,
        out: &mut dyn FnMut(&str, &dyn Display),
    ) -> Section {
        match section {
            b"" => self.general(stored, now, out),
            b"settings" => settings::write(self, out),
            b"partitions" => self.partitions(out),
            // There are no classes of sizes: as an empty memcached.
            b"items" => {}
            b"slabs" => {
                out("active_slabs", &0);
                out("total_malloced", &0);
            }
            b"sizes" => out("sizes_status", &"disabled"),
            b"reset" => {
                self.set_baseline(Baseline {
                    totals: Totals::of(&self.counters),
                    refused_connections: self.refused_connections(),
                    items: stored.items,
                });
                return Section::Reset;
            }
            _ => return Section::Unknown,
        }
        Section::Written
    }

    fn general(&self, stored: &StorageTotals, now: u32, out: &mut dyn FnMut(&str, &dyn Display)) {
        let baseline = self.baseline();
        let ever = Totals::of(&self.counters);
        let totals = ever.since(&baseline.totals);
        let count = |count| totals.get(count);
        let refused = self.refused_connections() - baseline.refused_connections;
        let items = stored.items.since(&baseline.items);
        let touches = count(Count::TouchHits) + count(Count::TouchMisses);

        out("pid", &std::process::id());
        out("uptime", &self.clock.uptime_seconds(now));
        out("time", &self.clock.unix_seconds(now));
        out("version", &protocol_version!());
        out("pointer_size", &usize::BITS);
        if let Some((user, system)) = processor_seconds() {
            out("rusage_user", &format_args!("{user:.6}"));
            out("rusage_system", &format_args!("{system:.6}"));
        }
        out("max_connections", &self.options.connections);
        // The two are read one after the other, while workers go on.
        let opened = ever.get(Count::Opened);
        out(
            "curr_connections",
            &opened.saturating_sub(ever.get(Count::Closed)),
        );
        out("total_connections", &count(Count::Opened));
        out("rejected_connections", &refused);
        out(
            "cmd_get",
            &(count(Count::GetHits) + count(Count::GetMisses)),
        );
        out("cmd_set", &count(Count::Sets));
        out("cmd_flush", &count(Count::Flushes));
        out("cmd_touch", &touches);
        out("cmd_meta", &count(Count::MetaDebugs));
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
            ("read_buf_oom", Count::ReadsOutOfMemory),
            ("response_obj_oom", Count::RepliesOutOfMemory),
            ("auth_cmds", Count::Authentications),
            ("auth_errors", Count::AuthenticationFailures),
            ("moves", Count::Moves),
            ("forwards", Count::Forwards),
            ("datagrams_received", Count::DatagramsReceived),
            ("datagrams_sent", Count::DatagramsSent),
            ("datagrams_dropped", Count::DatagramsDropped),
            ("datagrams_not_forwarded", Count::DatagramsNotForwarded),
        ] {
            out(name, &count(which));
        }
        if let (Some(certificates), Some(tls)) = (&self.certificates, &self.options.tls) {
            if tls.has_session_cache {
                out("ssl_new_sessions", &count(Count::TlsNewSessions));
            }
            out("ssl_handshake_errors", &count(Count::TlsHandshakeErrors));
            out("ssl_proto_errors", &count(Count::TlsProtocolErrors));
            out(
                "time_since_server_cert_refresh",
                &certificates.age_seconds(),
            );
            out("server_cert_refresh_errors", &certificates.refresh_errors());
        }
        out("read_buf_bytes", &self.client_memory.taken());
        let free = self.counters.iter().map(|one| one.allowance().free());
        out("read_buf_bytes_free", &free.sum::<usize>());
        out("limit_maxbytes", &(self.options.memory_mebibytes << 20));
        out("accepting_conns", &1);
        out("threads", &self.options.threads);
        out("hash_bytes", &stored.index_bytes);
        out("log_bytes", &stored.log_bytes);
        if !self.options.evicts {
            out("free_bytes", &stored.free_bytes);
        }
        out("bytes", &items.bytes);
        out("curr_items", &items.items);
        out("total_items", &items.items_stored);
        out("expired", &items.expired);
        // memcached's name for it.
        out("reclaimed", &items.expired);
        out("overwritten", &items.overwritten);
        out("reinserted", &items.reinserted);
        out("evictions", &(items.evictions + items.bucket_evictions));
        out("log_evictions", &items.evictions);
        out("bucket_evictions", &items.bucket_evictions);
    }

    /// The partition map: see [`wire::memcached::partition_map`].
    fn partitions(&self, out: &mut dyn FnMut(&str, &dyn Display)) {
        out("access", &self.options.access.name());
        out("hash", &"crc32");
        out("workers", &self.parts());
        let Addresses { workers, datagrams } = &self.addresses;
        for (worker, endpoint) in workers.iter().enumerate() {
            match endpoint {
                Endpoint::Tcp(address) => out(&format!("{worker}:port"), &address.port()),
                Endpoint::Unix(path) => out(&format!("{worker}:socket"), &path.display()),
            }
        }
        // Those of the workers are behind the common ones.
        let common = datagrams.len().saturating_sub(workers.len());
        for (worker, address) in datagrams[common..].iter().enumerate() {
            out(&format!("{worker}:udp_port"), &address.port());
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
