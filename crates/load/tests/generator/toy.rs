//! A small server that stores what it is told, and can be told to misbehave.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is stored: all values that a key ever had, the last one last, and Redis's structures.
#[derive(Default)]
pub struct Store {
    pub values: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// The words of sets that tell flags and expiry, as they came.
    pub attributes: HashSet<Vec<Vec<u8>>>,
    /// What gets tell as flags.
    pub told_flags: u32,
    lists: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    sorted_sets: HashMap<Vec<u8>, BTreeMap<u64, Vec<u8>>>,
    sets: HashMap<Vec<u8>, HashSet<Vec<u8>>>,
}

/// What to do with a reply.
pub enum Reply {
    Send(Vec<u8>),
    /// In pieces of so many bytes.
    SendInPieces(Vec<u8>, usize),
    SendLate(Vec<u8>, Duration),
    SendAndClose(Vec<u8>),
    Keep,
}

/// How the server behaves.
#[derive(Clone, Copy)]
pub struct Behaviour {
    /// The value that a get of a key finds.
    pub value: fn(&Store, &[u8]) -> Option<Vec<u8>>,
    /// What becomes of the reply to the n-th request, from 0 on.
    pub reply: fn(usize, Vec<u8>) -> Reply,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            value: |store, key| store.values.get(key)?.last().cloned(),
            reply: |_, reply| Reply::Send(reply),
        }
    }
}

pub struct Toy {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    behaviour: Behaviour,
    store: Mutex<Store>,
    requests: AtomicUsize,
    stop: AtomicBool,
}

impl Toy {
    pub fn start(behaviour: Behaviour) -> Self {
        Self::start_with(behaviour, Some)
    }

    /// What `wrap` makes of a connection is served; none where it refuses.
    pub fn start_with<S: Read + Write>(
        behaviour: Behaviour,
        wrap: impl Fn(TcpStream) -> Option<S> + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Shared {
            behaviour,
            store: Mutex::default(),
            requests: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if server.stop.load(Ordering::Relaxed) {
                    return;
                }
                let server = Arc::clone(&server);
                // Ends, with an error or without, when the client closes the connection.
                let wrap = wrap.clone();
                std::thread::spawn(move || {
                    stream.set_nodelay(true).ok()?;
                    server.serve(wrap(stream)?)
                });
            }
        });
        Self { port, shared }
    }

    pub fn store(&self) -> std::sync::MutexGuard<'_, Store> {
        self.shared.store()
    }
}

