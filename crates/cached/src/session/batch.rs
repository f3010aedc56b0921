//! Commands that go to the worker whose keys they are on, those of all connections of a turn together, and come back
//! with their replies.

/// How much is under way at a time.
#[derive(Debug, Clone, Copy)]
pub struct ForwardLimits {
    /// Commands of a connection.
    pub commands: usize,
    /// No more commands of a connection are added once they have so many bytes.
    pub command_bytes: usize,
    /// No more commands are put into a batch of so many bytes.
    pub request_bytes: usize,
    /// No more commands of a batch are carried out once there are so many bytes of replies: it comes back with the rest
    /// undone.
    pub reply_bytes: usize,
}

impl Default for ForwardLimits {
    fn default() -> Self {
        Self {
            commands: 128,
            command_bytes: 32 << 10,
            request_bytes: 512 << 10,
            reply_bytes: 256 << 10,
        }
    }
}

/// Buffers that are larger are cut back to this.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Where replies find the connection that they are for: a token, which may be used again, and a number, which is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub token: u64,
    pub number: u64,
}

/// Commands of one connection.
struct Group {
    address: Address,
    commands: usize,
    /// Where their bytes end.
    end: usize,
}

/// Commands, and then the replies to them.
#[derive(Default)]
pub(crate) struct Batch {
    /// The worker that serves the clients.
    pub(super) home: usize,
    /// The worker whose keys they are on.
    pub(super) owner: usize,
    pub(super) is_binary: bool,
    groups: Vec<Group>,
    pub(super) requests: Vec<u8>,
    pub(super) replies: Vec<u8>,
    /// Where the reply to each command that was carried out ends.
    pub(super) reply_ends: Vec<usize>,
    /// How many bytes of commands were carried out.
    pub(super) done_bytes: usize,
}

/// What came back for one connection.
pub(crate) struct Returned<'b> {
    pub address: Address,
    /// Who carried it out.
    pub owner: usize,
    pub replies: &'b [u8],
    /// Where `replies` begin, and where each of them ends, counted from somewhere before.
    pub start: usize,
    pub ends: &'b [usize],
    /// Bytes of the commands that were not carried out, and their number.
    pub undone: &'b [u8],
    pub undone_commands: usize,
}

impl Batch {
    pub fn home(&self) -> usize {
        self.home
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Append commands of a connection; says how many bytes they have.
    pub fn push(
        &mut self,
        address: Address,
        commands: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let start = self.requests.len();
        write(&mut self.requests);
        let end = self.requests.len();
        match self.groups.last_mut() {
            Some(group) if group.address == address => {
                group.commands += commands;
                group.end = end;
            }
            _ => self.groups.push(Group {
                address,
                commands,
                end,
            }),
        }
        end - start
    }

    /// What came back, connection by connection.
    pub fn returned(&self) -> impl Iterator<Item = Returned<'_>> {
        let (mut reply, mut start, mut request) = (0, 0, 0);
        self.groups.iter().map(move |group| {
            let last = self.reply_ends.len().min(reply + group.commands);
            let ends = &self.reply_ends[reply..last];
            let end = ends.last().copied().unwrap_or(start);
            let undone = request.max(self.done_bytes).min(group.end);
            let returned = Returned {
                address: group.address,
                owner: self.owner,
                replies: &self.replies[start..end],
                start,
                ends,
                undone: &self.requests[undone..group.end],
                undone_commands: group.commands - ends.len(),
            };
            (reply, start, request) = (last, end, group.end);
            returned
        })
    }

    pub fn clear(&mut self) {
        self.groups.clear();
        for buffer in [&mut self.requests, &mut self.replies] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES_MAX);
        }
        self.reply_ends.clear();
        self.done_bytes = 0;
    }
}
