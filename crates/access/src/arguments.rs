//! The command line.

use crate::store::Access;
use lexopt::ValueExt;
use lexopt::prelude::{Long, Short};
use std::ffi::OsString;

/// What `-h` prints.
pub const HELP: &str = "\
rackscope-access: what partitions do in process when a core works on its own (EREW), reads all (CREW) or reads and
writes all (CRCW)

usage: rackscope-access [options]

      --items N        items of 8 + 8 bytes                                      [16000000]
      --seconds S      length of a measurement                                   [1]
      --rounds N       how often each is made                                    [5]
      --cores N        with this many cores only                                 [1, 2, 4, ... as many as there are]
      --access NAME    only erew, crew or crcw
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
    /// Only this.
    pub access: Option<Access>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            items: 16_000_000,
            seconds: 1.0,
            rounds: 5,
            cores: None,
            access: None,
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
    #[error("{option} takes {wanted}, not {value}")]
    Value {
        /// The option.
        option: &'static str,
        /// Its value as given.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
}

/// Fewer items would all be asked for in one burst.
const ITEMS_MIN: f64 = 1000.0;
/// Ids of keys are spread by a multiplication that must not run over what a double holds exactly.
const ITEMS_MAX: f64 = 4e9;

/// Read a command line, without the program's name.
///
/// # Errors
/// [`Error`] names the option and what it takes.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    let mut is_json = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("items") => {
                options.items =
                    number(&mut parser, "--items", ITEMS_MIN, ITEMS_MAX, "1000 to 4e9")? as u64;
            }
            Long("seconds") => {
                options.seconds = number(&mut parser, "--seconds", 0.001, 3600.0, "0.001 to 3600")?;
            }
            Long("rounds") => {
                options.rounds =
                    number(&mut parser, "--rounds", 1.0, 1e6, "a count from 1")? as usize;
            }
            Long("cores") => {
                let cores = number(&mut parser, "--cores", 1.0, 4096.0, "a count from 1")?;
                options.cores = Some(cores as usize);
            }
            Long("access") => {
                let name = parser.value()?.string()?;
                options.access = Some(Access::named(&name).ok_or(Error::Value {
                    option: "--access",
                    value: name,
                    wanted: "erew, crew or crcw",
                })?);
            }
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
    option: &'static str,
    least: f64,
    most: f64,
    wanted: &'static str,
) -> Result<f64, Error> {
    let value = parser.value()?.string()?;
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Error::Value {
            option,
            value,
            wanted,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, Error> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_table_is_what_is_asked_for_unless_json_is() {
        let Ok(Request::Table(options)) =
            parsed("--bench --items 1e6 --cores 2 --access crcw --rounds 3 --seconds 0.4")
        else {
            panic!("a table");
        };
        assert_eq!(
            options,
            Options {
                items: 1_000_000,
                seconds: 0.4,
                rounds: 3,
                cores: Some(2),
                access: Some(Access::Crcw),
            }
        );
        assert_eq!(
            parsed("--json --items 5000").expect("a request"),
            Request::Json { items: 5000 }
        );
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (line, named) in [
            ("--items 10", "--items takes 1000 to 4e9, not 10"),
            ("--seconds nan", "--seconds takes"),
            ("--rounds 0", "--rounds takes"),
            (
                "--access erow",
                "--access takes erew, crew or crcw, not erow",
            ),
            ("--frobnicate", "frobnicate"),
            ("--items", "--items"),
            ("3", "3"),
        ] {
            let said = parsed(line).expect_err("a mistake").to_string();
            assert!(said.contains(named), "{line}: {said}");
        }
    }
}
