//! What memcached's semantics allow one key to reply, given that several clients ask at once: a history of its operations
//! must be linearizable (Herlihy and Wing 1990), found as Wing and Gong (1993) do, with Lowe's memory of what was tried.

use std::collections::HashSet;
use std::fmt;

/// A value that is longer by less than this may be kept, as the length of its key and what is stored with it decide.
const TOLERANCE_BYTES: usize = 256;

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    pub value: Vec<u8>,
    pub flags: u32,
    /// The earliest and the latest second at which it is past its time.
    pub expires: Option<(u32, u32)>,
    /// The CAS number that a client was told.
    pub number: Option<u64>,
}

/// What a key holds.
pub type State = Option<Item>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    /// Where the item has this CAS number.
    Cas(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Get,
    /// With another time to live, in seconds: none for 0, over at once where negative.
    GetAndTouch(i32),
    Touch(i32),
    Store {
        mode: Mode,
        value: Vec<u8>,
        flags: u32,
        ttl: i32,
    },
    Delete,
    /// Add to a number, or take away.
    Count {
        delta: u64,
        is_down: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Hit {
        value: Vec<u8>,
        flags: u32,
        number: Option<u64>,
    },
    Stored,
    NotStored,
    Exists,
    NotFound,
    /// Deleted or touched.
    Done,
    Counted(u64),
    NotANumber,
    NoMemory,
    TooLarge,
}

/// What the client knows of how an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    Replied(Outcome),
    /// It took place, and no reply was asked for.
    Quiet,
    /// The connection ended before a reply: it took place or did not.
    Lost,
}

/// One operation on the key.
#[derive(Debug, Clone)]
pub struct Operation {
    pub client: u64,
    /// When the server could carry it out first, and when it was known to be done, in steps of the simulation.
    pub sent: u64,
    pub done: u64,
    /// The seconds at these.
    pub seconds: (u32, u32),
    pub action: Action,
    pub known: Known,
}

/// What the server may do beyond what it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Items may be evicted.
    pub evicts: bool,
    /// Items may be refused for want of memory.
    pub refuses: bool,
    /// The longest value that is kept in any case.
    pub value_bytes_max: usize,
}

/// A history that no order of its operations explains.
pub struct Violation {
    pub states: Vec<State>,
    pub operations: Vec<Operation>,
}

/// The states that `operations` can lead to from one of `states`.
///
/// # Errors
/// No order explains what was replied.
pub fn explain(
    states: &[State],
    operations: &[Operation],
    rules: Rules,
) -> Result<Vec<State>, Violation> {
    assert!(operations.len() < 128, "check more often");
    let mut ends = HashSet::new();
    let mut seen = HashSet::new();
    let mut open: Vec<(u128, State)> = states.iter().map(|state| (0, state.clone())).collect();
    while let Some((done, state)) = open.pop() {
        if !seen.insert((done, state.clone())) {
            continue;
        }
        let is_left = |index: usize| done & (1 << index) == 0;
        let left = || (0..operations.len()).filter(|&index| is_left(index));
        if left().all(|index| operations[index].known == Known::Lost) {
            ends.insert(state.clone());
        }
        for index in left() {
            let one = &operations[index];
            // What the same client sent before, and what was done before this was sent, comes first.
            let is_first = left().all(|other| {
                let other = &operations[other];
                other.known == Known::Lost
                    || (other.done >= one.sent
                        && (other.client != one.client || other.sent >= one.sent))
            }) && !(0..index)
                .any(|other| is_left(other) && operations[other].client == one.client);
            if is_first {
                let next = after(&state, one, rules);
                open.extend(next.into_iter().map(|next| (done | 1 << index, next)));
            }
        }
    }
    if ends.is_empty() {
        return Err(Violation {
            states: states.to_vec(),
            operations: operations.to_vec(),
        });
    }
    Ok(ends.into_iter().collect())
}

