//! What a partition does in process: `cargo bench -p mica [-- --items N --seconds S --rounds N --cores N --access NAME
//! --mode NAME]`.
//!
//! Keys and values of 8 bytes, more of them than any cache holds, preloaded; every value that is read is checked.
//! Cells of the table are taken in turn, round after round, and each shows its median and its range.

use mica::{Config, Contents, Hasher, Key, Lookup, Mode, Partition, Reader};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::Instant;

/// Lookups that are under way together, as in a burst of packets.
const BURST: usize = 32;
/// Keys of each distribution are drawn beforehand: drawing is not what is measured.
const DRAWN: usize = 1 << 22;

struct Options {
    items: u64,
    seconds: f64,
    rounds: usize,
    /// Only this many cores.
    cores: Option<usize>,
    /// Only this.
    access: Option<Access>,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// A core works on its own partition only.
    Erew,
    /// A core reads any partition, and writes to its own.
    Crew,
    /// A core reads and writes any partition; writers lock it.
    Crcw,
}

#[derive(Clone, Copy)]
struct Cell {
    access: Access,
    cores: usize,
    skew: Option<f64>,
    /// Of 100 operations.
    sets: u64,
}

fn main() {
    let options = parse();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cells = Vec::new();
    let counts: Vec<usize> = [1, 2, 4, 8, 16, 32]
        .into_iter()
        .filter(|&count| count <= cores && options.cores.is_none_or(|only| only == count))
        .collect();
    let accesses: Vec<Access> = [Access::Erew, Access::Crew, Access::Crcw]
        .into_iter()
        .filter(|&access| options.access.is_none_or(|only| only == access))
        .collect();
    for &cores in &counts {
        for &access in &accesses {
            for skew in [None, Some(0.99)] {
                for sets in [0, 50, 100] {
                    cells.push(Cell {
                        access,
                        cores,
                        skew,
                        sets,
                    });
                }
            }
        }
    }
    println!(
        "{} items of 8 + 8 bytes, {} s a cell and round, {} rounds, bursts of {BURST}",
        options.items, options.seconds, options.rounds
    );
    let mut rates = vec![Vec::new(); cells.len()];
    let drawn = [draw(options.items, None), draw(options.items, Some(0.99))];
    for &cores in &counts {
        for &access in &accesses {
            let store = Store::filled(&options, cores, access);
            for _ in 0..options.rounds {
                for (number, cell) in cells.iter().enumerate() {
                    if cell.cores == cores && cell.access == access {
                        let ids = &drawn[usize::from(cell.skew.is_some())];
                        rates[number].push(measure(&store, *cell, ids, options.seconds));
                    }
                }
            }
        }
    }
    println!(
        "{:>6} {:>5}  {:<10} {:>5}  {:>9}  range (million operations/s)",
        "access", "cores", "keys", "sets", "median"
    );
    for (cell, rates) in cells.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let access = match cell.access {
            Access::Erew => "EREW",
            Access::Crew => "CREW",
            Access::Crcw => "CRCW",
        };
        let keys = cell
            .skew
            .map_or_else(|| "uniform".to_owned(), |theta| format!("zipf {theta}"));
        let (least, most) = (rates[0] / 1e6, rates[rates.len() - 1] / 1e6);
        let median = rates[rates.len() / 2] / 1e6;
        println!(
            "{access:>6} {:>5}  {keys:<10} {:>4} %  {median:>9.2}  {least:.2} to {most:.2}",
            cell.cores, cell.sets
        );
    }
}

