//! What the operator is told of files that TLS cannot be spoken with.

use crate::authority::{Authority, install};
use crate::support::{Folder, run};

#[test]
fn each_file_that_is_of_no_use_is_one_line_with_its_option() {
    let folder = Folder::new("files");
    let authority = Authority::new("the server's");
    let identity = authority.vouch("cache.test");
    install(&folder, &identity);
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path(name), text).expect("write a file");
    };
    let chain = identity.certificate.pem();
    write("empty", "");
    write("prose", "This is not it.\n");
    write(
        "other-key.pem",
        &authority.vouch("cache.test").key.serialize_pem(),
    );
    write(
        "encrypted.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    write(
        "garbled-key.pem",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    write("cut.pem", &chain[..chain.len() / 2]);
    write(
        "garbled.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    write("authority.pem", &authority.pem());
    for (options, option, what) in [
        (
            "ssl_chain_cert=/no/such/file,ssl_key=key.pem",
            "ssl_chain_cert=/no/such/file",
            "No such file",
        ),
        (
            "ssl_chain_cert=empty,ssl_key=key.pem",
            "ssl_chain_cert=",
            "no certificate is in it",
        ),
        (
            "ssl_chain_cert=prose,ssl_key=key.pem",
            "ssl_chain_cert=",
            "no certificate is in it",
        ),
        (
            "ssl_chain_cert=key.pem,ssl_key=key.pem",
            "ssl_chain_cert=",
            "no certificate is in it",
        ),
        (
            "ssl_chain_cert=cut.pem,ssl_key=key.pem",
            "ssl_chain_cert=",
            "cut.pem",
        ),
        (
            "ssl_chain_cert=garbled.pem,ssl_key=key.pem",
            "ssl_chain_cert=",
            "garbled.pem",
        ),
        (
            "ssl_chain_cert=.,ssl_key=key.pem",
            "ssl_chain_cert=",
            "directory",
        ),
        (
            "ssl_chain_cert=chain.pem",
            "ssl_chain_cert=",
            "give its file with -o ssl_key=FILE",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=/no/such/file",
            "ssl_key=/no/such/file",
            "No such file",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=chain.pem",
            "ssl_key=",
            "no private key is in it",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=empty",
            "ssl_key=",
            "no private key is in it",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=encrypted.pem",
            "ssl_key=",
            "encrypted; give one without a passphrase",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=garbled-key.pem",
            "ssl_key=",
            "of no kind that is known",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=other-key.pem",
            "ssl_key=",
            "not that of the certificate in",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=key.pem,ssl_ca_cert=/no/such/file",
            "ssl_ca_cert=/no",
            "No such file",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=key.pem,ssl_ca_cert=empty",
            "ssl_ca_cert=",
            "no certificate is in it",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=key.pem,ssl_ca_cert=garbled.pem,ssl_verify_mode=2",
            "ssl_ca_cert=",
            "garbled.pem",
        ),
        (
            "ssl_chain_cert=chain.pem,ssl_key=key.pem,ssl_verify_mode=2,ssl_ca_cert=authority.pem,ssl_handshake_timeout=x",
            "ssl_handshake_timeout=x",
            "SECONDS",
        ),
    ] {
        let options: Vec<String> = options
            .split(',')
            .map(|one| match one.split_once('=') {
                Some((name, file))
                    if name != "ssl_verify_mode"
                        && name != "ssl_handshake_timeout"
                        && !file.starts_with('/') =>
                {
                    format!("{name}={}", folder.path(file))
                }
                _ => one.to_owned(),
            })
            .collect();
        let (status, output, message) = run(&["-p", "0", "-Z", "-o", &options.join(",")]);
        assert!(
            matches!(status, Some(1 | 2)) && output.is_empty(),
            "{options:?}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.starts_with("rackscope-cached: -o ")
                && message.contains(option)
                && message.contains(what),
            "{options:?}: {message}"
        );
    }
}

#[test]
fn a_key_in_der_will_do() {
    let folder = Folder::new("der");
    let identity = Authority::new("the server's").vouch("cache.test");
    install(&folder, &identity);
    std::fs::write(folder.path("key.der"), identity.key.serialize_der()).expect("write a file");
    let options = format!(
        "ssl_chain_cert={},ssl_key={},ssl_keyformat=2",
        folder.path("chain.pem"),
        folder.path("key.der")
    );
    crate::support::Server::start(&["-Z", "-o", &options]);
}
