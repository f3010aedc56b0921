//! `stats settings`.

use super::super::state::ServerState;
use crate::options::TlsOptions;
use std::fmt::Display;
use std::net::SocketAddr;

/// How the server was started, by memcached's names.
pub(crate) fn write(state: &ServerState, out: &mut dyn FnMut(&str, &dyn Display)) {
    let options = &state.options;
    let port = match options.unix_socket {
        Some(_) => 0,
        None => options.port,
    };
    out("maxbytes", &(options.memory_mebibytes << 20));
    out("maxconns", &options.connections);
    out("tcpport", &port);
    let datagrams = state.addresses.datagrams.first();
    out("udpport", &datagrams.map_or(0, SocketAddr::port));
    out("inter", &options.listen.join(","));
    out("verbosity", &options.verbosity);
    out("evictions", &if options.evicts { "on" } else { "off" });
    match &options.unix_socket {
        Some(path) => out("domain_socket", &path.display()),
        None => out("domain_socket", &"NULL"),
    }
    out("umask", &format_args!("{:o}", options.unix_socket_mode));
    out("num_threads", &options.threads);
    out("access", &options.access.name());
    out("cas_enabled", &"yes");
    out("flush_enabled", &yes_or_no(options.allows_flush));
    out("shutdown_command", &yes_or_no(options.allows_shutdown));
    out("auth_enabled_sasl", &"no");
    out("auth_enabled_ascii", &yes_or_no(options.accounts.is_some()));
    out("binding_protocol", &options.protocols.name());
    out("transport", &options.transport.name());
    out("tcp_backlog", &options.backlog);
    out("maxconns_fast", &"yes");
    out("idle_timeout", &options.idle_seconds_max);
    out("item_size_max", &state.item_bytes_max);
    let limit = match state.client_memory.bytes_max() {
        usize::MAX => 0,
        bytes => bytes,
    };
    out("read_buf_mem_limit", &limit);
    out("hash_algorithm", &"foldhash");
    // What memcached has for those who look after it.
    for name in [
        "detail_enabled",
        "dump_enabled",
        "slab_reassign",
        "lru_crawler",
        "lru_maintainer_thread",
        "lru_segmented",
        "track_sizes",
    ] {
        out(name, &"no");
    }
    tls_settings(options.tls.as_ref(), out);
}

fn tls_settings(options: Option<&TlsOptions>, out: &mut dyn FnMut(&str, &dyn Display)) {
    let Some(options) = options else {
        return out("ssl_enabled", &"no");
    };
    out("ssl_enabled", &"yes");
    out("ssl_chain_cert", &options.chain.display());
    out("ssl_key", &options.key_file().display());
    out("ssl_verify_mode", &options.client_certificates.mode());
    out("ssl_ciphers", &options.ciphers.as_deref().unwrap_or("NULL"));
    match &options.authorities {
        Some(path) => out("ssl_ca_cert", &path.display()),
        None => out("ssl_ca_cert", &"NULL"),
    }
    out("ssl_session_cache", &yes_or_no(options.has_session_cache));
    out("ssl_kernel_tls", &"no");
    out("ssl_min_version", &options.oldest.name());
    out("ssl_handshake_timeout", &options.handshake_seconds_max);
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
