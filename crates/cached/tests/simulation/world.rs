//! Clients, workers and time, in an order that a seed chooses: every step is one small thing that can happen.

use super::datagrams::Post;
use super::dialect::{Dialect, Read, Request};
use super::history::{
    Action, Item, Known, Mode, Operation, Outcome, Rules, State, Violation, explain,
};
use super::link::{Link, SIDES};
use super::scene::{Memory, Random, Scene};
use cached::options::Access;
use cached::simulated_server::{SimulatedServer, now, wait};
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::sync::Arc;

const CLIENTS_MAX: usize = 6;
/// Where there is little memory for what they send and are sent: enough to need more.
const CLIENTS_MAX_TIGHT: usize = 24;
/// Requests that a client has under way.
const DEPTH_MAX: usize = 5;
/// Operations of a key before they must be explained.
const OPERATIONS_MAX: usize = 60;
/// Operations of a key that are under way at once: each may come first, and all their orders are tried.
const WIDTH_MAX: usize = 10;
/// Operations of a key that may have taken place or not, at any time since.
const LOST_MAX: usize = 5;

/// Explained operations of a key that are told with one that is not.
const REMEMBERED: usize = 20;

/// A client's side of a connection.
struct Client {
    number: u64,
    link: Link,
    dialect: Dialect,
    to_send: VecDeque<u8>,
    /// Bytes that it sent or will send, and that it sent.
    written: u64,
    sent: u64,
    under_way: VecDeque<UnderWay>,
    received: Vec<u8>,
    /// Reads only once it has nothing more to ask.
    is_slow: bool,
    /// The key of its last request that was refused.
    doubted: Option<Vec<u8>>,
    /// A second up to which the server surely had something from it.
    heard: u32,
}

/// A request whose reply is not read yet.
pub struct UnderWay {
    pub request: Request,
    /// How many bytes the client has sent when the server knows enough to carry it out.
    pub known_at: u64,
    /// The step and the second at which it had.
    pub since: Option<(u64, u32)>,
}

/// What is known of a key.
#[derive(Default)]
struct Key {
    states: Vec<State>,
    operations: Vec<Operation>,
    under_way: usize,
    /// What was explained before, for one who asks why the next was not.
    before: Vec<Operation>,
    /// An operation may still take place although its client is gone.
    is_uncertain: bool,
}

pub struct World {
    pub scene: Scene,
    pub random: Random,
    server: Option<SimulatedServer>,
    clients: Vec<Client>,
    keys: BTreeMap<Vec<u8>, Key>,
    /// CAS numbers that were told, with what for.
    told: BTreeMap<(Vec<u8>, u64), (Vec<u8>, u32)>,
    numbers: BTreeMap<Vec<u8>, u64>,
    pub step: u64,
    pub connected: u64,
    values: u64,
    /// Clients that were given up for want of memory since the server started.
    given_up: u64,
    pub post: Option<Post>,
    pub operations: u64,
    pub hits: u64,
    pub restarts: u64,
    /// Stores that were refused for want of memory.
    pub refusals: u64,
    /// Commands that workers had others carry out.
    pub forwards: u64,
}

impl World {
    pub fn new(scene: Scene, seed: u64) -> Result<Self, String> {
        let server = SimulatedServer::start(
            &scene.options,
            scene.layout,
            scene.partitions,
            scene.limits,
            None,
        )?;
        let names = (0..scene.keys).map(|index| format!("key-{index}").into_bytes());
        let key = || Key {
            states: vec![None],
            ..Key::default()
        };
        let mut world = Self {
            keys: names.map(|name| (name, key())).collect(),
            server: Some(server),
            clients: Vec::new(),
            told: BTreeMap::new(),
            numbers: BTreeMap::new(),
            step: 0,
            connected: 0,
            values: 0,
            given_up: 0,
            post: None,
            operations: 0,
            hits: 0,
            restarts: 0,
            refusals: 0,
            forwards: 0,
            random: Random(seed),
            scene,
        };
        world.open_post()?;
        Ok(world)
    }

