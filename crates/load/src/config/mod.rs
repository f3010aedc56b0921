//! What the generator is told, as it crosses from Python: JSON in which every mistake is named.
mod client;
mod phase;

pub use client::{ClientConfig, KeysConfig, MacAddress, Protocol, SizeConfig, Target};
pub use phase::{ArrivalKind, DistributionConfig, LoopConfig, PhaseConfig};

use crate::Error;
use serde::de::DeserializeOwned;

/// Parse JSON; `what` names it in the error.
fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::Config(format!("{what}: {error}")))
}

/// Refuse with a sentence unless `holds`.
fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Error> {
    if holds {
        Ok(())
    } else {
        Err(Error::Config(otherwise()))
    }
}
