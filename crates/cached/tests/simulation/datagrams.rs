//! Clients that send datagrams, and a network that hands the replies over late, in another order, or not at all.

use super::dialect::{Dialect, Read, Request};
use super::history::{Action, Known, Mode, Outcome};
use super::world::{UnderWay, World};
use cached::simulated_server::now;
use net::{DatagramSocket, Peer, Received};
use std::collections::BTreeMap;
use wire::batch::{self, Answer, Refusal};
use wire::memcached::datagram::{FRAME_BYTES, Format, Frame};

/// Datagrams that are replied to at a time: few, so that the kernel has room for the replies.
const UNDER_WAY_MAX: usize = 3;

/// About as long as a datagram may be.
const DATAGRAM_BYTES_MAX: usize = 60_000;

/// Bytes of datagrams that the server lets wait for a worker.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Where datagrams go to and come from.
pub struct Post {
    socket: DatagramSocket,
    room: Received,
    last_request: u16,
    under_way: BTreeMap<u16, Letter>,
    /// On the way to the client.
    mail: Vec<Vec<u8>>,
    /// Replies that the server lost since it started, as it said.
    pub lost: u64,
}

/// A datagram that is not replied to yet.
struct Letter {
    /// Each is as if of a client of its own: datagrams keep no order.
    client: u64,
    format: Format,
    requests: Vec<Request>,
    since: (u64, u32),
    /// Datagrams of the reply.
    pieces: BTreeMap<u16, Vec<u8>>,
}

impl World {
    pub fn open_post(&mut self) -> Result<(), String> {
        if self.scene.options.udp_port.is_some() {
            let socket = DatagramSocket::bind(([127, 0, 0, 1], 0).into(), false);
            self.post = Some(Post {
                socket: socket.map_err(|error| error.to_string())?,
                room: Received::default(),
                last_request: 0,
                under_way: BTreeMap::new(),
                mail: Vec::new(),
                lost: 0,
            });
        }
        Ok(())
    }

    fn post(&mut self) -> &mut Post {
        self.post.as_mut().expect("there are datagrams")
    }

    /// Something happens to datagrams.
    pub fn use_post(&mut self) -> Result<(), String> {
        match self.random.below(80) {
            0 if self.scene.options.parts() > 1 && !self.scene.rules.refuses => self.flood(),
            0..40 if self.post().under_way.len() < UNDER_WAY_MAX => self.write_letter(),
            _ => {
                let is_lost = self.random.once_in(40);
                self.read_letter(is_lost)
            }
        }
    }

    fn write_letter(&mut self) -> Result<(), String> {
        let format = [Format::Text, Format::Batch][self.random.below(2)];
        let mut requests: Vec<Request> = Vec::new();
        let mut body = Vec::new();
        for _ in 0..=self.random.below(4) {
            let mut request = self.make_up(Dialect::Text);
            (request.is_quiet, request.is_plain) = (false, true);
            request.keys.truncate(1);
            let is_long = |value: &Vec<u8>| body.len() + value.len() > DATAGRAM_BYTES_MAX;
            let is_fit = match (&request.action, format) {
                (Action::Store { value, .. }, _) if is_long(value) => false,
                (_, Format::Text) => true,
                (Action::Store { mode, .. }, Format::Batch) => *mode == Mode::Set,
                (action, Format::Batch) => matches!(action, Action::Get | Action::Delete),
            };
            if !is_fit {
                continue;
            }
            if self.is_crowded(&request) {
                return self.settle();
            }
            match format {
                Format::Text => Dialect::Text.write(&request, &mut body),
                Format::Batch => push_entry(&request, &mut body),
            }
            requests.push(request);
        }
        if requests.is_empty() {
            return Ok(());
        }
        for request in &requests {
            self.count_under_way(request, 1);
        }
        self.connected += 1;
        let letter = Letter {
            client: self.connected,
            format,
            requests,
            since: (self.step, now()),
            pieces: BTreeMap::new(),
        };
        let worker = self.random.below(self.scene.options.threads);
        let number = self.send_datagram(worker, format, &body)?;
        self.post().under_way.insert(number, letter);
        Ok(())
    }

