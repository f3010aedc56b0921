//! The command line.

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};
use std::ffi::OsString;
use std::path::PathBuf;

/// What `-h` prints.
pub const HELP: &str = "\
rackscope-cached: an in-memory cache that speaks memcached's text protocol (classic and meta)

usage: rackscope-cached [options]

  -p, --port N              TCP port; 0 picks a free one             [11211]
  -l, --listen ADDRESS,...  addresses or host names to listen on     [127.0.0.1]
  -s, --unix-socket PATH    listen on a unix socket instead of TCP
  -U, --udp-port 0          accepted for memcached's sake; UDP is not served
  -m, --memory-limit MIB    room for items                           [64]
  -I, --max-item-size SIZE  largest item: bytes, or with k, m or g; at most half
                            of a partition                           [1m, or less where -m is small]
  -t, --threads N           worker threads                           [1]
      --cores N,...         pin worker threads to these cores, in turn
  -c, --conn-limit N        connections at a time                    [1024]
  -v, --verbose             say more on standard error (-vv: every connection)
  -V, --version             print the version and exit
  -h, --help                print this and exit

Items live in a circular log: when it is full, the oldest goes, except that an item
read shortly before its turn moves to the front again. Their index comes on top of
-m: about 8 bytes an item. SIGTERM and SIGINT end the server with exit status 0.
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
    /// Addresses or names to listen on.
    pub listen: Vec<String>,
    /// A unix socket to listen on instead.
    pub unix_socket: Option<PathBuf>,
    /// Room for items, in MiB.
    pub memory_mebibytes: usize,
    /// The largest item in bytes, where it was given.
    pub item_bytes_max: Option<usize>,
    /// Worker threads.
    pub threads: usize,
    /// Cores for them; empty for no pinning.
    pub cores: Vec<usize>,
    /// Connections at a time.
    pub connections: usize,
    /// How much to say on standard error.
    pub verbosity: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 11211,
            listen: vec!["127.0.0.1".to_owned()],
            unix_socket: None,
            memory_mebibytes: 64,
            item_bytes_max: None,
            threads: 1,
            cores: Vec::new(),
            connections: 1024,
            verbosity: 0,
        }
    }
}

/// A command line that asks for nothing that can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an option, or one without its value.
    #[error("{0}; rackscope-cached -h lists the options")]
    Syntax(#[from] lexopt::Error),
    /// An option with a value it cannot have.
    #[error("{option} {value}: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// Its value as given.
        value: String,
        /// What it should be.
        reason: &'static str,
    },
}

/// Threads, connections and mebibytes are numbers that a mistyped digit should not turn into a dead host.
const THREADS_MAX: usize = 256;

/// Read a command line, without the program's name.
///
/// # Errors
/// [`Error`] names the option and what it takes.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('p') | Long("port") => {
                options.port = number(&mut parser, "-p", 0, 65_535, "a port is 0 to 65535")? as u16
            }
            Short('U') | Long("udp-port") => {
                number(
                    &mut parser,
                    "-U",
                    0,
                    0,
                    "UDP is not served; leave it out or give 0",
                )?;
            }
            Short('l') | Long("listen") => {
                let value = text(&mut parser)?;
                let addresses: Vec<String> =
                    value.split(',').map(str::trim).map(str::to_owned).collect();
                if addresses.iter().any(String::is_empty) {
                    return Err(bad(
                        "-l",
                        value,
                        "give addresses or host names, separated by commas",
                    ));
                }
                options.listen = addresses;
            }
            Short('s') | Long("unix-socket") => {
                options.unix_socket = Some(PathBuf::from(parser.value()?))
            }
            Short('m') | Long("memory-limit") => {
                options.memory_mebibytes = number(
                    &mut parser,
                    "-m",
                    1,
                    8 << 20,
                    "memory is in MiB, 1 to 8388608",
                )?;
            }
            Short('I') | Long("max-item-size") => {
                let value = text(&mut parser)?;
                let reason = "give bytes, or a number with k, m or g; 1k to 1g";
                options.item_bytes_max = match size(&value) {
                    Some(bytes) if (1 << 10..=1 << 30).contains(&bytes) => Some(bytes),
                    _ => return Err(bad("-I", value, reason)),
                };
            }
            Short('t') | Long("threads") => {
                options.threads = number(&mut parser, "-t", 1, THREADS_MAX, "threads are 1 to 256")?
            }
            Long("cores") => {
                let value = text(&mut parser)?;
                let cores: Result<_, _> =
                    value.split(',').map(|core| core.trim().parse()).collect();
                options.cores = cores
                    .map_err(|_| bad("--cores", value, "give core numbers, separated by commas"))?;
            }
            Short('c') | Long("conn-limit") => {
                options.connections = number(
                    &mut parser,
                    "-c",
                    1,
                    10_000_000,
                    "connections are 1 to 10000000",
                )?;
            }
            Short('v') | Long("verbose") => options.verbosity = options.verbosity.saturating_add(1),
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('h') | Long("help") => return Ok(Request::Help),
            Value(_) | Short(_) | Long(_) => return Err(argument.unexpected().into()),
        }
    }
    Ok(Request::Serve(options))
}

fn text(parser: &mut lexopt::Parser) -> Result<String, Error> {
    Ok(parser.value()?.string()?)
}

fn bad(option: &'static str, value: String, reason: &'static str) -> Error {
    Error::Value {
        option,
        value,
        reason,
    }
}

fn number(
    parser: &mut lexopt::Parser,
    option: &'static str,
    least: usize,
    most: usize,
    reason: &'static str,
) -> Result<usize, Error> {
    let value = text(parser)?;
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(bad(option, value, reason)),
    }
}

/// A size such as `4096`, `512k`, `1m` or `1g`.
fn size(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    fn options(line: &str) -> Options {
        match parse_line(line) {
            Ok(Request::Serve(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_read_as_memcached_reads_them() {
        assert_eq!(options(""), Options::default());
        let long = options(
            "--port=0 --listen=::1,localhost --memory-limit 128 --threads 2 --conn-limit 9 --max-item-size 512k --udp-port 0",
        );
        assert_eq!(
            long,
            options("-p0 -l ::1,localhost -m128 -t 2 -c 9 -I 524288 -U 0")
        );
        assert_eq!(
            (long.port, long.threads, long.item_bytes_max),
            (0, 2, Some(524_288))
        );
        assert_eq!(options("-vv").verbosity, 2);
        assert_eq!(options("--cores 0,3").cores, [0, 3]);
        assert_eq!(
            options("-s /tmp/x").unix_socket,
            Some(PathBuf::from("/tmp/x"))
        );
        assert_eq!(parse_line("-p 0 -h"), Ok(Request::Help));
        assert_eq!(parse_line("-V"), Ok(Request::Version));
    }

    #[test]
    fn mistakes_name_the_option_and_what_it_takes() {
        for (line, part) in [
            ("-p 65536", "-p 65536: a port is 0 to 65535"),
            ("-p", "-p"),
            ("-U 11211", "UDP is not served"),
            ("-m 0", "-m 0: memory is in MiB"),
            ("-m lots", "-m lots"),
            ("-I 1t", "-I 1t: give bytes"),
            ("-I 99999999999g", "-I"),
            ("-I k", "-I k"),
            ("-t 0", "-t 0: threads"),
            ("--cores 0,x", "--cores 0,x: give core numbers"),
            ("-l ,", "-l ,"),
            ("--color", "--color"),
            ("serve", "serve"),
        ] {
            let message = parse_line(line).expect_err(line);
            assert!(message.contains(part), "{line}: {message}");
        }
    }
}
