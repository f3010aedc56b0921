//! What all connections of a server share.

use crate::recipe::Recipe;
use crate::work::Workshop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use wire::memcached::server::reply;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub workshop: Workshop,
    pub on_read: Recipe,
    pub on_update: Recipe,
    pub value: Vec<u8>,
    pub counters: Counters,
    pub connections_max: u64,
    pub started: Instant,
}

/// What `stats` tells.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub connections: AtomicU64,
    pub connections_total: AtomicU64,
    pub connections_refused: AtomicU64,
    pub gets: AtomicU64,
    pub sets: AtomicU64,
    pub failures: AtomicU64,
}

impl Shared {
    /// The counters, as `stats` tells them, under memcached's names where it has them.
    pub fn statistics(&self, out: &mut Vec<u8>) {
        let counters = &self.counters;
        reply::statistic(out, "pid", std::process::id());
        reply::statistic(out, "uptime", self.started.elapsed().as_secs());
        reply::statistic(out, "version", env!("CARGO_PKG_VERSION"));
        reply::statistic(out, "max_connections", self.connections_max);
        for (name, counter) in [
            ("curr_connections", &counters.connections),
            ("total_connections", &counters.connections_total),
            ("rejected_connections", &counters.connections_refused),
            ("cmd_get", &counters.gets),
            ("cmd_set", &counters.sets),
            ("work_failures", &counters.failures),
        ] {
            reply::statistic(out, name, counter.load(Relaxed));
        }
        reply::statistic(out, "on_read", &self.on_read);
        reply::statistic(out, "on_update", &self.on_update);
        reply::statistic(out, "value_bytes", self.value.len());
        if let Some(rate) = self.workshop.instructions_per_microsecond() {
            reply::statistic(
                out,
                "instructions_per_microsecond",
                format_args!("{rate:.1}"),
            );
        }
        if let Some(channel) = self.workshop.channel() {
            reply::statistic(out, "channel_bytes_per_second", channel.bytes_per_second());
            reply::statistic(
                out,
                "channel_bytes_per_second_left",
                channel.bytes_per_second_left(),
            );
            reply::statistic(out, "channel_carried_bytes", channel.carried_bytes());
        }
    }
}
