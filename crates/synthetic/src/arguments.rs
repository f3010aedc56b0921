//! The command line.

use crate::recipe::{Recipe, parse_bytes};
use antagonist::channel::RATE_BOUNDS;
use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What `-h` prints.
pub const HELP: &str = "\
rackscope-synthetic: a server that does a known kind of work for each request and stores nothing

usage: rackscope-synthetic [options]

  -p, --port N                      TCP port; 0 picks a free one                   [11211]
  -l, --listen ADDRESS              address to listen on                           [127.0.0.1]
  -s, --unix-socket PATH            listen on a unix socket instead of TCP
  -c, --conn-limit N                connections at a time                          [1024]
      --on-read WORK                what a get does, for each of its keys          [none]
      --on-update WORK              what a set does                                [none]
      --value-bytes SIZE            bytes of the value that a get answers with     [1000]
      --folder PATH                 where files are made                           [.]
      --file-bytes SIZE             size of each file that is read or written      [256m]
      --channel-bytes-per-second N  of the regulated memory channel                [1g]
  -V, --version                     print the version and exit
  -h, --help                        print this and exit

WORK is one of these, or several joined by +:
  cpu:MICROSECONDS                  instructions that take this long on a core of its own
  memory-stream:BYTES               bytes read of memory that no cache holds
  memory-stream-regulated:BYTES[@BYTES_PER_SECOND]
                                    the same, through a channel of known bandwidth
  page-touch:PAGES                  random pages of a mapped file of --file-bytes
  disk-sequential:BYTES             bytes read in order, past the page cache
  disk-random:BYTES                 bytes read at a random place, past the page cache
  disk-write:BYTES                  bytes written in order, past the page cache
  lock:MICROSECONDS                 asleep while holding the only lock there is
  sleep:MICROSECONDS                asleep
  none                              nothing

Sizes are bytes, or numbers with k, m or g. Files are gone when the server ends.
";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Serve.
    Serve(Options),
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// TCP port; 0 for a free one.
    pub port: u16,
    /// Address or name to listen on.
    pub listen: String,
    /// A unix socket to listen on instead.
    pub unix_socket: Option<PathBuf>,
    /// Connections at a time.
    pub connections: usize,
    /// What a `get` does for each key.
    pub on_read: Recipe,
    /// What a `set` does.
    pub on_update: Recipe,
    /// Bytes of the value that a `get` answers with.
    pub value_bytes: usize,
    /// Where files are made.
    pub folder: PathBuf,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// Of the regulated channel.
    pub channel_bytes_per_second: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 11211,
            listen: "127.0.0.1".to_owned(),
            unix_socket: None,
            connections: 1024,
            on_read: Recipe::default(),
            on_update: Recipe::default(),
            value_bytes: 1000,
            folder: PathBuf::from("."),
            file_bytes: 256 << 20,
            channel_bytes_per_second: 1 << 30,
        }
    }
}

/// A command line that asks for nothing that can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an option, or one without its value.
    #[error("{0}; rackscope-synthetic -h lists the options")]
    Syntax(#[from] lexopt::Error),
    /// An option with a value it cannot have.
    #[error("{0}")]
    Value(String),
}

/// A value as large as a cache would ever take.
pub const VALUE_BYTES_MAX: u64 = 32 << 20;
/// Files stay small enough for any disk.
const FILE_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 30;

/// Read a command line, without the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    let mut channel = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Short('p') | Long("port") => {
                options.port =
                    number(&mut parser, "-p", 0..=65_535, "a port is 0 to 65535")? as u16;
            }
            Short('l') | Long("listen") => options.listen = parser.value()?.string()?,
            Short('s') | Long("unix-socket") => {
                options.unix_socket = Some(PathBuf::from(parser.value()?));
            }
            Short('c') | Long("conn-limit") => {
                let reason = "connections are 1 to 20000, each with a thread";
                options.connections = number(&mut parser, "-c", 1..=20_000, reason)? as usize;
            }
            Long("on-read") => options.on_read = recipe(&mut parser, "--on-read")?,
            Long("on-update") => options.on_update = recipe(&mut parser, "--on-update")?,
            Long("value-bytes") => {
                let (option, bounds) = ("--value-bytes", 1..=VALUE_BYTES_MAX);
                options.value_bytes =
                    number(&mut parser, option, bounds, "a value is 1 byte to 32m")? as usize;
            }
            Long("folder") => options.folder = PathBuf::from(parser.value()?),
            Long("file-bytes") => {
                let (option, bounds) = ("--file-bytes", FILE_BYTES);
                options.file_bytes = number(&mut parser, option, bounds, "a file is 1m to 1g")?;
            }
            Long("channel-bytes-per-second") => {
                let (option, bounds) = ("--channel-bytes-per-second", RATE_BOUNDS);
                let reason = "a channel carries 1k bytes a second or more";
                channel = Some(number(&mut parser, option, bounds, reason)?);
            }
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('h') | Long("help") => return Ok(Request::Help),
            Value(_) | Short(_) | Long(_) => return Err(argument.unexpected().into()),
        }
    }
    if let Some(rate) = one_rate(channel, &options)? {
        options.channel_bytes_per_second = rate;
    }
    Ok(Request::Serve(options))
}

/// The rate of the channel, wherever it was given.
fn one_rate(given: Option<u64>, options: &Options) -> Result<Option<u64>, Error> {
    let steps = options.on_read.0.iter().chain(&options.on_update.0);
    let mut rates = given
        .into_iter()
        .chain(steps.filter_map(|work| work.bytes_per_second));
    let first = rates.next();
    match (first, rates.find(|&rate| Some(rate) != first)) {
        (Some(first), Some(second)) => Err(Error::Value(format!(
            "there is one regulated channel, and it was given {first} and {second} bytes a second; give one rate"
        ))),
        _ => Ok(first),
    }
}

fn recipe(parser: &mut lexopt::Parser, option: &str) -> Result<Recipe, Error> {
    let value = parser.value()?.string()?;
    value
        .parse()
        .map_err(|error| Error::Value(format!("{option} {value}: {error}")))
}

fn number(
    parser: &mut lexopt::Parser,
    option: &str,
    bounds: RangeInclusive<u64>,
    reason: &str,
) -> Result<u64, Error> {
    let value = parser.value()?.string()?;
    parse_bytes(&value)
        .filter(|number| bounds.contains(number))
        .ok_or_else(|| Error::Value(format!("{option} {value}: {reason}")))
}

#[cfg(test)]
mod tests;
