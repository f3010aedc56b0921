//! The command line.

mod error;
mod tls;

pub use self::error::Error;

use self::error::{bad, refused};
use self::tls::TlsArguments;
use super::address::ListenAddress;
use crate::options::{Access, Options, Protocols, Transport};
use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};
use net::Congestion;
use std::ffi::OsString;
use std::path::PathBuf;

/// What `-h` prints.
pub const HELP: &str = "\
rackscope-cached: an in-memory cache that speaks memcached's protocols (text, meta and binary)

usage: rackscope-cached [options]

  -p, --port N              TCP port; 0 picks a free one             [11211]
  -l, --listen ADDRESS,...  addresses or host names to listen on, each with :PORT where
                            it is another; notls:ADDRESS is not encrypted [127.0.0.1]
  -s, --unix-socket PATH    listen on a unix socket instead of TCP
  -a, --unix-mask MODE      who may open the unix socket, in octal   [700]
  -U, --udp-port N          UDP port; 0 for none, 'free' picks one   [0]
      --xdp INTERFACE       serve the datagrams of this network interface past the
                            kernel (AF_XDP); takes -U with a number
  -b, --listen-backlog N    connections that may wait for an answer  [1024]
  -m, --memory-limit MIB    memory for items                         [64]
  -M, --disable-evictions   when memory is full, answer so and keep every item
  -I, --max-item-size SIZE  largest item: bytes, or with k, m or g; at most 3/4
                            of a partition                           [1m, or less where -m is small]
  -t, --threads N           worker threads                           [1]
      --cores N,...         pin worker threads to these cores, in turn
      --access MODE         who may touch an item: its worker alone (erew), all may
                            read (crew), all may read and write (crcw)      [crcw]
      --transport NAME      epoll, io_uring, or auto: io_uring if it can be had [epoll]
  -c, --conn-limit N        connections at a time                    [1024]
  -B, --protocol NAME       auto, ascii or binary                    [auto]
  -F, --disable-flush-all   refuse flush_all
  -A, --enable-shutdown     let clients end the server with 'shutdown'
  -Y, --auth-file FILE      lines of user:password; clients that speak text must
                            first 'set' one of them, as 'user password'
  -e, --memory-file FILE    keep items in this file at a graceful stop (SIGUSR1, SIGTERM,
                            SIGINT, 'shutdown'), and take them back at the next start
  -d, --daemon              go to the background once ready
  -P, --pidfile FILE        keep the process number in a file
  -u, --user NAME           who to be, when started as root
  -k, --lock-memory         keep all memory that is used from being swapped
  -r, --enable-coredumps    leave core files as large as the host allows
  -Z, --enable-ssl          encrypt what is said over TCP (TLS 1.2 and 1.3)
  -o, --extended NAME=VALUE,...
     idle_timeout=SECONDS   close connections that ask for nothing so long
     congestion=NAME        congestion control of TCP connections; system for the
                            host's                          [reno for loopback peers]
     read_buf_mem_limit=MIB what clients sent in part and replies that they do not take
                            may use together; 0 for no limit         [a quarter of -m, at
                            least 64 and three times the largest item]
     ssl_chain_cert=FILE    the server's certificate and those that lead to its authority
     ssl_key=FILE           its private key, where that is not in the same file
     ssl_verify_mode=N      ask clients for certificates: 0 never, 1 if they have one,
                            2 and 3 always                           [0]
     ssl_ca_cert=FILE       authorities that vouch for clients
     ssl_min_version=N      2 for TLS 1.2, 3 for TLS 1.3             [2]
     ssl_ciphers=NAME:...   suites, by OpenSSL's names               [all there are]
     ssl_session_cache      let clients resume sessions
     ssl_handshake_timeout=SECONDS
                            give up handshakes that take longer      [10]
      --metrics ADDRESS     serve metrics to Prometheus at http://ADDRESS/metrics
  -v, --verbose             say more on standard error (-vv: every connection)
  -V, --version             print the version and exit
  -h, --help                print this and exit

Items live in a circular log: when it is full, the oldest goes, except that an item
read shortly before its turn moves to the front again. Their index comes on top of
-m: about 8 bytes an item. With -M they lie in blocks that are used again when an
item goes. SIGTERM, SIGINT and SIGUSR1 end the server with exit status 0.