    fn send_datagram(&mut self, worker: usize, format: Format, body: &[u8]) -> Result<u16, String> {
        let address = self.server().datagram_address(worker);
        let post = self.post();
        post.last_request = post.last_request.wrapping_add(1);
        let number = post.last_request;
        let bytes = [&Frame::single(number, format).to_bytes(), body].concat();
        let peer = Peer {
            address,
            local: None,
        };
        let sent = post.socket.send(peer, &bytes, bytes.len());
        sent.map_err(|error| format!("a datagram was not sent: {error}"))?;
        Ok(number)
    }

    /// Take what the kernel has, before there is too much of it.
    pub fn collect(&mut self) {
        let Some(post) = &mut self.post else {
            return;
        };
        while post.socket.receive(&mut post.room).is_ok() {
            let messages = post.room.messages();
            let datagrams = messages.flat_map(|message| message.datagrams());
            post.mail.extend(datagrams.map(<[u8]>::to_vec));
        }
    }

    /// Any of the datagrams on their way arrives, or is lost.
    fn read_letter(&mut self, is_lost: bool) -> Result<(), String> {
        let waiting = self.post().mail.len();
        if waiting == 0 {
            return Ok(());
        }
        let at = self.random.below(waiting);
        let datagram = self.post().mail.swap_remove(at);
        let Some((frame, piece)) = Frame::parse(&datagram) else {
            let start = &datagram[..datagram.len().min(80)];
            return Err(format!("a datagram {}", start.escape_ascii()));
        };
        let number = frame.request;
        // Of a reply that was lost in part.
        let Some(letter) = self.post().under_way.get_mut(&number) else {
            return Ok(());
        };
        if letter.format != frame.format || letter.pieces.contains_key(&frame.sequence) {
            return Err(format!("{frame:?} replies to {:?}", letter.requests));
        }
        letter.pieces.insert(frame.sequence, piece.to_vec());
        let is_whole = letter.pieces.len() == usize::from(frame.datagrams);
        if !is_lost && !is_whole {
            return Ok(());
        }
        let letter = self.post().under_way.remove(&number).expect("it was there");
        match is_lost {
            true => self.lose_letter(letter),
            false => self.take_letter(letter),
        }
    }

    fn lose_letter(&mut self, letter: Letter) -> Result<(), String> {
        for request in letter.requests {
            let one = under_way(request, letter.since);
            self.record(letter.client, one, vec![Known::Lost])?;
        }
        Ok(())
    }

    fn take_letter(&mut self, letter: Letter) -> Result<(), String> {
        let body: Vec<u8> = letter.pieces.into_values().flatten().collect();
        let mut rest = &body[..];
        for request in letter.requests {
            let outcome = match letter.format {
                Format::Text => match Dialect::Text.read(&request, rest)? {
                    Read::Whole(outcomes, bytes) => {
                        rest = &rest[bytes..];
                        outcomes.into_iter().next()
                    }
                    Read::Part => return Err(format!("{request:?} was replied in part")),
                },
                Format::Batch => {
                    let answer = batch::parse_answer(rest).map_err(|error| error.to_string())?;
                    let (answer, behind) =
                        answer.ok_or_else(|| format!("{request:?} was not answered"))?;
                    rest = behind;
                    outcome(&request, answer)?
                }
            };
            let Some(outcome) = outcome else {
                // It was not carried out, as it said.
                self.count_under_way(&request, -1);
                continue;
            };
            self.remember(&request.keys[0], &outcome)?;
            if matches!(outcome, Outcome::NoMemory | Outcome::TooLarge) {
                self.doubt(&request.keys[0]);
            }
            let one = under_way(request, letter.since);
            self.record(letter.client, one, vec![Known::Replied(outcome)])?;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(format!("nobody asked for {}", rest.escape_ascii())),
        }
    }