fn parse() -> Options {
    let mut options = Options {
        items: 16_000_000,
        seconds: 1.0,
        rounds: 5,
        cores: None,
        access: None,
        mode: Mode::Cache,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--access" {
            options.access = match arguments.next().as_deref() {
                Some("erew") => Some(Access::Erew),
                Some("crew") => Some(Access::Crew),
                Some("crcw") => Some(Access::Crcw),
                _ => {
                    eprintln!("--access takes erew, crew or crcw");
                    std::process::exit(2);
                }
            };
            continue;
        }
        if argument == "--mode" {
            options.mode = match arguments.next().as_deref() {
                Some("cache") => Mode::Cache,
                Some("store") => Mode::Store,
                _ => {
                    eprintln!("--mode takes cache or store");
                    std::process::exit(2);
                }
            };
            continue;
        }
        let mut value = || {
            arguments
                .next()
                .and_then(|text| text.parse::<f64>().ok())
                .unwrap_or_else(|| {
                    eprintln!("{argument} takes a number");
                    std::process::exit(2);
                })
        };
        match argument.as_str() {
            "--items" => options.items = value() as u64,
            "--seconds" => options.seconds = value(),
            "--rounds" => options.rounds = value() as usize,
            "--cores" => options.cores = Some(value() as usize),
            // What cargo gives to every benchmark.
            "--bench" => {}
            other => {
                eprintln!(
                    "{other}: options are --items, --seconds, --rounds, --cores, --access and --mode"
                );
                std::process::exit(2);
            }
        }
    }
    options
}

/// Ids in the order of their use: uniform, or zipfian with the frequent ones spread over all.
fn draw(items: u64, skew: Option<f64>) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    match skew {
        None => (0..DRAWN).map(|_| random() % items).collect(),
        Some(theta) => {
            // Gray et al., SIGMOD 1994, section 3.2.
            let zeta = |count: u64| {
                (1..=count)
                    .map(|rank| (rank as f64).powf(-theta))
                    .sum::<f64>()
            };
            let (all, two) = (zeta(items), zeta(2));
            let alpha = 1.0 / (1.0 - theta);
            let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - two / all);
            (0..DRAWN)
                .map(|_| {
                    let uniform = (random() >> 11) as f64 / (1_u64 << 53) as f64;
                    let rank = if uniform * all < 1.0 {
                        0
                    } else if uniform * all < two {
                        1
                    } else {
                        (items as f64 * (eta * uniform - eta + 1.0).powf(alpha)) as u64
                    };
                    rank.min(items - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % items
                })
                .collect()
        }
    }
}

fn value_of(id: u64) -> [u8; 8] {
    (!id).to_le_bytes()
}

struct Store {
    hasher: Hasher,
    partitions: Vec<Mutex<Partition>>,
    readers: Vec<Option<Reader>>,
}

impl Store {
    fn filled(options: &Options, cores: usize, access: Access) -> Self {
        let Options { items, mode, .. } = *options;
        let hasher = Hasher::new(1);
        // Room for all, and partitions enough that two cores rarely want the same.
        let count = if access == Access::Crcw && cores > 1 {
            16 * cores
        } else {
            cores
        };
        let item_bytes = match mode {
            Mode::Cache => 30,
            Mode::Store => 44,
        };
        let log_bytes = (items as usize * item_bytes / count)
            .next_multiple_of(1 << 20)
            .min(Config::LOG_BYTES_MAX);
        let config = Config {
            mode,
            has_readers: access != Access::Erew,
            ..Config::for_log_bytes(log_bytes)
        };
        let mut partitions: Vec<_> = (0..count)
            .map(|_| Partition::new(config, hasher.clone()).expect("enough memory"))
            .collect();
        for id in 0..items {
            let name = id.to_le_bytes();
            let key = hasher.key(&name);
            let partition = &mut partitions[key.partition(count)];
            set(partition, key, id);
        }
        let held: u64 = partitions
            .iter()
            .map(|partition| partition.statistics().items)
            .sum();
        let index: usize = partitions.iter().map(Partition::index_bytes).sum();
        // In a store, with what fills their blocks.
        let taken = |partition: &Partition| match partition.free_bytes() {
            Some(free) => (partition.log_bytes() - free) as u64,
            None => partition.statistics().bytes,
        };
        let bytes: u64 = partitions.iter().map(taken).sum();
        let lost = items - held;
        eprintln!(
            "filled {count} partitions: {lost} items lost, {:.2} bytes an item beside key and value",
            (bytes as f64 + index as f64) / held as f64 - 16.0
        );
        let readers = partitions.iter().map(Partition::reader).collect();
        Self {
            hasher,
            partitions: partitions.into_iter().map(Mutex::new).collect(),
            readers,
        }
    }
}

