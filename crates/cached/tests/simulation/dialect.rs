//! The three ways to ask: requests as bytes, and replies read back.

use super::history::{Action, Mode, Outcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Text,
    Meta,
    Binary,
}

/// One request: an action on a key, or a look at several.
#[derive(Debug, Clone)]
pub struct Request {
    pub keys: Vec<Vec<u8>>,
    pub action: Action,
    /// No reply is asked for.
    pub is_quiet: bool,
    /// A read in text says no CAS numbers, as most clients' do.
    pub is_plain: bool,
}

impl Request {
    pub fn of(keys: Vec<Vec<u8>>, action: Action) -> Self {
        Self {
            keys,
            action,
            is_quiet: false,
            is_plain: false,
        }
    }
}

/// What was read of a reply.
pub enum Read {
    /// How it ended for each key, and how many bytes said so.
    Whole(Vec<Outcome>, usize),
    /// More bytes are needed.
    Part,
}

impl Dialect {
    /// Append the bytes of a request.
    pub fn write(self, request: &Request, to: &mut Vec<u8>) {
        match self {
            Self::Text => write_text(request, to),
            Self::Meta => write_meta(request, to),
            Self::Binary => write_binary(request, to),
        }
    }

    /// Whether requests of this kind can be asked for without a reply.
    pub fn has_quiet(self, action: &Action) -> bool {
        match self {
            Self::Text => !matches!(action, Action::Get | Action::GetAndTouch(_)),
            // Failures would still be told.
            Self::Meta | Self::Binary => false,
        }
    }

    /// Whether these bytes say that the server has no memory for what a client sends, and so closes the connection.
    pub fn is_given_up(self, bytes: &[u8]) -> bool {
        match self {
            // To no request: of none that has this opcode are values refused.
            Self::Binary => {
                bytes.len() >= HEADER_BYTES && bytes[1] == 0 && bytes[6..8] == [0, 0x82]
            }
            _ => bytes.starts_with(b"SERVER_ERROR out of memory reading request\r\n"),
        }
    }

    /// Read the reply to a request.
    ///
    /// # Errors
    /// What it says that no reply to it says.
    pub fn read(self, request: &Request, bytes: &[u8]) -> Result<Read, String> {
        let read = match self {
            Self::Text => read_text(request, bytes),
            Self::Meta => read_meta(request, bytes),
            Self::Binary => read_binary(request, bytes),
        };
        match read {
            Ok(Some((outcomes, length))) => Ok(Read::Whole(outcomes, length)),
            Ok(None) => Ok(Read::Part),
            Err(()) => {
                let start = &bytes[..bytes.len().min(80)];
                Err(format!("{request:?} was replied {}", start.escape_ascii()))
            }
        }
    }
}

type Found = Result<Option<(Vec<Outcome>, usize)>, ()>;

fn push(to: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    use std::io::Write;
    _ = to.write_fmt(words);
}

fn write_text(request: &Request, to: &mut Vec<u8>) {
    let key = request.keys[0].escape_ascii();
    let noreply = if request.is_quiet { " noreply" } else { "" };
    match &request.action {
        Action::Get | Action::GetAndTouch(_) => {
            let numbered = if request.is_plain { "" } else { "s" };
            match request.action {
                Action::GetAndTouch(ttl) => push(to, format_args!("gat{numbered} {ttl}")),
                _ => push(to, format_args!("get{numbered}")),
            }
            for key in &request.keys {
                to.push(b' ');
                to.extend(key);
            }
            to.extend(b"\r\n");
        }
        Action::Touch(ttl) => push(to, format_args!("touch {key} {ttl}{noreply}\r\n")),
        Action::Delete => push(to, format_args!("delete {key}{noreply}\r\n")),
        Action::Count { delta, is_down } => {
            let word = if *is_down { "decr" } else { "incr" };
            push(to, format_args!("{word} {key} {delta}{noreply}\r\n"));
        }
        Action::Store {
            mode,
            value,
            flags,
            ttl,
        } => {
            let bytes = value.len();
            match mode {
                Mode::Cas(number) => {
                    push(
                        to,
                        format_args!("cas {key} {flags} {ttl} {bytes} {number}{noreply}\r\n"),
                    );
                }
                _ => {
                    let word = format!("{mode:?}").to_lowercase();
                    push(
                        to,
                        format_args!("{word} {key} {flags} {ttl} {bytes}{noreply}\r\n"),
                    );
                }
            }
            to.extend(value);
            to.extend(b"\r\n");
        }
    }
}

/// The first line, without its end, and where it ends.
fn line(bytes: &[u8]) -> Option<(&str, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, end + 2))
}