    /// In the `round`th attempt to have all under way come to its end.
    pub fn read_post(&mut self, round: usize) -> Result<(), String> {
        if self.post.is_none() {
            return Ok(());
        }
        while !self.post().mail.is_empty() {
            self.read_letter(false)?;
        }
        // All that was to come is there, but for what the server had to drop.
        let told = self.server().lost_datagrams();
        if round > 1000 && told > self.post().lost {
            self.post().lost = told;
            for (_, letter) in std::mem::take(&mut self.post().under_way) {
                self.lose_letter(letter)?;
            }
        }
        Ok(())
    }

    pub fn is_post_awaited(&self) -> bool {
        self.post
            .as_ref()
            .is_some_and(|post| !post.under_way.is_empty())
    }

    /// Many long datagrams come to one worker for another that has no turn.
    fn flood(&mut self) -> Result<(), String> {
        const VALUE_BYTES: usize = 60_000;
        self.settle()?;
        let worker = self.random.below(self.scene.options.threads);
        // Behind an item that is never there: nothing is stored.
        let mut command = format!("append flood 0 0 {VALUE_BYTES}\r\n").into_bytes();
        command.resize(command.len() + VALUE_BYTES, b'.');
        command.extend(b"\r\n");
        for _ in 0..WAITING_BYTES_MAX / VALUE_BYTES + 10 {
            self.send_datagram(worker, Format::Text, &command)?;
            self.turn(worker)?;
            if !self.post().mail.is_empty() {
                // It is that worker's own.
                self.post().mail.clear();
                return Ok(());
            }
        }
        for _ in 0..8 {
            self.turn_all()?;
        }
        let replies = std::mem::take(&mut self.post().mail);
        self.post().lost = self.server().lost_datagrams();
        let is_reply = |datagram: &Vec<u8>| {
            let reply = &datagram[FRAME_BYTES..];
            reply == b"NOT_STORED\r\n" || reply.starts_with(b"SERVER_ERROR object too large")
        };
        let most = WAITING_BYTES_MAX / VALUE_BYTES;
        match replies.len() {
            number if number > most => Err(format!("{number} datagrams of 60 kB waited")),
            0 => Err("no datagram waited".to_owned()),
            _ if replies.iter().all(is_reply) => Ok(()),
            _ => Err("a datagram that waited was not replied to as it should".to_owned()),
        }
    }
}

fn under_way(request: Request, since: (u64, u32)) -> UnderWay {
    UnderWay {
        request,
        known_at: 0,
        since: Some(since),
    }
}

fn push_entry(request: &Request, to: &mut Vec<u8>) {
    let operation = match &request.action {
        Action::Store {
            value, flags, ttl, ..
        } => batch::Operation::Set {
            flags: *flags,
            exptime: *ttl,
            value,
        },
        Action::Delete => batch::Operation::Delete,
        _ => batch::Operation::Get,
    };
    let key = &request.keys[0];
    batch::push_request(to, batch::Request { operation, key });
}

/// How an entry of a batch ended; `None` where it was not carried out.
fn outcome(request: &Request, answer: Answer<'_>) -> Result<Option<Outcome>, String> {
    Ok(Some(match (&request.action, answer) {
        (Action::Get, Answer::Found { flags, value }) => Outcome::Hit {
            value: value.to_vec(),
            flags,
            number: None,
        },
        (Action::Get | Action::Delete, Answer::NotFound) => Outcome::NotFound,
        (Action::Store { .. }, Answer::Done) => Outcome::Stored,
        (Action::Delete, Answer::Done) => Outcome::Done,
        (Action::Store { .. }, Answer::Refused(Refusal::TooLarge)) => Outcome::TooLarge,
        (Action::Store { .. }, Answer::Refused(Refusal::OutOfMemory)) => Outcome::NoMemory,
        (_, Answer::Refused(Refusal::OtherWorker))
        | (Action::Get, Answer::Refused(Refusal::TooLarge)) => return Ok(None),
        (_, answer) => return Err(format!("{request:?} was answered {answer:?}")),
    }))
}