/// The states that one operation can lead to, if it can end as it is known to.
fn after(state: &State, operation: &Operation, rules: Rules) -> Vec<State> {
    let (from, until) = operation.seconds;
    let deadline = state.as_ref().and_then(|item| item.expires);
    let mut befores = Vec::new();
    if state.is_none() || deadline.is_none_or(|(_, latest)| from < latest) {
        befores.push(state.clone());
    }
    if state.is_some() && (rules.evicts || deadline.is_some_and(|(first, _)| until >= first)) {
        befores.push(None);
    }
    let mut all = Vec::new();
    for before in befores {
        for (outcome, next) in outcomes(&before, operation, rules) {
            let is_possible = match (&operation.known, &outcome) {
                (Known::Quiet | Known::Lost, _) => true,
                (
                    Known::Replied(Outcome::Hit {
                        value,
                        flags,
                        number,
                    }),
                    Outcome::Hit {
                        value: is_value,
                        flags: is_flags,
                        number: is_number,
                    },
                ) => {
                    let is_number_possible =
                        number.is_none() || is_number.is_none() || number == is_number;
                    value == is_value && flags == is_flags && is_number_possible
                }
                (Known::Replied(replied), outcome) => replied == outcome,
            };
            if !is_possible {
                continue;
            }
            let mut next = next;
            if let (
                Known::Replied(Outcome::Hit {
                    number: Some(told), ..
                }),
                Some(item),
            ) = (&operation.known, &mut next)
            {
                item.number = Some(*told);
            }
            all.push(next);
        }
    }
    all
}

/// How an operation on what is `before` can end, and what is there then.
fn outcomes(before: &State, operation: &Operation, rules: Rules) -> Vec<(Outcome, State)> {
    let deadline = |ttl: i32| match ttl {
        0 => Some(None),
        ..0 => None,
        _ => {
            let ttl = ttl.unsigned_abs();
            Some(Some((operation.seconds.0 + ttl, operation.seconds.1 + ttl)))
        }
    };
    let touched = |item: &Item, ttl: i32| {
        deadline(ttl).map(|expires| Item {
            expires,
            ..item.clone()
        })
    };
    let hit = |item: &Item| Outcome::Hit {
        value: item.value.clone(),
        flags: item.flags,
        number: item.number,
    };
    match (&operation.action, before) {
        (
            Action::Store {
                mode,
                value,
                flags,
                ttl,
            },
            _,
        ) => {
            let new = |value: Vec<u8>, flags, expires| {
                Some(Item {
                    value,
                    flags,
                    expires,
                    number: None,
                })
            };
            let fresh = || deadline(*ttl).and_then(|expires| new(value.clone(), *flags, expires));
            // What is stored, or why nothing is.
            let kept = match (mode, before) {
                (Mode::Set, _) | (Mode::Add, None) | (Mode::Replace, Some(_)) => Ok(fresh()),
                (Mode::Add, Some(_)) | (Mode::Replace | Mode::Append | Mode::Prepend, None) => {
                    Err(Outcome::NotStored)
                }
                (Mode::Append, Some(item)) => Ok(new(
                    [&item.value[..], value].concat(),
                    item.flags,
                    item.expires,
                )),
                (Mode::Prepend, Some(item)) => Ok(new(
                    [&value[..], &item.value].concat(),
                    item.flags,
                    item.expires,
                )),
                (Mode::Cas(_), None) => Err(Outcome::NotFound),
                (Mode::Cas(number), Some(item)) if item.number == Some(*number) => Ok(fresh()),
                // Clients name numbers that they were told: one of a former item.
                (Mode::Cas(_), Some(_)) => Err(Outcome::Exists),
            };
            let joined = kept.as_ref().ok().and_then(|item| item.as_ref());
            let bytes = joined.map_or(0, |item| item.value.len()).max(value.len());
            let mut all = Vec::new();
            // What a refused `set` would have replaced is gone, so that no client gets what it knows to be old; of other
            // modes, memcached's meta commands and its binary protocol have rules of their own.
            let mut refuse = |outcome: Outcome| {
                all.push((outcome.clone(), None));
                if *mode != Mode::Set {
                    all.push((outcome, before.clone()));
                }
            };
            if bytes > rules.value_bytes_max {
                refuse(Outcome::TooLarge);
            }
            if rules.refuses {
                refuse(Outcome::NoMemory);
            }
            // Of what does not fit behind or before an item, memcached says no more.
            let is_joined = matches!(mode, Mode::Append | Mode::Prepend);
            if is_joined && (bytes > rules.value_bytes_max || rules.refuses) {
                all.push((Outcome::NotStored, before.clone()));
            }
            if bytes <= rules.value_bytes_max + TOLERANCE_BYTES {
                all.push(match kept {
                    Ok(kept) => (Outcome::Stored, kept),
                    Err(reason) => (reason, before.clone()),
                });
            }
            all
        }
        (Action::Get, Some(item)) => vec![(hit(item), before.clone())],
        (Action::GetAndTouch(ttl), Some(item)) => vec![(hit(item), touched(item, *ttl))],
        (Action::Touch(ttl), Some(item)) => vec![(Outcome::Done, touched(item, *ttl))],
        (Action::Delete, Some(_)) => vec![(Outcome::Done, None)],
        (Action::Count { delta, is_down }, Some(item)) => {
            let Some(old) = number(&item.value) else {
                return vec![(Outcome::NotANumber, before.clone())];
            };
            let new = if *is_down {
                old.saturating_sub(*delta)
            } else {
                old.wrapping_add(*delta)
            };
            let mut value = new.to_string().into_bytes();
            // A number that became shorter leaves spaces behind it.
            value.resize(value.len().max(item.value.len()), b' ');
            let counted = Item {
                value,
                number: None,
                ..item.clone()
            };
            let mut all = vec![(Outcome::Counted(new), Some(counted))];
            if rules.refuses {
                all.push((Outcome::NoMemory, before.clone()));
            }
            all
        }
        (
            Action::Get
            | Action::GetAndTouch(_)
            | Action::Touch(_)
            | Action::Delete
            | Action::Count { .. },
            None,
        ) => vec![(Outcome::NotFound, None)],
    }
}

