//! A cache of a few MB: what is gone was counted as evicted, here as in memcached.

use crate::support::memcached::{Memcached, memcached_program};
use crate::support::{Client, Server};
use std::fmt::Write;

/// Fewer replies than sockets hold.
const AT_ONCE: usize = 500;

/// Ask `question` of each number below `keys`, many at once, and count the answers that are `good`.
fn ask_each(
    client: &mut Client,
    keys: usize,
    good: &str,
    question: impl Fn(&mut String, usize),
) -> usize {
    let mut count = 0;
    for first in (0..keys).step_by(AT_ONCE) {
        let mut text = String::new();
        for number in first..keys.min(first + AT_ONCE) {
            question(&mut text, number);
        }
        let answer = String::from_utf8(client.ask(text.as_bytes())).expect("text");
        count += answer.lines().filter(|&line| line == good).count();
    }
    count
}

/// Twice as many as fit, and then which are there.
fn fill_and_count(mut client: Client, mebibytes: usize, value_bytes: usize) {
    let keys = 2 * (mebibytes << 20) / (value_bytes + 18);
    let value = "v".repeat(value_bytes);
    let stored = ask_each(&mut client, keys, "STORED", |text, number| {
        _ = write!(text, "set k{number:06} 0 0 {value_bytes}\r\n{value}\r\n");
    });
    assert_eq!(stored, keys);
    let held = |client: &mut Client| {
        let evicted = client.statistic("evictions");
        let present = client.statistic("curr_items");
        assert_eq!(client.statistic("total_items"), keys as u64);
        assert_eq!(present + evicted, keys as u64, "{value_bytes} bytes");
        assert!(evicted > 0 && present > 0, "{evicted} and {present}");
        present
    };
    held(&mut client);
    // Reading may evict, as what is read is kept.
    let found = ask_each(&mut client, keys, "HD", |text, number| {
        _ = write!(text, "mg k{number:06}\r\n");
    });
    assert_eq!(held(&mut client), found as u64, "{value_bytes} bytes");
}

#[test]
fn what_is_gone_was_evicted() {
    let program = memcached_program();
    if program.is_none() {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
    }
    for mebibytes in [2, 4] {
        let memory = mebibytes.to_string();
        for value_bytes in [50, 1000, 100_000] {
            let server = Server::start(&["-m", &memory]);
            fill_and_count(server.connect(), mebibytes, value_bytes);
            if let Some(program) = &program {
                let without = "no_lru_maintainer,no_lru_crawler,no_slab_reassign";
                let memcached = Memcached::start(program, &["-m", &memory, "-o", without]);
                fill_and_count(Client::connect(memcached.address()), mebibytes, value_bytes);
            }
        }
    }
}