fn read_text(request: &Request, bytes: &[u8]) -> Found {
    if matches!(request.action, Action::Get | Action::GetAndTouch(_)) {
        return read_values(request, bytes);
    }
    let Some((line, length)) = line(bytes) else {
        return Ok(None);
    };
    let outcome = match (line, &request.action) {
        ("STORED", Action::Store { .. }) => Outcome::Stored,
        ("NOT_STORED", Action::Store { .. }) => Outcome::NotStored,
        (
            "EXISTS",
            Action::Store {
                mode: Mode::Cas(_), ..
            },
        ) => Outcome::Exists,
        ("NOT_FOUND", _) => Outcome::NotFound,
        ("DELETED", Action::Delete) | ("TOUCHED", Action::Touch(_)) => Outcome::Done,
        ("SERVER_ERROR out of memory storing object", _) => Outcome::NoMemory,
        ("SERVER_ERROR object too large for cache", _) => Outcome::TooLarge,
        ("CLIENT_ERROR cannot increment or decrement non-numeric value", Action::Count { .. }) => {
            Outcome::NotANumber
        }
        (_, Action::Count { .. }) => Outcome::Counted(line.parse().map_err(drop)?),
        _ => return Err(()),
    };
    Ok(Some((vec![outcome], length)))
}

fn read_values(request: &Request, bytes: &[u8]) -> Found {
    let mut at = 0;
    let mut outcomes = Vec::new();
    // In the order of the request, misses left out.
    let mut keys = request.keys.iter().peekable();
    loop {
        let Some((first, length)) = line(&bytes[at..]) else {
            return Ok(None);
        };
        at += length;
        if first == "END" {
            outcomes.extend(keys.map(|_| Outcome::NotFound));
            return Ok(Some((outcomes, at)));
        }
        let words: Vec<&str> = first.split(' ').collect();
        let (key, flags, length, number) = match words[..] {
            ["VALUE", key, flags, length] if request.is_plain => (key, flags, length, None),
            ["VALUE", key, flags, length, number] if !request.is_plain => {
                (key, flags, length, Some(number.parse().map_err(drop)?))
            }
            _ => return Err(()),
        };
        loop {
            match keys.next() {
                Some(asked) if asked == key.as_bytes() => break,
                Some(_) => outcomes.push(Outcome::NotFound),
                None => return Err(()),
            }
        }
        let length: usize = length.parse().map_err(drop)?;
        if bytes.len() < at + length + 2 {
            return Ok(None);
        }
        if &bytes[at + length..at + length + 2] != b"\r\n" {
            return Err(());
        }
        outcomes.push(Outcome::Hit {
            value: bytes[at..at + length].to_vec(),
            flags: flags.parse().map_err(drop)?,
            number,
        });
        at += length + 2;
    }
}

fn write_meta(request: &Request, to: &mut Vec<u8>) {
    let key = request.keys[0].escape_ascii();
    match &request.action {
        Action::Get => push(to, format_args!("mg {key} f c v\r\n")),
        Action::GetAndTouch(ttl) => push(to, format_args!("mg {key} f c T{ttl} v\r\n")),
        Action::Touch(ttl) => push(to, format_args!("mg {key} T{ttl}\r\n")),
        Action::Delete => push(to, format_args!("md {key}\r\n")),
        Action::Count { delta, is_down } => {
            let mode = if *is_down { 'D' } else { 'I' };
            push(to, format_args!("ma {key} M{mode} D{delta} v\r\n"));
        }
        Action::Store {
            mode,
            value,
            flags,
            ttl,
        } => {
            let mode = match mode {
                Mode::Set => "S".to_owned(),
                Mode::Add => "E".to_owned(),
                Mode::Replace => "R".to_owned(),
                Mode::Append => "A".to_owned(),
                Mode::Prepend => "P".to_owned(),
                Mode::Cas(number) => format!("S C{number}"),
            };
            let bytes = value.len();
            push(
                to,
                format_args!("ms {key} {bytes} F{flags} T{ttl} M{mode}\r\n"),
            );
            to.extend(value);
            to.extend(b"\r\n");
        }
    }
}

fn read_meta(request: &Request, bytes: &[u8]) -> Found {
    let Some((line, mut length)) = line(bytes) else {
        return Ok(None);
    };
    let words: Vec<&str> = line.split(' ').collect();
    let outcome = match (&words[..], &request.action) {
        (["HD"], Action::Store { .. }) => Outcome::Stored,
        (["NS"], Action::Store { .. }) => Outcome::NotStored,
        (["EX"], Action::Store { .. }) => Outcome::Exists,
        (["NF"] | ["EN"], _) => Outcome::NotFound,
        (["HD"], Action::Delete | Action::Touch(_)) => Outcome::Done,
        (["SERVER_ERROR", ..], _) => match line {
            "SERVER_ERROR out of memory storing object" => Outcome::NoMemory,
            "SERVER_ERROR object too large for cache" => Outcome::TooLarge,
            _ => return Err(()),
        },
        (["CLIENT_ERROR", ..], Action::Count { .. }) if line.ends_with("non-numeric value") => {
            Outcome::NotANumber
        }
        (["VA", size, flags @ ..], action) => {
            let size: usize = size.parse().map_err(drop)?;
            if bytes.len() < length + size + 2 {
                return Ok(None);
            }
            let value = bytes[length..length + size].to_vec();
            length += size + 2;
            let flag = |name: char| flags.iter().find_map(|flag| flag.strip_prefix(name));
            if matches!(action, Action::Count { .. }) {
                let text = std::str::from_utf8(&value).map_err(drop)?;
                Outcome::Counted(text.parse().map_err(drop)?)
            } else {
                let number = |text: Option<&str>| text.ok_or(())?.parse().map_err(drop);
                Outcome::Hit {
                    flags: u32::try_from(number(flag('f'))?).map_err(drop)?,
                    number: Some(number(flag('c'))?),
                    value,
                }
            }
        }
        _ => return Err(()),
    };
    Ok(Some((vec![outcome], length)))
}