memcached's -C, -f, -L, -n, -R, -W, -X and other -o are accepted and change nothing:
there are no slabs to tune, huge pages are used anyway, a connection's turn is
bounded by bytes, and keys are never listed or watched. -S is refused.
";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Serve.
    Serve(Box<Options>),
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// Threads, connections and mebibytes are numbers that a mistyped digit should not turn into a dead host.
const THREADS_MAX: usize = 256;

/// Read a command line, without the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    let mut tls = TlsArguments::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('p') | Long("port") => {
                options.port = number(&mut parser, "-p", 0, 65_535, "a port is 0 to 65535")? as u16
            }
            Short('U') | Long("udp-port") => {
                let value = text(&mut parser)?;
                options.udp_port = match (value.as_str(), value.parse()) {
                    ("free", _) => Some(0),
                    (_, Ok(0)) => None,
                    (_, Ok(port)) => Some(port),
                    _ => {
                        return Err(bad(
                            "-U",
                            value,
                            "a port is 1 to 65535; 0 for none, or free",
                        ));
                    }
                };
            }
            Long("xdp") => options.interface = Some(text(&mut parser)?),
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
                for address in &addresses {
                    ListenAddress::parse(address)
                        .map_err(|reason| bad("-l", address.clone(), reason))?;
                }
                options.listen = addresses;
            }
            Short('s') | Long("unix-socket") => {
                options.unix_socket = Some(PathBuf::from(parser.value()?))
            }
            Short('a') | Long("unix-mask") => {
                let value = text(&mut parser)?;
                options.unix_socket_mode = match u32::from_str_radix(&value, 8) {
                    Ok(mode) if mode <= 0o777 => mode,
                    _ => return Err(bad("-a", value, "give a file's mode in octal, such as 770")),
                };
            }
            Short('b') | Long("listen-backlog") => {
                options.backlog =
                    number(&mut parser, "-b", 1, 65_535, "a backlog is 1 to 65535")? as u16;
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
            Short('M') | Long("disable-evictions") => options.evicts = false,
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
            Long("access") => {
                let all = [Access::Erew, Access::Crew, Access::Crcw];
                let reason = "give erew, crew or crcw";
                options.access = choice(&mut parser, "--access", all, Access::name, reason)?;
            }
            Long("transport") => {
                let all = [Transport::Auto, Transport::Epoll, Transport::IoUring];
                let (name, reason) = (Transport::name, "give auto, epoll or io_uring");
                options.transport = choice(&mut parser, "--transport", all, name, reason)?;
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
            Short('B') | Long("protocol") => {
                let value = text(&mut parser)?;
                options.protocols = match value.as_str() {
                    "auto" => Protocols::Any,
                    "ascii" => Protocols::Text,
                    "binary" => Protocols::Binary,
                    _ => return Err(bad("-B", value, "give auto, ascii or binary")),
                };
            }
            Short('F') | Long("disable-flush-all") => options.allows_flush = false,
            Short('A') | Long("enable-shutdown") => options.allows_shutdown = true,
            Short('Y') | Long("auth-file") => {
                options.accounts = Some(PathBuf::from(parser.value()?));
            }
            Short('d') | Long("daemon") => options.process.is_daemon = true,
            Short('P') | Long("pidfile") => {
                options.process.pid_file = Some(PathBuf::from(parser.value()?));
            }
            Short('u') | Long("user") => options.process.user = Some(text(&mut parser)?),
            Short('k') | Long("lock-memory") => options.process.locks_memory = true,
            Short('r') | Long("enable-coredumps") => options.process.dumps_core = true,
            Short('o') | Long("extended") => {
                let value = text(&mut parser)?;
                extended(&value, &mut options, &mut tls)?;
            }
            Long("metrics") => {
                let value = text(&mut parser)?;
                let address = value.parse();
                options.metrics = Some(address.map_err(|_| {
                    bad(
                        "--metrics",
                        value,
                        "give ADDRESS:PORT, such as 127.0.0.1:9150",
                    )
                })?);
            }
            // What has no meaning here, so that a unit file need not be changed.
            Short('C' | 'L' | 'W' | 'X')
            | Long("disable-cas" | "enable-largepages" | "disable-watch" | "disable-dumping") => {}
            Short('f' | 'n' | 'R')
            | Long("slab-growth-factor" | "slab-min-size" | "max-reqs-per-event") => {
                text(&mut parser)?;
            }
            Short('e') | Long("memory-file") => {
                options.memory_file = Some(PathBuf::from(parser.value()?));
            }
            Short('S') | Long("enable-sasl") => {
                return Err(refused(
                    "-S",
                    "SASL is not spoken here; -Y asks clients of the text protocol for a password",
                ));
            }
            Short('Z') | Long("enable-ssl") => tls.turn_on(),
            Short('v') | Long("verbose") => options.verbosity = options.verbosity.saturating_add(1),
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('h') | Long("help") => return Ok(Request::Help),
            Value(_) | Short(_) | Long(_) => return Err(argument.unexpected().into()),
        }
    }
    if options.accounts.is_some() {
        // Only the text protocol has a way to give a password.
        match options.protocols {
            Protocols::Binary => {
                return Err(refused(
                    "-Y",
                    "passwords need the text protocol; leave out -B binary",
                ));
            }
            Protocols::Any | Protocols::Text => options.protocols = Protocols::Text,
        }
        if options.udp_port.is_some() {
            return Err(refused(
                "-U",
                "who gives a password needs a connection to give it by; leave out -U or -Y",
            ));
        }
    }
    if options.interface.is_some() && options.udp_port.unwrap_or(0) == 0 {
        return Err(refused(
            "--xdp",
            "say the UDP port with -U, as a number: those of the workers follow it",
        ));
    }
    options.tls = tls.finish(&options)?;
    Ok(Request::Serve(Box::new(options)))
}

