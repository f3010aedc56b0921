//! What is simulated, as a seed has it.

use super::history::Rules;
use cached::options::{Access, Options, Transport};
use cached::simulated_server::ForwardLimits;
use mica::Config;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Scene {
    pub options: Options,
    pub layout: Config,
    /// Of each worker, or of all where they share them.
    pub partitions: usize,
    pub rules: Rules,
    pub keys: usize,
    /// The longest value that clients send.
    pub value_bytes_max: usize,
    /// Of so many values, two are longer than a few bytes.
    pub small_values: usize,
    pub memory: Memory,
    /// Whether some clients encrypt.
    pub is_encrypted: bool,
    /// Of what is under way between workers.
    pub limits: ForwardLimits,
}

/// How much there is for items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Ample,
    /// There is room for some of the keys only.
    Short,
    /// Large items have a memory of their own.
    Apart,
}

/// Random numbers (splitmix64, Steele et al. 2014).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Which scene a seed stands for: every access mode, one worker to three, epoll or io_uring, memory that is ample or short.
pub fn scene(random: &mut Random) -> Scene {
    let threads = 1 + random.below(3);
    let access = [Access::Erew, Access::Crew, Access::Crcw][random.below(3)];
    let is_store = random.once_in(2);
    let memory = match random.below(6) {
        0..3 => Memory::Short,
        3 | 4 if !is_store => Memory::Apart,
        _ => Memory::Ample,
    };
    let is_short = memory == Memory::Short;
    // Memory that is to run out must be filled.
    let is_full = is_short && is_store;
    let mut layout = Config::for_log_bytes(match memory {
        Memory::Short if is_store => 64 << 10,
        Memory::Short => 160 << 10,
        Memory::Apart => 16 << 20,
        Memory::Ample => 64 << 20,
    });
    layout.has_readers = threads > 1 && access != Access::Erew;
    if is_store {
        layout.mode = mica::Mode::Store;
    }
    let limit = layout.item_bytes_limit().min(100 << 10);
    layout = layout.with_items_of(limit);
    if memory == Memory::Apart {
        // Longer ones than a 64th of the log are large.
        (layout.large_bytes, layout.item_bytes_max) = (4 << 20, 320 << 10);
    }
    let largest = layout.item_bytes_max;
    // Values that clients' buffers have no room for.
    let is_tight = memory == Memory::Apart && !random.once_in(4);
    // Which serves no datagrams, encrypts nothing and forwards nothing.
    let is_alone = threads == 1 || access == Access::Crcw;
    let has_ring = is_alone && random.once_in(2) && net::Ring::probe().is_ok();
    let udp_port = (!has_ring && random.once_in(2)).then_some(0);
    let is_encrypted = !has_ring && random.once_in(2);
    let options = Options {
        threads,
        transport: if has_ring {
            Transport::IoUring
        } else {
            Transport::Epoll
        },
        access,
        evicts: !is_store,
        // A ring lets go of a client some time after it decided to, in which that may still be heard.
        idle_seconds_max: if random.once_in(3) && !has_ring { 5 } else { 0 },
        client_memory_mebibytes: is_tight.then_some(1),
        udp_port,
        ..Options::default()
    };
    let parts = options.parts();
    // Few commands reach the limits of a real server.
    let limits = match random.once_in(2) {
        true => ForwardLimits {
            commands: 1 + random.below(4),
            command_bytes: 2 << 10,
            request_bytes: 4 << 10,
            reply_bytes: 1 << random.below(15),
        },
        false => ForwardLimits::default(),
    };
    Scene {
        options,
        layout,
        partitions: if is_short { 1 } else { 1 + random.below(2) },
        rules: Rules {
            evicts: is_short && !is_store,
            refuses: is_full,
            // Keys are short; a header and a heap's words are a few tens of bytes.
            value_bytes_max: largest - 128,
        },
        keys: match memory {
            _ if is_full => 40 * parts,
            Memory::Short => 16 * parts,
            _ => 8,
        },
        value_bytes_max: largest + 1000,
        small_values: match memory {
            _ if is_full => 2,
            Memory::Short => 4,
            _ if is_tight => 2,
            _ => 6,
        },
        memory,
        is_encrypted,
        limits,
    }
}
