use crate::control::arguments::{Request, parse};
use crate::options::{ClientCertificates, Oldest, TlsOptions};
use std::ffi::OsString;

fn tls(line: &str) -> Result<Option<TlsOptions>, String> {
    match parse(line.split_whitespace().map(OsString::from)) {
        Ok(Request::Serve(options)) => Ok(options.tls),
        Ok(other) => panic!("{line}: {other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn suboptions_read_as_memcached_reads_them() {
    assert_eq!(tls("-p 0"), Ok(None));
    let least = TlsOptions {
        chain: "/c".into(),
        key: None,
        client_certificates: ClientCertificates::NotAsked,
        authorities: None,
        oldest: Oldest::Tls12,
        ciphers: None,
        has_session_cache: false,
        handshake_seconds_max: 10,
    };
    assert_eq!(
        tls("--enable-ssl -o ssl_chain_cert=/c"),
        Ok(Some(least.clone()))
    );
    let all = "-o ssl_chain_cert=/c,ssl_key=/k,ssl_ca_cert=/a,ssl_verify_mode=2,ssl_min_version=3 -Z \
        -o ssl_ciphers=TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256,ssl_session_cache \
        -o ssl_keyformat=1,ssl_wbuf_size=16,modern,ssl_handshake_timeout=3";
    assert_eq!(
        tls(all),
        Ok(Some(TlsOptions {
            key: Some("/k".into()),
            client_certificates: ClientCertificates::Required,
            authorities: Some("/a".into()),
            oldest: Oldest::Tls13,
            ciphers: Some("TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256".to_owned()),
            has_session_cache: true,
            handshake_seconds_max: 3,
            ..least
        }))
    );
}

#[test]
fn mistakes_name_the_suboption_and_what_to_do() {
    for (line, part) in [
        (
            "-Z",
            "-Z: give the server's certificate with -o ssl_chain_cert=FILE",
        ),
        ("-o ssl_chain_cert=/c", "without -Z"),
        (
            "-l notls:127.0.0.1",
            "-l notls:127.0.0.1: notls: says something only with -Z",
        ),
        ("-l mtls:127.0.0.1", "-l mtls:127.0.0.1"),
        ("-Z -s /x -o ssl_chain_cert=/c", "unix socket"),
        ("-Z -U free -o ssl_chain_cert=/c", "-U: what is said by UDP"),
        (
            "-Z -o ssl_chain_cert",
            "-o ssl_chain_cert: give ssl_chain_cert=FILE",
        ),
        ("-Z -o ssl_key=", "-o ssl_key=: give"),
        ("-Z -o ssl_verify_mode=4", "-o ssl_verify_mode=4: give 0"),
        (
            "-Z -o ssl_chain_cert=/c,ssl_verify_mode=1",
            "ssl_ca_cert=FILE",
        ),
        ("-Z -o ssl_min_version=1", "RFC 8996"),
        ("-Z -o ssl_min_version=4", "-o ssl_min_version=4: give 2"),
        (
            "-Z -o ssl_ciphers=HIGH:!aNULL",
            "-o ssl_ciphers=HIGH:!aNULL: give suites",
        ),
        ("-Z -o ssl_kernel_tls", "-o ssl_kernel_tls: what is sent"),
        ("-Z -o ssl_keyformat=3", "-o ssl_keyformat=3"),
        (
            "-Z -o ssl_handshake_timeout=0",
            "-o ssl_handshake_timeout=0",
        ),
        ("-Z -o ssl_session_cache=1", "there is no such suboption"),
        (
            "-Z -o ssl_magic",
            "-o ssl_magic: there is no such suboption",
        ),
    ] {
        let message = tls(line).expect_err(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}
