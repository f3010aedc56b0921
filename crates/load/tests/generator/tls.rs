//! TLS: who is trusted, and that all else works as it does without.
use crate::toy::{Behaviour, Reply, Toy};
use crate::{client, phase, preload, run_well};
use load::LoadClient;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("load-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn named(name: &str, is_ca: bool) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params
}

/// A server with this certificate, and its reply in pieces, so that records and replies do not end together.
fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> Toy {
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(vec![certificate], key)
        })
        .expect("a configuration");
    let config = Arc::new(config);
    let behaviour = Behaviour {
        reply: |number, reply| match number % 3 {
            0 => Reply::SendInPieces(reply, 700),
            _ => Reply::Send(reply),
        },
        ..Behaviour::default()
    };
    Toy::start_with(behaviour, move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).ok()?;
        Some(StreamOwned::new(session, stream))
    })
}

fn target(port: u16, file: &Path, name: Option<&str>) -> Value {
    let tls = json!({"trusted_file": file, "server_name": name});
    json!({"target": {"kind": "tcp", "host": "127.0.0.1", "port": port, "tls": tls}})
}

#[test]
fn values_larger_than_records_are_read_back_from_a_server_that_signed_for_itself() {
    let files = Files::new("self");
    let key = KeyPair::generate().expect("a key");
    // As `openssl req -x509` makes them: an authority that is its own server.
    let certificate = named("elsewhere", true)
        .self_signed(&key)
        .expect("a certificate");
    let file = files.write("server.pem", &certificate.pem());
    let toy = server(certificate.der().clone(), &key);
    let mut changes = target(toy.port, &file, None);
    changes["values"] = json!({"kind": "fixed", "bytes": 40_000});
    changes["pipeline"] = json!(8);
    let client = client(toy.port, changes);
    run_well(&client, &preload(50));
    let result = run_well(&client, &phase(json!({})));
    assert_eq!(result.operations, 1000);
    assert!(result.bytes_received > 400 * 40_000);
}

#[test]
fn an_authority_is_trusted_for_the_name_that_it_certified() {
    let files = Files::new("authority");
    let authority_key = KeyPair::generate().expect("a key");
    let params = named("authority", true);
    let authority = params.self_signed(&authority_key).expect("a certificate");
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().expect("a key");
    let certificate = named("cache.test", false)
        .signed_by(&key, &issuer)
        .expect("a certificate");
    let trusted = files.write("authority.pem", &authority.pem());
    let toy = server(certificate.der().clone(), &key);
    let client = client(toy.port, target(toy.port, &trusted, Some("cache.test")));
    run_well(&client, &preload(50));

    let other = named("other", true)
        .self_signed(&KeyPair::generate().expect("a key"))
        .expect("a certificate");
    let other = files.write("other.pem", &other.pem());
    let nothing = files.write("nothing.pem", "no certificate");
    for (file, name, sentence) in [
        (&trusted, None, "certificate"),
        (&other, Some("cache.test"), "certificate"),
        (&nothing, None, "holds no certificate"),
        (&files.0.join("missing.pem"), None, "cannot read"),
    ] {
        let config = json!({
            "protocol": "memcached_text", "connections": 1, "seed": 1,
            "keys": {"count": 50, "size": {"kind": "fixed", "bytes": 24}},
            "values": {"kind": "fixed", "bytes": 100},
        });
        let config = crate::with(config, target(toy.port, file, name));
        let refused = LoadClient::new(&config.to_string()).expect_err(sentence);
        assert!(refused.to_string().contains(sentence), "{refused}");
    }
}