/// As `strtoull(3)` reads it: what is behind a space does not count.
fn number(value: &[u8]) -> Option<u64> {
    let end = value.iter().position(u8::is_ascii_whitespace);
    std::str::from_utf8(&value[..end.unwrap_or(value.len())])
        .ok()?
        .parse()
        .ok()
}

impl fmt::Display for Violation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |bytes: &[u8]| {
            let shown = &bytes[..bytes.len().min(24)];
            format!("{}({} bytes)", shown.escape_ascii(), bytes.len())
        };
        writeln!(to, "it could hold:")?;
        for state in &self.states {
            match state {
                None => writeln!(to, "  nothing")?,
                Some(item) => writeln!(
                    to,
                    "  {} flags {} expires {:?} number {:?}",
                    short(&item.value),
                    item.flags,
                    item.expires,
                    item.number
                )?,
            }
        }
        for one in &self.operations {
            let action = match &one.action {
                Action::Store {
                    mode,
                    value,
                    flags,
                    ttl,
                } => {
                    format!("{mode:?} {} flags {flags} ttl {ttl}", short(value))
                }
                other => format!("{other:?}"),
            };
            let known = match &one.known {
                Known::Replied(Outcome::Hit {
                    value,
                    flags,
                    number,
                }) => {
                    format!("hit {} flags {flags} number {number:?}", short(value))
                }
                other => format!("{other:?}"),
            };
            let (sent, done, seconds) = (one.sent, one.done, one.seconds);
            writeln!(
                to,
                "  client {} steps {sent} to {done} seconds {seconds:?}: {action} -> {known}",
                one.client
            )?;
        }
        Ok(())
    }
}
