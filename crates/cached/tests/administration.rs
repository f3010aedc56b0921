//! What those who look after a server ask of it.

use crate::support::{Client, Server, shown};
use std::collections::BTreeMap;

/// The statistics of a section by name.
fn statistics(client: &mut Client, section: &str) -> BTreeMap<String, String> {
    let answer = String::from_utf8(client.ask(format!("stats {section}\r\n").as_bytes()));
    let answer = answer.expect("text");
    let lines = answer.strip_suffix("END\r\n").expect("an end");
    lines
        .lines()
        .map(|line| {
            let (name, value) = line
                .strip_prefix("STAT ")
                .and_then(|line| line.split_once(' '))
                .expect("a statistic");
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

fn expect(client: &mut Client, exchanges: &[(&str, &str)]) {
    for (question, answer) in exchanges {
        assert_eq!(
            shown(&client.ask(format!("{question}\r\n").as_bytes())),
            shown(answer.as_bytes()),
            "{question}"
        );
    }
}

#[test]
fn settings_have_memcached_s_names() {
    let server = Server::start(&["-X", "-c", "77"]);
    let settings = statistics(&mut server.connect(), "settings");
    for (name, value) in [
        ("maxconns", "77"),
        ("domain_socket", "NULL"),
        ("umask", "700"),
        ("detail_enabled", "no"),
        ("dump_enabled", "no"),
        ("flush_enabled", "yes"),
        ("auth_enabled_ascii", "no"),
        ("lru_crawler", "no"),
        ("slab_reassign", "no"),
    ] {
        assert_eq!(
            settings.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
}

#[test]
fn what_is_not_there_says_so() {
    let server = Server::start(&["-m", "64"]);
    let mut client = server.connect();
    expect(
        &mut client,
        &[
            ("stats sizes", "STAT sizes_status disabled\r\nEND\r\n"),
            ("stats nonsense", "ERROR\r\n"),
            ("stats items", "END\r\n"),
            (
                "stats slabs",
                "STAT active_slabs 0\r\nSTAT total_malloced 0\r\nEND\r\n",
            ),
            (
                "stats cachedump 1 0",
                "CLIENT_ERROR stats cachedump not allowed\r\n",
            ),
            (
                "stats detail on",
                "CLIENT_ERROR stats detail not allowed\r\n",
            ),
            ("lru_crawler metadump all", "ERROR metadump not allowed\r\n"),
            ("watch", "CLIENT_ERROR watch commands not allowed\r\n"),
            (
                "slabs reassign 1 2",
                "CLIENT_ERROR slab reassignment disabled\r\n",
            ),
            (
                "lru_crawler crawl all",
                "CLIENT_ERROR lru crawler disabled\r\n",
            ),
            (
                "cache_memlimit 128",
                "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
            ),
            ("cache_memlimit 64 noreply", ""),
        ],
    );
}
