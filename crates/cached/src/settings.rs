//! `stats settings`.

use crate::report::{Report, Told};
use crate::tls::TlsOptions;
use std::net::SocketAddr;

/// How the server was started, by memcached's names.
pub(crate) fn tell(report: &Report, out: &mut Told<'_>) {
    let options = report.options();
    let port = match options.unix_socket {
        Some(_) => 0,
        None => options.port,
    };
    out.tell("maxbytes", options.memory_mebibytes << 20);
    out.tell("maxconns", options.connections);
    out.tell("tcpport", port);
    let datagrams = report.datagram_addresses().first();
    out.tell("udpport", datagrams.map_or(0, SocketAddr::port));
    out.tell("inter", options.listen.join(","));
    out.tell("verbosity", options.verbosity);
    out.tell("evictions", if options.evicts { "on" } else { "off" });
    match &options.unix_socket {
        Some(path) => out.tell("domain_socket", path.display()),
        None => out.tell("domain_socket", "NULL"),
    }
    out.tell("umask", format_args!("{:o}", options.unix_socket_mode));
    out.tell("num_threads", options.threads);
    out.tell("access", options.access.name());
    out.tell("stat_key_prefix", char::from(report.prefixes().delimiter()));
    out.tell("detail_enabled", yes_or_no(report.prefixes().is_on()));
    out.tell("cas_enabled", "yes");
    out.tell("flush_enabled", yes_or_no(options.allows_flush));
    out.tell("dump_enabled", yes_or_no(options.allows_dump));
    out.tell("shutdown_command", yes_or_no(options.allows_shutdown));
    out.tell("auth_enabled_sasl", "no");
    out.tell("auth_enabled_ascii", yes_or_no(options.accounts.is_some()));
    out.tell("binding_protocol", options.protocols.name());
    out.tell("transport", options.transport.name());
    out.tell("tcp_backlog", options.backlog);
    out.tell("maxconns_fast", "yes");
    out.tell("idle_timeout", options.idle_seconds_max);
    out.tell("hot_keys", options.hot_keys);
    out.tell("item_size_max", report.item_bytes_max());
    out.tell("hash_algorithm", "foldhash");
    // What memcached has threads for.
    for name in [
        "slab_reassign",
        "lru_crawler",
        "lru_maintainer_thread",
        "lru_segmented",
        "track_sizes",
    ] {
        out.tell(name, "no");
    }
    tls_settings(options.tls.as_ref(), out);
}

fn tls_settings(options: Option<&TlsOptions>, out: &mut Told<'_>) {
    let Some(options) = options else {
        return out.tell("ssl_enabled", "no");
    };
    out.tell("ssl_enabled", "yes");
    out.tell("ssl_chain_cert", options.chain.display());
    out.tell("ssl_key", options.key_file().display());
    out.tell("ssl_verify_mode", options.client_certificates.mode());
    out.tell("ssl_ciphers", options.ciphers.as_deref().unwrap_or("NULL"));
    match &options.authorities {
        Some(path) => out.tell("ssl_ca_cert", path.display()),
        None => out.tell("ssl_ca_cert", "NULL"),
    }
    out.tell("ssl_session_cache", yes_or_no(options.has_session_cache));
    out.tell("ssl_kernel_tls", "no");
    out.tell("ssl_min_version", options.oldest.name());
    out.tell("ssl_handshake_timeout", options.handshake_seconds_max);
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
