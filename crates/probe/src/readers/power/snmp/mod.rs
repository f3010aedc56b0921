//! Power strips that the user names, asked by SNMP version 2c over UDP, as the clusters of Taleb 2016 were measured.
//!
//! One request is under way at a time, it asks for everything, and what is no answer to it is left aside until its time is
//! over. Nothing is sent anywhere else.

pub mod message;

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};
use std::{io, iter};

use self::message::{Kind, Message, Value, decode, encode};
use super::background::Pace;
use super::found::Found;
use super::meter::{About, Meter};
use super::sheet::Sheet;
use super::spec::{StripReading, StripSpec, duration};
use crate::clock;
use crate::readers::Reader;

const NEEDS: &str = "a power strip that responds to SNMP version 2c, and its community";

/// The largest answer that is looked at: more than all values that may be asked for.
const LARGEST_ANSWER: usize = 16 * 1024;
/// Where counts of 32 and 64 bits begin again.
const RANGE_32: f64 = 4_294_967_296.0;
const RANGE_64: f64 = 18_446_744_073_709_551_616.0;
/// How long a wait lasts at most before a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

struct Strip {
    spec: StripSpec,
    socket: Option<UdpSocket>,
    request_id: i32,
    buffer: Vec<u8>,
}

pub(super) fn build(spec: &StripSpec) -> Box<dyn Reader> {
    let readings = spec.readings.iter();
    let found = Found {
        about: About::new("snmp", NEEDS).of(&spec.address),
        channels: readings.map(|reading| reading.measured.channel()).collect(),
        meter: Box::new(Strip {
            spec: spec.clone(),
            socket: None,
            request_id: first_request_id(clock::monotonic()),
            buffer: vec![0; LARGEST_ANSWER],
        }),
    };
    let timeout = duration(spec.timeout_seconds);
    found.in_background(Pace::of_waiting(duration(spec.interval_seconds), timeout))
}

/// Another one for each microsecond at which a run may begin: the numbers of an earlier run are those of old answers.
fn first_request_id(now: u64) -> i32 {
    (now >> 10) as i32 & i32::MAX
}

impl Strip {
    fn socket(&mut self) -> Result<&UdpSocket, String> {
        if self.socket.is_none() {
            let known = (self.spec.address.as_str(), self.spec.port)
                .to_socket_addrs()
                .and_then(|mut all| all.next().ok_or_else(|| io::ErrorKind::NotFound.into()))
                .map_err(|error| format!("cannot resolve {}: {error}", self.spec.address))?;
            let socket = connect(known).map_err(|error| self.cannot(&error))?;
            self.socket = Some(socket);
        }
        self.socket
            .as_ref()
            .ok_or_else(|| self.cannot(&io::ErrorKind::NotConnected.into()))
    }

    fn cannot(&self, error: &io::Error) -> String {
        let StripSpec { address, port, .. } = &self.spec;
        format!("cannot reach {address} port {port}: {error}")
    }

    /// Sends one request and waits for its answer.
    fn ask(&mut self, is_stopped: impl Fn() -> bool) -> Result<Message, String> {
        self.request_id = self.request_id.checked_add(1).unwrap_or(1);
        let readings = self.spec.readings.iter();
        let request = encode(&Message {
            community: self.spec.community.clone().into_bytes(),
            kind: Kind::Get,
            request_id: self.request_id,
            error_status: 0,
            error_index: 0,
            bindings: readings
                .map(|reading| (reading.oid.clone(), Value::Unspecified))
                .collect(),
        });
        let sent = self.socket()?.send(&request);
        sent.map_err(|error| self.cannot(&error))?;
        let deadline = Instant::now() + duration(self.spec.timeout_seconds);
        loop {
            if is_stopped() {
                return Err(format!("the reading of {} was stopped", self.spec.address));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "{} port {} did not answer within {} s: check the address, that SNMP version 2c is on there, and the \
                     community",
                    self.spec.address, self.spec.port, self.spec.timeout_seconds
                ));
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = self.socket().map(|socket| {
                socket.set_read_timeout(Some(left.min(LONGEST_WAIT)))?;
                socket.recv(&mut buffer)
            });
            self.buffer = buffer;
            match received? {
                Ok(length) => {
                    // Whatever it is else, it is not the answer: one that was late, or somebody's mistake.
                    if let Ok(answer) = decode(&self.buffer[..length])
                        && answer.kind == Kind::Response
                        && answer.request_id == self.request_id
                    {
                        return Ok(answer);
                    }
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(self.cannot(&error)),
            }
        }
    }

    fn refused(&self, words: String) -> String {
        format!("{} refused: {words}", self.spec.address)
    }
}

fn connect(address: SocketAddr) -> io::Result<UdpSocket> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    // The kernel then passes on what comes from there alone.
    socket.connect(address)?;
    Ok(socket)
}

/// The words of RFC 3416, section 3, for the errors that an answer to a request may have.
fn error_words(status: i32) -> String {
    match status {
        1 => "tooBig: it cannot answer as much at once".to_owned(),
        2 => "noSuchName: it does not have one of the values".to_owned(),
        5 => "genErr: it failed".to_owned(),
        6 => "noAccess".to_owned(),
        13 => "resourceUnavailable".to_owned(),
        16 => "authorizationError: another community may read it".to_owned(),
        other => format!("error {other}"),
    }
}

/// The number and, of a count, where it begins again.
fn number(value: &Value) -> Result<(f64, Option<f64>), &'static str> {
    match value {
        Value::Integer(number) => Ok((*number as f64, None)),
        Value::Gauge32(number) | Value::TimeTicks(number) => Ok((f64::from(*number), None)),
        Value::Counter32(number) => Ok((f64::from(*number), Some(RANGE_32))),
        Value::Counter64(number) => Ok((*number as f64, Some(RANGE_64))),
        // Some strips write numbers as text.
        Value::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .map(|number: f64| (number, None))
            .ok_or("is no number"),
        Value::NoSuchObject => Err("is not known there (another preset, or another model)"),
        Value::NoSuchInstance => {
            Err("is not there (an outlet that it does not have, or does not measure)")
        }
        Value::EndOfView => Err("is past all that it has"),
        Value::Unspecified => Err("has no value"),
        Value::Name(_) => Err("is no number"),
    }
}

impl Meter for Strip {
    fn read(&mut self, sheet: &mut Sheet) {
        let stop = sheet.stop();
        let answer = self.ask(|| stop.load(std::sync::atomic::Ordering::Relaxed));
        let answer = match answer {
            Ok(answer) if answer.error_status != 0 => {
                Err(self.refused(error_words(answer.error_status)))
            }
            other => other,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                // A port that was closed may open again, a name may move.
                self.socket = None;
                sheet.fail(|| failure);
                return;
            }
        };
        let told = answer.bindings.iter().map(Some).chain(iter::repeat(None));
        for (channel, (reading, told)) in self.spec.readings.iter().zip(told).enumerate() {
            let StripReading {
                oid: name,
                measured,
            } = reading;
            let told = match told {
                Some((told_name, value)) if told_name == name => number(value),
                Some(_) | None => Err("is not in the answer"),
            };
            match told {
                Ok((number, range)) => sheet.say(channel, measured.number(number), range),
                Err(why) => sheet.fail(|| self.refused(format!("{name} {why}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests;
