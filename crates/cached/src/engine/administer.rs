//! The text commands of those who look after a server.

use super::context::Context;
use super::dump;
use super::statistics::Section;
use super::storage::Storage;
use std::fmt::Display;
use wire::memcached::server::reply;

impl<S: Storage> Context<'_, S> {
    /// `stats` with a section and what follows it.
    pub(crate) fn stats(&mut self, section: &[u8], arguments: &[u8], out: &mut Vec<u8>) {
        match section {
            b"detail" => return self.stats_detail(arguments, out),
            b"cachedump" => return dump::of_class(self, arguments, out),
            _ => {}
        }
        let mut each = |name: &str, value: &dyn Display| reply::statistic(out, name, value);
        let section = self.statistics(section, &mut each);
        reply::line(
            out,
            match section {
                Section::Written => b"END",
                Section::Reset => b"RESET",
                Section::Unknown => b"ERROR",
            },
        );
    }

    fn stats_detail(&self, arguments: &[u8], out: &mut Vec<u8>) {
        let prefixes = &self.state.prefixes;
        let answer: &[u8] = match arguments.split(|&byte| byte == b' ').next() {
            Some(b"on") => {
                prefixes.switch(true);
                b"OK"
            }
            Some(b"off") => {
                prefixes.switch(false);
                b"OK"
            }
            Some(b"dump") => {
                prefixes.write(out);
                b"END"
            }
            _ => b"CLIENT_ERROR usage: stats detail on|off|dump",
        };
        reply::line(out, answer);
    }

    /// `cache_memlimit`: the logs stay as long as they were made.
    pub(crate) fn memory_limit(&self, mebibytes: u32, out: &mut Vec<u8>) {
        let is_so_already = self.state.options.memory_mebibytes == mebibytes as usize;
        reply::line(
            out,
            if is_so_already {
                b"OK"
            } else {
                b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"
            },
        );
    }
}