/// What memcached tunes with `-o` and has no counterpart here.
const WITHOUT_MEANING: &str = "\
    maxconns_fast no_maxconns_fast hashpower no_hashexpand tail_repair_time hash_algorithm lru_crawler \
    no_lru_crawler lru_crawler_sleep lru_crawler_tocrawl lru_maintainer no_lru_maintainer hot_lru_pct \
    warm_lru_pct hot_max_factor warm_max_factor temporary_ttl slab_reassign no_slab_reassign \
    slab_automove slab_automove_ratio slab_automove_window no_slab_automove slab_automove_freeratio \
    slab_chunk_max slab_sizes no_chunked_items track_sizes inline_ascii_resp no_inline_ascii_resp \
    worker_logbuf_size watcher_logbuf_size resp_obj_mem_limit drop_privileges \
    no_drop_privileges relaxed_privileges modern no_modern";

/// memcached's `-o name,name=value`.
fn extended(text: &str, options: &mut Options, tls: &mut TlsArguments) -> Result<(), Error> {
    for one in text.split(',') {
        let (name, value) = one.split_once('=').unwrap_or((one, ""));
        match name {
            "idle_timeout" => {
                let seconds = value.parse();
                options.idle_seconds_max =
                    seconds.map_err(|_| bad("-o", one.to_owned(), "give idle_timeout=SECONDS"))?;
            }
            "congestion" => {
                options.congestion = match value {
                    "" => return Err(bad("-o", one.to_owned(), "give congestion=NAME, or system")),
                    "system" => Congestion::System,
                    name => Congestion::Named(name.to_owned()),
                };
            }
            "read_buf_mem_limit" => {
                let mebibytes: Option<usize> =
                    value.parse().ok().filter(|&mebibytes| mebibytes <= 8 << 20);
                options.client_memory_mebibytes = Some(mebibytes.ok_or_else(|| {
                    bad(
                        "-o",
                        one.to_owned(),
                        "give read_buf_mem_limit=MIB, or 0 for no limit",
                    )
                })?);
            }
            name if name.starts_with("ssl_") => tls.set(name, value, one)?,
            name if WITHOUT_MEANING.split(' ').any(|known| known == name) => {}
            _ => return Err(bad("-o", one.to_owned(), "there is no such suboption here")),
        }
    }
    Ok(())
}

fn text(parser: &mut lexopt::Parser) -> Result<String, Error> {
    Ok(parser.value()?.string()?)
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

/// The one of `all` that is named.
fn choice<T: Copy>(
    parser: &mut lexopt::Parser,
    option: &'static str,
    all: [T; 3],
    name: impl Fn(T) -> &'static str,
    reason: &'static str,
) -> Result<T, Error> {
    let value = text(parser)?;
    let named = all.into_iter().find(|&known| name(known) == value);
    named.ok_or_else(|| bad(option, value, reason))
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
mod tests;
