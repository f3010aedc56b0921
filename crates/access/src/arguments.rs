//! The command line.

use crate::store::Access;
use lexopt::ValueExt;
use lexopt::prelude::{Long, Short};
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// What `-h` prints.
pub const HELP: &str = "\
rackscope-access: what partitions do in process when a core works on its own (EREW), reads all (CREW) or reads and
writes all (CRCW)

usage: rackscope-access [options]

      --items N        items of 8 + 8 bytes                                      [16000000]
      --seconds S      length of a measurement                                   [1]
      --rounds N       how often each is made                                    [5]
      --cores N        with this many cores only                                 [1, 2, 4, ... as many as there are]
      --partitions N   partitions, the same under every access mode   [4 for each of the most cores]
      --access NAME    only erew, crew or crcw, or a structure by others: papaya or masstree
      --peers          structures by others too
      --json           measure what is asked for on standard input, one JSON object a line, and answer each with one
  -V, --version        print the version and exit
  -h, --help           print this and exit
";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Measure everything and print a table.
    Table(Options),
    /// Measure what is asked for on standard input.
    Json {
        /// How many items a store holds.
        items: u64,
    },
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// What the table is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Items of 8 + 8 bytes.
    pub items: u64,
    /// Length of a measurement.
    pub seconds: f64,
    /// How often each is made.
    pub rounds: usize,
    /// Only this many cores.
    pub cores: Option<usize>,
    /// Partitions of every store.
    pub partitions: Option<usize>,
    /// Only this.
    pub access: Option<Access>,
    /// Structures by others too.
    pub with_peers: bool,
}

impl Options {
    /// What is measured.
    pub fn accesses(&self) -> Vec<Access> {
        let peers = if self.with_peers {
            &Access::PEERS[..]
        } else {
            &[]
        };
        self.access.map_or_else(
            || Access::MODES.iter().chain(peers).copied().collect(),
            |only| vec![only],
        )
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            items: 16_000_000,
            seconds: 1.0,
            rounds: 5,
            cores: None,
            partitions: None,
            access: None,
            with_peers: false,
        }
    }
}

/// A command line that asks for nothing that can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an option, or one without its value.
    #[error("{0}; rackscope-access -h lists the options")]
    Syntax(#[from] lexopt::Error),
    /// An option with a value it cannot have.
    #[error("{0}")]
    Value(String),
}

/// Fewer items would all be asked for in one burst; and their ids are spread by a multiplication that must not run over
/// what a double holds exactly.
const ITEMS: RangeInclusive<f64> = 1000.0..=4e9;

/// Read a command line, without the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    let mut is_json = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("items") => {
                options.items = number(&mut parser, "--items", ITEMS, "1000 to 4e9")? as u64;
            }
            Long("seconds") => {
                let wanted = "0.001 to 3600";
                options.seconds = number(&mut parser, "--seconds", 0.001..=3600.0, wanted)?;
            }
            Long("rounds") => {
                let wanted = "a count from 1";
                options.rounds = number(&mut parser, "--rounds", 1.0..=1e6, wanted)? as usize;
            }
            Long("cores") => {
                let cores = number(&mut parser, "--cores", 1.0..=4096.0, "a count from 1")?;
                options.cores = Some(cores as usize);
            }
            Long("partitions") => {
                let wanted = "a count from 1";
                let partitions = number(&mut parser, "--partitions", 1.0..=65_536.0, wanted)?;
                options.partitions = Some(partitions as usize);
            }
            Long("access") => {
                let name = parser.value()?.string()?;
                let wrong = || {
                    Error::Value(format!(
                        "--access takes erew, crew, crcw, papaya or masstree, not {name}"
                    ))
                };
                options.access = Some(Access::named(&name).ok_or_else(wrong)?);
            }
            Long("peers") => options.with_peers = true,
            Long("json") => is_json = true,
            // What cargo gives to every benchmark.
            Long("bench") => {}
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('h') | Long("help") => return Ok(Request::Help),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(if is_json {
        Request::Json {
            items: options.items,
        }
    } else {
        Request::Table(options)
    })
}

fn number(
    parser: &mut lexopt::Parser,
    option: &str,
    bounds: RangeInclusive<f64>,
    wanted: &str,
) -> Result<f64, Error> {
    let value = parser.value()?.string()?;
    let number = value.parse().ok().filter(|number| bounds.contains(number));
    number.ok_or_else(|| Error::Value(format!("{option} takes {wanted}, not {value}")))
}

#[cfg(test)]
mod tests;