/// Opcodes, by memcached's `protocol_binary.h`.
fn opcode(action: &Action) -> u8 {
    match action {
        Action::Get => 0x00,
        Action::Store { mode, .. } => match mode {
            Mode::Set | Mode::Cas(_) => 0x01,
            Mode::Add => 0x02,
            Mode::Replace => 0x03,
            Mode::Append => 0x0e,
            Mode::Prepend => 0x0f,
        },
        Action::Delete => 0x04,
        Action::Count { is_down: false, .. } => 0x05,
        Action::Count { is_down: true, .. } => 0x06,
        Action::Touch(_) => 0x1c,
        Action::GetAndTouch(_) => 0x1d,
    }
}

const HEADER_BYTES: usize = 24;

fn write_binary(request: &Request, to: &mut Vec<u8>) {
    let (mut extras, mut number, mut value): (Vec<u8>, u64, &[u8]) = (Vec::new(), 0, b"");
    match &request.action {
        Action::Get | Action::Delete => {}
        // As unsigned; a negative one is not told apart there.
        Action::Touch(ttl) | Action::GetAndTouch(ttl) => extras.extend(ttl.to_be_bytes()),
        Action::Count { delta, .. } => {
            extras.extend(delta.to_be_bytes());
            extras.extend([0; 8]);
            // Where there is none, none is made.
            extras.extend([0xff; 4]);
        }
        Action::Store {
            mode,
            value: stored,
            flags,
            ttl,
        } => {
            if !matches!(mode, Mode::Append | Mode::Prepend) {
                extras.extend(flags.to_be_bytes());
                extras.extend(ttl.to_be_bytes());
            }
            if let Mode::Cas(of) = mode {
                number = *of;
            }
            value = stored;
        }
    }
    let key = &request.keys[0];
    let body = extras.len() + key.len() + value.len();
    to.extend([0x80, opcode(&request.action)]);
    to.extend((key.len() as u16).to_be_bytes());
    to.extend([extras.len() as u8, 0, 0, 0]);
    to.extend((body as u32).to_be_bytes());
    to.extend([0; 4]);
    to.extend(number.to_be_bytes());
    to.extend(extras);
    to.extend(key);
    to.extend(value);
}

fn read_binary(request: &Request, bytes: &[u8]) -> Found {
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let (extras, body) = (usize::from(bytes[4]), word(8) as usize);
    let status = u16::from_be_bytes([bytes[6], bytes[7]]);
    let number = u64::from(word(16)) << 32 | u64::from(word(20));
    if bytes[0] != 0x81 || bytes[1] != opcode(&request.action) {
        return Err(());
    }
    let length = HEADER_BYTES + body;
    if bytes.len() < length {
        return Ok(None);
    }
    let value = &bytes[HEADER_BYTES + extras..length];
    let outcome = match (status, &request.action) {
        (0, Action::Get | Action::GetAndTouch(_)) => Outcome::Hit {
            value: value.to_vec(),
            flags: word(HEADER_BYTES),
            number: Some(number),
        },
        (0, Action::Store { .. }) => Outcome::Stored,
        (0, Action::Count { .. }) => {
            Outcome::Counted(u64::from_be_bytes(value.try_into().map_err(drop)?))
        }
        (0, Action::Delete | Action::Touch(_)) => Outcome::Done,
        (
            1,
            Action::Store {
                mode: Mode::Replace,
                ..
            },
        )
        | (
            2,
            Action::Store {
                mode: Mode::Add, ..
            },
        )
        | (5, Action::Store { .. }) => Outcome::NotStored,
        (1, _) => Outcome::NotFound,
        (
            2,
            Action::Store {
                mode: Mode::Cas(_), ..
            },
        ) => Outcome::Exists,
        (3, Action::Store { .. }) => Outcome::TooLarge,
        (6, Action::Count { .. }) => Outcome::NotANumber,
        (0x82, _) => Outcome::NoMemory,
        _ => return Err(()),
    };
    Ok(Some((vec![outcome], length)))
}