    /// Let so many things happen, then see whether all that was replied can be explained.
    ///
    /// # Errors
    /// What cannot.
    pub fn run(&mut self, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            self.step += 1;
            self.happen().map_err(|error| self.describe(&error))?;
        }
        self.settle().map_err(|error| self.describe(&error))?;
        self.forwards += self.server().forwards();
        Ok(())
    }

    fn describe(&self, error: &str) -> String {
        format!(
            "step {}, {:?}: {error}",
            self.step, self.scene.options.access
        )
    }

    fn happen(&mut self) -> Result<(), String> {
        let any_client = |world: &mut Self| {
            let clients = world.clients.len();
            (clients > 0).then(|| world.random.below(clients))
        };
        if self.post.is_some() && self.random.once_in(8) {
            return self.use_post();
        }
        match self.random.below(1000) {
            0..330 => {
                let worker = self.random.below(self.scene.options.threads);
                self.turn(worker)
            }
            330..580 => match any_client(self) {
                Some(client) => self.ask(client),
                None => Ok(()),
            },
            580..790 => match any_client(self) {
                Some(client) => self.send(client),
                None => Ok(()),
            },
            790..960 => match any_client(self) {
                Some(client) => self.receive(client, false),
                None => Ok(()),
            },
            960..975 => self.connect(),
            975..980 => match any_client(self) {
                Some(client) => self.leave(client),
                None => Ok(()),
            },
            980..992 => {
                wait(1 + self.random.below(4) as u32);
                Ok(())
            }
            992..995 => self.settle(),
            995..997 => self.flush(),
            997 => self.restart(),
            _ => self.look_at_all(),
        }
    }

    pub fn server(&mut self) -> &mut SimulatedServer {
        self.server.as_mut().expect("it runs between steps")
    }

    pub fn turn(&mut self, worker: usize) -> Result<(), String> {
        let server = self.server();
        let turn = server.turn(worker);
        turn.map_err(|error| format!("worker {worker} ended: {error}"))?;
        let (held, most) = server.held();
        if held > most {
            return Err(format!("{held} bytes are held for clients, of {most}"));
        }
        self.collect();
        Ok(())
    }

    pub fn turn_all(&mut self) -> Result<(), String> {
        (0..self.scene.options.threads).try_for_each(|worker| self.turn(worker))
    }

    fn connect(&mut self) -> Result<(), String> {
        let is_tight = self.scene.options.client_memory_mebibytes.is_some();
        let (count, most) = if is_tight {
            (4, CLIENTS_MAX_TIGHT)
        } else {
            (1, CLIENTS_MAX)
        };
        let free = most - self.clients.len();
        (0..count.min(free)).try_for_each(|_| self.connect_one())
    }

    fn connect_one(&mut self) -> Result<(), String> {
        let worker = self.random.below(self.scene.options.threads);
        // Some kernels' buffers take little, so that replies wait in the server.
        let send_bytes = self.random.once_in(2).then_some(4 << 10);
        let is_encrypted = self.scene.is_encrypted && self.random.once_in(2);
        let tls = is_encrypted.then(|| Arc::clone(&SIDES.0));
        let stream = self.server().connect(worker, send_bytes, tls);
        let stream = stream.map_err(|error| error.to_string())?;
        let mut link = Link::new(stream, is_encrypted)?;
        // The lengths of signatures differ: a handshake has a generator of its own, so that a seed stays the same.
        let mut pieces = Random(self.random.below(1 << 30) as u64);
        loop {
            match link.shake(1 + pieces.below(500)) {
                Ok(true) => self.turn(worker)?,
                Ok(false) => break,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Err(format!("the handshake: {error}"));
                }
                // The server had no memory for it.
                Err(_) => return self.give_up(),
            }
        }
        self.connected += 1;
        self.clients.push(Client {
            number: self.connected,
            link,
            dialect: [Dialect::Text, Dialect::Text, Dialect::Meta, Dialect::Binary]
                [self.random.below(4)],
            to_send: VecDeque::new(),
            written: 0,
            sent: 0,
            under_way: VecDeque::new(),
            received: Vec::new(),
            is_slow: self.random.once_in(4),
            doubted: None,
            heard: now(),
        });
        Ok(())
    }

    /// A client makes up its next request.
    fn ask(&mut self, index: usize) -> Result<(), String> {
        if self.clients[index].under_way.len() >= DEPTH_MAX {
            return Ok(());
        }
        let dialect = self.clients[index].dialect;
        let request = match self.clients[index].doubted.take() {
            // What is there under the key of something that was refused?
            Some(key) => Request::of(vec![key], Action::Get),
            None => self.make_up(dialect),
        };
        if self.is_crowded(&request) {
            return self.settle();
        }
        let is_wide = |key: &Vec<u8>| self.keys[key].under_way >= WIDTH_MAX;
        if !request.keys.iter().any(is_wide) {
            self.submit(index, request);
        }
        Ok(())
    }

    /// Whether more operations of a key are to be explained than should be.
    pub fn is_crowded(&self, request: &Request) -> bool {
        request.keys.iter().any(|key| {
            let key = &self.keys[key];
            let lost = key.operations.iter();
            let lost = lost.filter(|one| one.known == Known::Lost).count();
            key.operations.len() + key.under_way >= OPERATIONS_MAX || lost > LOST_MAX
        })
    }

    /// A request is under way, or is not any more and was not carried out.
    pub fn count_under_way(&mut self, request: &Request, change: isize) {
        for key in &request.keys {
            let key = self.keys.get_mut(key).expect("it is one of them");
            let under_way = key.under_way.checked_add_signed(change);
            key.under_way = under_way.expect("it was under way");
        }
    }

    fn submit(&mut self, index: usize, request: Request) {
        self.count_under_way(&request, 1);
        let client = &mut self.clients[index];
        let mut bytes = Vec::new();
        client.dialect.write(&request, &mut bytes);
        // What is too large is refused without a look at the value.
        let is_refused = matches!(&request.action, Action::Store { value, .. } if value.len() > self.scene.rules.value_bytes_max);
        let known_at = client.written + if is_refused { 1 } else { bytes.len() as u64 };
        client.written += bytes.len() as u64;
        client.to_send.extend(bytes);
        client.under_way.push_back(UnderWay {
            request,
            known_at,
            since: None,
        });
    }

    pub fn make_up(&mut self, dialect: Dialect) -> Request {
        let key = |world: &mut Self| {
            // Some are asked for more often.
            let most = [world.scene.keys, 4][world.random.below(2)];
            let at = world.random.below(most);
            format!("key-{at}").into_bytes()
        };
        let ttl = |random: &mut Random| match random.below(8) {
            0 => 1 + random.below(6) as i32,
            1 if dialect != Dialect::Binary => -1,
            _ => 0,
        };
        let first = key(self);
        let action = match self.random.below(20) {
            0..7 => Action::Get,
            7 => Action::GetAndTouch(ttl(&mut self.random)),
            8 => Action::Touch(ttl(&mut self.random)),
            9 => Action::Delete,
            10..13 => Action::Count {
                delta: [1, 5, 50][self.random.below(3)],
                is_down: self.random.once_in(2),
            },
            _ => {
                let mode = match self.random.below(12) {
                    0 => Mode::Add,
                    1 => Mode::Replace,
                    2 => Mode::Append,
                    3 => Mode::Prepend,
                    4 | 5 => match self.numbers.get(&first) {
                        Some(number) => Mode::Cas(*number),
                        None => Mode::Set,
                    },
                    _ => Mode::Set,
                };
                Action::Store {
                    value: self.value(mode),
                    flags: self.random.below(3) as u32 * 1000,
                    ttl: ttl(&mut self.random),
                    mode,
                }
            }
        };
        let mut keys = vec![first];
        if dialect == Dialect::Text && matches!(action, Action::Get | Action::GetAndTouch(_)) {
            for _ in 0..self.random.below(4) {
                let another = key(self);
                // Of a key that is asked for twice, one hit would not say which.
                if !keys.contains(&another) {
                    keys.push(another);
                }
            }
        }
        let is_plain = dialect == Dialect::Text && self.random.once_in(2);
        if is_plain && self.random.once_in(2) {
            // Values are sent from where they lie where one key is asked for.
            keys.truncate(1);
        }
        Request {
            is_quiet: dialect.has_quiet(&action) && self.random.once_in(8),
            is_plain,
            keys,
            action,
        }
    }

    /// One that no other request stores, or a number.
    fn value(&mut self, mode: Mode) -> Vec<u8> {
        self.values += 1;
        let is_added = matches!(mode, Mode::Append | Mode::Prepend);
        if self.random.once_in(3) && !is_added {
            // Numbers become longer and shorter at powers of ten.
            let least = [0, 8, 95][self.random.below(3)];
            return (least + self.random.below(10)).to_string().into_bytes();
        }
        let mut value = format!("<{}>", self.values).into_bytes();
        let is_too_large = !is_added && self.random.once_in(20);
        let bytes = match self.random.below(self.scene.small_values) {
            0 if !is_added => self.random.below(self.scene.value_bytes_max),
            1 if !is_added => self.random.below(20_000.min(self.scene.value_bytes_max)),
            _ => self.random.below(200),
        };
        let bytes = if is_too_large {
            self.scene.value_bytes_max
        } else {
            bytes
        };
        let fill = b"\r\nEND\r\n.abcdefghijklmnopqrstuvwxyz";
        while value.len() < bytes {
            let left = (bytes - value.len()).min(fill.len());
            value.extend(&fill[..left]);
        }
        value
    }

    /// A client sends some of what it has to send.
    fn send(&mut self, index: usize) -> Result<(), String> {
        let most = match self.random.below(4) {
            0 => 1 + self.random.below(20),
            1 => 1 + self.random.below(2000),
            // Where memory for them is little, clients are slow to say all.
            _ if self.scene.options.client_memory_mebibytes.is_some() => {
                1 + self.random.below(50_000)
            }
            _ => usize::MAX,
        };
        self.send_at_most(index, most)
    }

    fn send_at_most(&mut self, index: usize, most: usize) -> Result<(), String> {
        let step = self.step;
        let client = &mut self.clients[index];
        let (front, _) = client.to_send.as_slices();
        if front.is_empty() {
            return Ok(());
        }
        let is_answered = |one: &UnderWay| one.since.is_none() || one.request.is_quiet;
        let is_read = client.under_way.iter().all(is_answered);
        match client.link.send(front, most) {
            Ok(bytes) => {
                if is_read && bytes > 0 {
                    // The server waits for nothing else of this client.
                    client.heard = now();
                }
                client.to_send.drain(..bytes);
                client.sent += bytes as u64;
                for one in &mut client.under_way {
                    if one.since.is_none() && one.known_at <= client.sent {
                        one.since = Some((step, now()));
                    }
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => self.ended(index),
        }
    }

    /// A client reads some of what there is.
    fn receive(&mut self, index: usize, is_all: bool) -> Result<(), String> {
        let client = &mut self.clients[index];
        if client.is_slow && !is_all && client.under_way.len() < DEPTH_MAX {
            return Ok(());
        }
        let most = if is_all {
            1 << 20
        } else {
            1 + self.random.below(30_000)
        };
        match client.link.receive(most) {
            Ok(None) => return self.ended(index),
            Ok(Some(bytes)) => client.received.extend(bytes),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(error.to_string()),
            Err(_) => return self.ended(index),
        }
        self.take_replies(index)
    }

    fn take_replies(&mut self, index: usize) -> Result<(), String> {
        loop {
            let client = &mut self.clients[index];
            if client.dialect.is_given_up(&client.received) {
                return self.ended(index);
            }
            let asked = client
                .under_way
                .iter()
                .position(|one| !one.request.is_quiet);
            let Some(position) = asked else {
                return match client.received.is_empty() {
                    true => Ok(()),
                    false => Err(format!(
                        "nobody asked for {}",
                        client.received.escape_ascii()
                    )),
                };
            };
            if client.received.is_empty() {
                return Ok(());
            }
            let one = &client.under_way[position];
            if one.since.is_none() {
                let received = client.received.escape_ascii();
                return Err(format!("a reply before the request was sent: {received}"));
            }
            let read = client.dialect.read(&one.request, &client.received)?;
            let Read::Whole(outcomes, bytes) = read else {
                return Ok(());
            };
            client.received.drain(..bytes);
            // Those before it that asked for no reply took place before it.
            let quiet: Vec<UnderWay> = client.under_way.drain(..position).collect();
            let one = client.under_way.pop_front().expect("it was found there");
            let (_, second) = one.since.unwrap_or_default();
            client.heard = client.heard.max(second);
            for one in quiet {
                let unknown = one.request.keys.iter().map(|_| Known::Quiet).collect();
                self.record(self.clients[index].number, one, unknown)?;
            }
            for (key, outcome) in one.request.keys.iter().zip(&outcomes) {
                self.remember(key, outcome)?;
                if matches!(outcome, Outcome::NoMemory | Outcome::TooLarge) {
                    self.clients[index].doubted = Some(key.clone());
                }
            }
            let replied = outcomes.into_iter().map(Known::Replied).collect();
            self.record(self.clients[index].number, one, replied)?;
        }
    }

    /// Some client asks next for what is there.
    pub fn doubt(&mut self, key: &[u8]) {
        if !self.clients.is_empty() {
            let index = self.random.below(self.clients.len());
            self.clients[index].doubted = Some(key.to_vec());
        }
    }

    /// A CAS number stands for one item.
    pub fn remember(&mut self, key: &[u8], outcome: &Outcome) -> Result<(), String> {
        match outcome {
            Outcome::Hit {
                value,
                flags,
                number,
            } => {
                self.hits += 1;
                if let Some(number) = number {
                    self.numbers.insert(key.to_vec(), *number);
                    let is = (value.clone(), *flags);
                    let was = self
                        .told
                        .entry((key.to_vec(), *number))
                        .or_insert_with(|| is.clone());
                    if *was != is {
                        return Err(format!(
                            "CAS number {number} of {} is of two items",
                            key.escape_ascii()
                        ));
                    }
                }
            }
            Outcome::NoMemory => self.refusals += 1,
            _ => {}
        }
        Ok(())
    }

    pub fn record(&mut self, client: u64, one: UnderWay, known: Vec<Known>) -> Result<(), String> {
        let (sent, second) = one.since.unwrap_or((self.step, now()));
        for (name, known) in one.request.keys.into_iter().zip(known) {
            self.operations += 1;
            let key = self.keys.get_mut(&name).expect("it is one of them");
            key.under_way -= 1;
            key.is_uncertain |= known == Known::Lost;
            key.operations.push(Operation {
                client,
                sent,
                done: if known == Known::Lost {
                    u64::MAX
                } else {
                    self.step
                },
                seconds: (second, now()),
                action: one.request.action.clone(),
                known,
            });
            if key.under_way == 0 && !key.is_uncertain {
                key.check(&name, self.scene.rules)?;
            }
        }
        Ok(())
    }

    /// A client goes, in the middle of whatever it did.
    fn leave(&mut self, index: usize) -> Result<(), String> {
        self.lose(index)
    }

    /// The server closed a connection, as it does with idle ones, and where memory for clients is short.
    fn ended(&mut self, index: usize) -> Result<(), String> {
        let most = self.scene.options.idle_seconds_max;
        let silent = now() - self.clients[index].heard;
        if most == 0 || silent < most {
            let closed = self.give_up();
            closed.map_err(|error| format!("{error}; it heard of it {silent} s ago"))?;
        }
        self.lose(index)
    }

    /// The server closed a connection; as many as it says were closed for want of memory.
    fn give_up(&mut self) -> Result<(), String> {
        self.given_up += 1;
        if self.given_up > self.server().given_up() {
            return Err("the server closed a connection".to_owned());
        }
        Ok(())
    }

    fn lose(&mut self, index: usize) -> Result<(), String> {
        let under_way: Vec<UnderWay> = self.clients[index].under_way.drain(..).collect();
        for one in under_way {
            if one.since.is_some() {
                let lost = one.request.keys.iter().map(|_| Known::Lost).collect();
                self.record(self.clients[index].number, one, lost)?;
            } else {
                self.count_under_way(&one.request, -1);
            }
        }
        self.clients.swap_remove(index);
        Ok(())
    }

    /// Everything under way comes to its end, and every history is explained.
    pub fn settle(&mut self) -> Result<(), String> {
        for round in 0.. {
            if round > 10_000 {
                return Err("a client waits for ever".to_owned());
            }
            let mut index = 0;
            while index < self.clients.len() {
                let number = self.clients[index].number;
                self.send_at_most(index, usize::MAX)?;
                if self
                    .clients
                    .get(index)
                    .is_some_and(|one| one.number == number)
                {
                    self.receive(index, true)?;
                }
                index += 1;
            }
            self.turn_all()?;
            self.read_post(round)?;
            let waits = |client: &Client| {
                // What is refused is replied to before all of it is sent.
                let mut under_way = client.under_way.iter();
                !client.to_send.is_empty()
                    || under_way.any(|one| !one.request.is_quiet || one.since.is_none())
            };
            if round > 3 && !self.clients.iter().any(waits) && !self.is_post_awaited() {
                break;
            }
        }
        // What asked for no reply is done by now, and who left is gone.
        for _ in 0..8 {
            self.turn_all()?;
        }
        self.step += 1;
        for index in 0..self.clients.len() {
            let quiet: Vec<UnderWay> = self.clients[index].under_way.drain(..).collect();
            for one in quiet {
                let unknown = one.request.keys.iter().map(|_| Known::Quiet).collect();
                self.record(self.clients[index].number, one, unknown)?;
            }
        }
        for (name, key) in &mut self.keys {
            // What a client sent that then left was carried out at any time until now.
            for one in &mut key.operations {
                if one.known == Known::Lost {
                    one.seconds.1 = now();
                }
            }
            key.check(name, self.scene.rules)?;
            key.is_uncertain = false;
        }
        Ok(())
    }

    /// Ask for every key, and for nothing else meanwhile.
    fn look_at_all(&mut self) -> Result<(), String> {
        self.settle()?;
        if self.clients.is_empty() {
            self.connect()?;
        }
        let names: Vec<Vec<u8>> = self.keys.keys().cloned().collect();
        for name in names {
            let request = Request::of(vec![name], Action::Get);
            self.submit(0, request);
            self.settle()?;
            if self.clients.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        self.settle()?;
        let Some(client) = self
            .clients
            .iter_mut()
            .find(|one| one.dialect != Dialect::Binary)
        else {
            return Ok(());
        };
        let asked = b"flush_all\r\n";
        if !matches!(client.link.send(asked, usize::MAX), Ok(sent) if sent == asked.len()) {
            return Ok(());
        }
        client.sent += 11;
        client.written += 11;
        for _ in 0..64 {
            self.turn_all()?;
        }
        let client = self
            .clients
            .iter_mut()
            .find(|one| one.dialect != Dialect::Binary);
        let client = client.expect("it was there");
        let Ok(Some(reply)) = client.link.receive(1 << 10) else {
            return self.settle();
        };
        if reply != b"OK\r\n" {
            return Err(format!("flush_all was replied {}", reply.escape_ascii()));
        }
        for key in self.keys.values_mut() {
            key.states = vec![None];
        }
        self.look_for_what_is_gone()
    }

    /// Nothing is there: where all workers may read, they see that without another's help, but for what a first look
    /// finds out.
    fn look_for_what_is_gone(&mut self) -> Result<(), String> {
        if self.scene.memory == Memory::Short {
            return Ok(());
        }
        self.look_at_all()?;
        let before = self.server().moves();
        self.look_at_all()?;
        let moves = self.server().moves() - before;
        // Meta commands are their owner's.
        if self.clients.iter().any(|one| one.dialect == Dialect::Meta) {
            return Ok(());
        }
        match self.scene.options.access {
            Access::Crew | Access::Crcw if moves > 0 => {
                Err(format!("{moves} moves to see that there is nothing"))
            }
            _ => Ok(()),
        }
    }

    /// The server ends and starts again with the items that it left.
    fn restart(&mut self) -> Result<(), String> {
        self.settle()?;
        while !self.clients.is_empty() {
            self.leave(0)?;
        }
        self.settle()?;
        let Some(server) = self.server.take() else {
            return Ok(());
        };
        self.forwards += server.forwards();
        let file = server.stop().map_err(|error| error.to_string())?;
        wait(self.random.below(3) as u32);
        let Scene {
            options,
            layout,
            partitions,
            limits,
            ..
        } = &self.scene;
        self.server = Some(SimulatedServer::start(
            options,
            *layout,
            *partitions,
            *limits,
            Some(&file),
        )?);
        self.restarts += 1;
        self.given_up = 0;
        if let Some(post) = &mut self.post {
            post.lost = 0;
        }
        // Items of a store and large ones keep their CAS numbers, others have new ones.
        if !self.scene.options.evicts {
            return Ok(());
        }
        for key in self.keys.values_mut() {
            let renumbered = key.states.iter().flatten().map(|item| {
                Some(Item {
                    number: None,
                    ..item.clone()
                })
            });
            let renumbered: Vec<State> = renumbered.collect();
            key.states.extend(renumbered);
        }
        Ok(())
    }
}

impl Key {
    /// Explain what was replied since the last time.
    fn check(&mut self, name: &[u8], rules: Rules) -> Result<(), String> {
        if self.operations.is_empty() {
            return Ok(());
        }
        self.operations.sort_by_key(|one| one.sent);
        let explained = explain(&self.states, &self.operations, rules);
        self.states = explained.map_err(|violation| {
            let before = Violation {
                states: Vec::new(),
                operations: std::mem::take(&mut self.before),
            };
            format!(
                "no order explains {}: {violation}before that, {before}",
                name.escape_ascii()
            )
        })?;
        self.before.append(&mut self.operations);
        let old = self.before.len().saturating_sub(REMEMBERED);
        self.before.drain(..old);
        Ok(())
    }
}