/// Operations a second of all cores together.
fn measure(store: &Store, cell: Cell, ids: &[u64], seconds: f64) -> f64 {
    let is_over = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let start_line = Barrier::new(cell.cores + 1);
    let begun = std::thread::scope(|scope| {
        for core in 0..cell.cores {
            let (is_over, done, start_line) = (&is_over, &done, &start_line);
            scope.spawn(move || {
                let asked = ask(store, cell, core, ids);
                start_line.wait();
                done.fetch_add(work(store, cell, core, &asked, is_over), Relaxed);
            });
        }
        start_line.wait();
        let begun = Instant::now();
        while begun.elapsed().as_secs_f64() < seconds {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        is_over.store(true, Relaxed);
        begun
    });
    done.load(Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

/// What a core asks for: ids to read, and as many to write.
struct Asked {
    reads: Vec<u64>,
    writes: Vec<u64>,
}

/// Under EREW each core is given its own keys, as by a client that knows the partitions; under CREW it is given its own
/// to write, the nearest to those that were drawn.
fn ask(store: &Store, cell: Cell, core: usize, ids: &[u64]) -> Asked {
    let partitions = store.partitions.len();
    let is_own = |id: &u64| store.hasher.key(&id.to_le_bytes()).partition(partitions) == core;
    let reads: Vec<u64> = ids
        .iter()
        .copied()
        .filter(|id| cell.access != Access::Erew || is_own(id))
        .collect();
    let own = |id: u64| (0..=id).rev().find(is_own).unwrap_or(id);
    let writes = match cell.access {
        Access::Crew => reads.iter().copied().map(own).collect(),
        Access::Erew | Access::Crcw => reads.clone(),
    };
    Asked { reads, writes }
}

fn work(store: &Store, cell: Cell, core: usize, asked: &Asked, is_over: &AtomicBool) -> u64 {
    let partitions = store.partitions.len();
    let mut done = 0;
    let mut at = core * 7919 * BURST % asked.reads.len().max(1);
    let mut names = [[0; 8]; BURST];
    let mut out = Vec::with_capacity(64);
    let mut owned = (cell.access == Access::Erew)
        .then(|| store.partitions[core].lock().expect("nobody failed"));
    while !is_over.load(Relaxed) {
        if at + BURST > asked.reads.len() {
            at = 0;
        }
        let is_set = |number: usize| {
            (number as u64 * 100 + done) % (BURST as u64 * 100) < cell.sets * BURST as u64
        };
        let burst: [u64; BURST] = std::array::from_fn(|number| {
            if is_set(number) {
                asked.writes[at + number]
            } else {
                asked.reads[at + number]
            }
        });
        at += BURST;
        for (name, id) in names.iter_mut().zip(burst) {
            *name = id.to_le_bytes();
        }
        let keys: [Key<'_>; BURST] = std::array::from_fn(|number| store.hasher.key(&names[number]));
        if let Some(partition) = &mut owned {
            partition.prefetched(&keys, |partition, number, key| {
                if is_set(number) {
                    set(partition, key, burst[number]);
                } else {
                    let item = partition.get(key, 1).expect("it was stored");
                    assert_eq!(item.value, value_of(burst[number]));
                }
            });
        } else {
            for &key in &keys {
                if let Some(reader) = &store.readers[key.partition(partitions)] {
                    reader.prefetch_bucket(key);
                }
            }
            for &key in &keys {
                if let Some(reader) = &store.readers[key.partition(partitions)] {
                    reader.prefetch_item(key);
                }
            }
            for (number, &key) in keys.iter().enumerate() {
                let at = key.partition(partitions);
                let id = burst[number];
                if is_set(number) {
                    set(
                        &mut store.partitions[at].lock().expect("nobody failed"),
                        key,
                        id,
                    );
                } else if let Some(reader) = &store.readers[at] {
                    out.clear();
                    let found = reader.get(key, 1, &mut out, |_, _| ());
                    if matches!(found, Lookup::Hit { .. }) {
                        assert_eq!(out, value_of(id));
                    } else {
                        assert!(found == Lookup::Ask, "it was stored");
                    }
                    black_box(&out);
                }
            }
        }
        done += BURST as u64;
    }
    done
}

fn set(partition: &mut Partition, key: Key<'_>, id: u64) {
    partition
        .set(key, 1, &Contents::of(&value_of(id)))
        .expect("a small item");
}