impl Drop for Toy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn store(&self) -> std::sync::MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: impl Read + Write) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let words = read_request(&mut reader)?;
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let reply = self.answer(&words);
            let stream = reader.get_mut();
            match (self.behaviour.reply)(number, reply) {
                Reply::Send(reply) => stream.write_all(&reply).ok()?,
                Reply::SendInPieces(reply, bytes) => {
                    for piece in reply.chunks(bytes) {
                        stream.write_all(piece).ok()?;
                    }
                }
                Reply::SendLate(reply, delay) => {
                    std::thread::sleep(delay);
                    stream.write_all(&reply).ok()?;
                }
                Reply::SendAndClose(reply) => {
                    stream.write_all(&reply).ok()?;
                    return None;
                }
                Reply::Keep => {}
            }
        }
    }

    fn answer(&self, words: &[&[u8]]) -> Vec<u8> {
        let mut store = self.store();
        let find = |store: &Store, key: &[u8]| (self.behaviour.value)(store, key);
        let mut out = Vec::new();
        match words {
            [b"get", keys @ ..] => {
                for key in keys {
                    if let Some(value) = find(&store, key) {
                        out.extend([b"VALUE ", *key].concat());
                        let header = format!(" {} {}\r\n", store.told_flags, value.len());
                        out.extend(header.into_bytes());
                        out.extend([&value, &b"\r\n"[..]].concat());
                    }
                }
                out.extend(b"END\r\n");
            }
            [b"set", key, flags, seconds, _, value] => {
                store.note_attributes(&[flags, seconds]);
                store.set(key, value);
                out.extend(b"STORED\r\n");
            }
            [b"mg", key, flags @ ..] => {
                let quiet = flags.contains(&&b"q"[..]);
                match find(&store, key) {
                    Some(value) => {
                        out.extend(format!("VA {}", value.len()).into_bytes());
                        if flags.contains(&&b"k"[..]) {
                            out.extend([b" k", *key].concat());
                        }
                        out.extend([b"\r\n", &value[..], b"\r\n"].concat());
                    }
                    None if quiet => {}
                    None => out.extend(b"EN\r\n"),
                }
            }
            [b"ms", key, _, attributes @ .., value] => {
                store.note_attributes(attributes);
                store.set(key, value);
                out.extend(b"HD\r\n");
            }
            [b"mn"] => out.extend(b"MN\r\n"),
            [b"GET", key] => push_bulk(&mut out, find(&store, key)),
            [b"MGET", keys @ ..] => {
                out.extend(format!("*{}\r\n", keys.len()).into_bytes());
                for key in keys {
                    push_bulk(&mut out, find(&store, key));
                }
            }
            [b"SET", key, value, attributes @ ..] => {
                store.note_attributes(attributes);
                store.set(key, value);
                out.extend(b"+OK\r\n");
            }
            [b"LPUSH", key, value] => {
                store
                    .lists
                    .entry(key.to_vec())
                    .or_default()
                    .push(value.to_vec());
                out.extend(b":1\r\n");
            }
            [b"LPOP", key] => {
                let value = store.lists.get_mut(*key).and_then(Vec::pop);
                push_bulk(&mut out, value);
            }
            [b"ZADD", key, score, member] => {
                let score = String::from_utf8_lossy(score).parse().expect("a score");
                let set = store.sorted_sets.entry(key.to_vec()).or_default();
                set.retain(|_, other| other != member);
                set.insert(score, member.to_vec());
                out.extend(b":1\r\n");
            }
            [b"ZRANGE", key, b"0", b"0"] => {
                let set = store.sorted_sets.get(*key);
                match set.and_then(|set| set.values().next()) {
                    None => out.extend(b"*0\r\n"),
                    Some(member) => {
                        out.extend(b"*1\r\n");
                        push_bulk(&mut out, Some(member.clone()));
                    }
                }
            }
            [b"SADD", key, member] => {
                store
                    .sets
                    .entry(key.to_vec())
                    .or_default()
                    .insert(member.to_vec());
                out.extend(b":1\r\n");
            }
            other => panic!("the generator sent {other:?}"),
        }
        out
    }
}

impl Store {
    fn note_attributes(&mut self, words: &[&[u8]]) {
        let words = words.iter().map(|word| word.to_vec()).collect();
        self.attributes.insert(words);
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        self.values
            .entry(key.to_vec())
            .or_default()
            .push(value.to_vec());
    }
}

fn push_bulk(out: &mut Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        None => out.extend(b"$-1\r\n"),
        Some(value) => {
            out.extend(format!("${}\r\n", value.len()).into_bytes());
            out.extend([&value, &b"\r\n"[..]].concat());
        }
    }
}

/// The words of a request, with its value as the last one.
fn read_request(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let line = read_line(reader)?;
    if let Some(count) = line.strip_prefix(b"*") {
        let bulk = |_| {
            let header = read_line(reader)?;
            read_value(reader, number(header.strip_prefix(b"$")?)?)
        };
        return (0..number(count)?).map(bulk).collect();
    }
    let mut words: Vec<Vec<u8>> = line
        .split(|&byte| byte == b' ')
        .map(<[u8]>::to_vec)
        .collect();
    let length = match words.first()?.as_slice() {
        b"set" => Some(number(words.get(4)?)?),
        b"ms" => Some(number(words.get(2)?)?),
        _ => None,
    };
    if let Some(length) = length {
        words.push(read_value(reader, length)?);
    }
    Some(words)
}

fn read_line(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    line.strip_suffix(b"\r\n").map(<[u8]>::to_vec)
}

fn read_value(reader: &mut impl Read, length: usize) -> Option<Vec<u8>> {
    let mut value = vec![0; length + 2];
    reader.read_exact(&mut value).ok()?;
    assert_eq!(value.split_off(length), b"\r\n");
    Some(value)
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
