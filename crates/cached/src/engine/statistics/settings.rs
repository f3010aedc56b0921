//! `stats settings`.

use super::super::state::ServerState;
use super::output::Output;
use crate::options::TlsOptions;
use std::net::SocketAddr;

/// How the server was started, by memcached's names.
pub(crate) fn write(state: &ServerState, out: &mut Output<'_>) {
    let options = &state.options;
    let port = match options.unix_socket {
        Some(_) => 0,
        None => options.port,
    };
    out.write("maxbytes", options.memory_mebibytes << 20);
    out.write("maxconns", options.connections);
    out.write("tcpport", port);
    let datagrams = state.addresses.datagrams.first();
    out.write("udpport", datagrams.map_or(0, SocketAddr::port));
    out.write("inter", options.listen.join(","));
    out.write("verbosity", options.verbosity);
    out.write("evictions", if options.evicts { "on" } else { "off" });
    match &options.unix_socket {
        Some(path) => out.write("domain_socket", path.display()),
        None => out.write("domain_socket", "NULL"),
    }
    out.write("umask", format_args!("{:o}", options.unix_socket_mode));
    out.write("num_threads", options.threads);
    out.write("access", options.access.name());
    out.write("stat_key_prefix", char::from(state.prefixes.delimiter()));
    out.write("detail_enabled", yes_or_no(state.prefixes.is_on()));
    out.write("cas_enabled", "yes");
    out.write("flush_enabled", yes_or_no(options.allows_flush));
    out.write("dump_enabled", yes_or_no(options.allows_dump));
    out.write("shutdown_command", yes_or_no(options.allows_shutdown));
    out.write("auth_enabled_sasl", "no");
    out.write("auth_enabled_ascii", yes_or_no(options.accounts.is_some()));
    out.write("binding_protocol", options.protocols.name());
    out.write("transport", options.transport.name());
    out.write("tcp_backlog", options.backlog);
    out.write("maxconns_fast", "yes");
    out.write("idle_timeout", options.idle_seconds_max);
    out.write("hot_keys", options.hot_keys);
    out.write("item_size_max", state.item_bytes_max);
    out.write("hash_algorithm", "foldhash");
    // What memcached has threads for.
    for name in [
        "slab_reassign",
        "lru_crawler",
        "lru_maintainer_thread",
        "lru_segmented",
        "track_sizes",
    ] {
        out.write(name, "no");
    }
    tls_settings(options.tls.as_ref(), out);
}

fn tls_settings(options: Option<&TlsOptions>, out: &mut Output<'_>) {
    let Some(options) = options else {
        return out.write("ssl_enabled", "no");
    };
    out.write("ssl_enabled", "yes");
    out.write("ssl_chain_cert", options.chain.display());
    out.write("ssl_key", options.key_file().display());
    out.write("ssl_verify_mode", options.client_certificates.mode());
    out.write("ssl_ciphers", options.ciphers.as_deref().unwrap_or("NULL"));
    match &options.authorities {
        Some(path) => out.write("ssl_ca_cert", path.display()),
        None => out.write("ssl_ca_cert", "NULL"),
    }
    out.write("ssl_session_cache", yes_or_no(options.has_session_cache));
    out.write("ssl_kernel_tls", "no");
    out.write("ssl_min_version", options.oldest.name());
    out.write("ssl_handshake_timeout", options.handshake_seconds_max);
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
