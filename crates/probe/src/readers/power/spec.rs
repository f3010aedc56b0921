//! Meters that the user names, as they cross from Python: a list of these in JSON.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::energy::Counter;
use super::sheet::{Channel, MOST_WATTS};
use super::snmp::message::Oid;

/// What a number is, once it was multiplied by its scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Watts at this moment.
    Watts,
    /// Joules counted since some moment.
    Joules,
}

/// A number of a meter and what it means.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What is measured, such as `server`.
    pub domain: String,
    /// What the numbers are.
    pub quantity: Quantity,
    /// Watts or joules of one.
    pub scale: f64,
}

/// A value of a power strip.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripReading {
    /// Where the strip has it, such as `1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4`.
    pub oid: Oid,
    /// What it is.
    pub measured: Measured,
}

/// A power strip, asked by SNMP version 2c.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripSpec {
    /// Its name or address.
    pub address: String,
    /// Its UDP port, usually 161.
    pub port: u16,
    /// The community that may read.
    pub community: String,
    /// What is asked, all at once.
    pub readings: Vec<StripReading>,
    pub interval_seconds: f64,
    /// How long an answer may take.
    pub timeout_seconds: f64,
}

/// A file whose first line is a number.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    pub path: PathBuf,
    pub measured: Measured,
    pub interval_seconds: f64,
}

/// A command that prints a number a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSpec {
    /// The program and its arguments; no shell reads them.
    pub arguments: Vec<String>,
    pub measured: Measured,
    /// How often a command that ends is started again.
    pub interval_seconds: f64,
    /// How long a line may be waited for.
    pub timeout_seconds: f64,
}

/// A meter that the user names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MeterSpec {
    /// A power strip, asked by SNMP version 2c.
    Snmp(StripSpec),
    /// A file whose first line is a number.
    File(FileSpec),
    /// A command that prints a number a line.
    Command(CommandSpec),
}

/// Readings of one strip: more than this in one datagram may be refused as too big.
const MOST_READINGS: usize = 16;
const LONGEST_DOMAIN: usize = 64;

impl MeterSpec {
    /// Says in a sentence what cannot be of a specification.
    pub fn check(&self) -> Result<(), String> {
        let (interval, timeout) = match self {
            Self::Snmp(strip) => {
                strip.check()?;
                (strip.interval_seconds, Some(strip.timeout_seconds))
            }
            Self::File(file) => {
                if !file.path.is_absolute() {
                    return Err(format!("{} is not an absolute path", file.path.display()));
                }
                file.measured.check()?;
                (file.interval_seconds, None)
            }
            Self::Command(command) => {
                let arguments = &command.arguments;
                if arguments.first().is_none_or(String::is_empty)
                    || arguments.iter().any(|argument| argument.contains('\0'))
                {
                    return Err("a command without a program".to_owned());
                }
                command.measured.check()?;
                (command.interval_seconds, Some(command.timeout_seconds))
            }
        };
        in_range("interval", interval, 0.05, 3600.0)?;
        timeout.map_or(Ok(()), |timeout| in_range("timeout", timeout, 0.01, 60.0))
    }
}

fn in_range(what: &str, seconds: f64, least: f64, most: f64) -> Result<(), String> {
    if (least..=most).contains(&seconds) {
        Ok(())
    } else {
        Err(format!(
            "a meter's {what} of {seconds} s is outside of {least} s to {most} s"
        ))
    }
}

/// A time that was checked.
pub(super) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1))
}

impl StripSpec {
    fn check(&self) -> Result<(), String> {
        let Self {
            address, readings, ..
        } = self;
        if address.is_empty() || address.len() > 253 {
            return Err(format!("'{address}' is not the address of a power strip"));
        }
        if self.community.len() > 255 {
            return Err("an SNMP community of more than 255 bytes".to_owned());
        }
        if readings.is_empty() || readings.len() > MOST_READINGS {
            return Err(format!(
                "{} readings of one power strip: 1 to {MOST_READINGS} are possible",
                readings.len()
            ));
        }
        readings
            .iter()
            .try_for_each(|reading| reading.measured.check())
    }
}

impl Measured {
    fn check(&self) -> Result<(), String> {
        if self.domain.is_empty()
            || self.domain.len() > LONGEST_DOMAIN
            || self.domain.chars().any(char::is_control)
        {
            return Err(format!(
                "'{}' is not a valid name of a domain",
                self.domain.escape_debug()
            ));
        }
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(format!("{} is not a valid scale", self.scale));
        }
        Ok(())
    }

    pub(super) fn channel(&self) -> Channel {
        match self.quantity {
            Quantity::Watts => Channel::watts(&self.domain),
            Quantity::Joules => Channel::energy(
                &self.domain,
                Counter {
                    joules: self.scale,
                    most_watts: MOST_WATTS,
                    moves_always: false,
                },
            ),
        }
    }

    /// The number as the channel takes it: watts, or counts.
    pub(super) fn number(&self, number: f64) -> f64 {
        match self.quantity {
            Quantity::Watts => number * self.scale,
            Quantity::Joules => number,
        }
    }
}
