//! Items that outlive the process: written to a file at a graceful stop, read from it at the next start
//! (`-e`, memcached's warm restart).
//!
//! The file is there only while no server runs on it: it is written next to its path and renamed when it is whole,
//! and removed once its items are served again. So whatever a server that ended badly leaves behind, it is not a file of
//! items that were changed since.

mod format;
mod progress;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use self::format::Damage;
use self::format::{Header, Record};
use self::progress::Progress;
use self::read::Reader;
use self::write::Writer;
use crate::engine::{Clock, Partitions};
use mica::{Hasher, Partition};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wire::memcached::partition_map::owner;

/// Why items cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("-e {path}: {1}", path = .0.display())]
pub struct Error(PathBuf, String);

/// Where items are kept between one server and the next.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    path: PathBuf,
    hash_seed: u64,
}

impl MemoryFile {
    /// Make sure that items can be kept at `path`: what cannot be written at the end is better known at the start. If
    /// there are some, keys are to be hashed as theirs were, else with `fresh_seed`.
    pub fn claim(path: &Path, fresh_seed: u64) -> Result<Self, Error> {
        let mut file = Self {
            path: path.to_owned(),
            hash_seed: fresh_seed,
        };
        file.draft().map_err(|error| file.unwritable(error))?;
        file.discard_draft();
        // What is wrong with it is reported when it is read.
        if let Some(source) = file.open()?
            && let Ok(reader) = Reader::new(source)
        {
            file.hash_seed = reader.header().hash_seed;
        }
        Ok(file)
    }

    /// What keys are to be hashed with, so that what fitted once fits again.
    pub fn hash_seed(&self) -> u64 {
        self.hash_seed
    }

    /// Fill `partitions`, which are empty, with what an earlier server left, and say so: those of `parts` workers, one
    /// worker's behind another's, each of which has its share of the keys. The clock goes on from its. `None` where
    /// there is nothing, or nothing of use, which is said and put aside; the partitions are then of no use either. In
    /// store mode, items that do not fit are an error.
    pub fn restore(
        &self,
        hasher: &Hasher,
        partitions: &mut [Partition],
        parts: usize,
    ) -> Result<Option<Clock>, Error> {
        let source = match self.open()? {
            Some(source) => source,
            None => return Ok(None),
        };
        // Store mode.
        let must_fit = partitions.iter().any(|one| one.free_bytes().is_some());
        match restore_from(source, hasher, (partitions, parts), &self.path) {
            Ok((_, counts)) if must_fit && counts.unfit > 0 => Err(self.failed(format!(
                "{} of its items do not fit, and with -M none is to be lost: start with as much memory (-m) and as \
                 many threads (-t) as before or with more memory, or without -M; the file is kept",
                counts.unfit
            ))),
            Ok((clock, counts)) => {
                eprintln!("rackscope-cached: {counts} from {}", self.path.display());
                Ok(Some(clock))
            }
            Err(damage) => {
                let aside = with_suffix(&self.path, ".damaged");
                std::fs::rename(&self.path, &aside).map_err(|error| self.unwritable(error))?;
                eprintln!(
                    "rackscope-cached: -e {}: {damage}. The cache starts empty; the file is kept as {}",
                    self.path.display(),
                    aside.display()
                );
                Ok(None)
            }
        }
    }

    /// Remove what was read: from now on items change, and it would bring back what they were.
    pub fn consume(&self) -> Result<(), Error> {
        let removed = match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // A host that ends must not have it back when it starts again.
            removed => removed.and_then(|()| self.sync_folder()),
        };
        removed.map_err(|error| self.unwritable(error))
    }

    /// Have its name, or that it has none any more, outlast the host's end.
    fn sync_folder(&self) -> io::Result<()> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)?.sync_all()
    }

    /// Keep all items of all workers, and say so. Where that fails, nothing is kept.
    pub fn save(&self, all: &mut [Box<dyn Partitions>], clock: Clock) -> Result<(), Error> {
        let items = self.try_save(all, clock).map_err(|error| {
            self.discard_draft();
            self.unwritable(error)
        })?;
        eprintln!(
            "rackscope-cached: {} kept in {}",
            items_in_words(items),
            self.path.display()
        );
        Ok(())
    }

    fn try_save(&self, all: &mut [Box<dyn Partitions>], clock: Clock) -> io::Result<u64> {
        let file = self.draft()?;
        let (file, items) = save_to(file, all, (clock, self.hash_seed), &self.path)?;
        file.sync_all()?;
        std::fs::rename(self.draft_path(), &self.path)?;
        self.sync_folder()?;
        Ok(items)
    }

    fn open(&self) -> Result<Option<File>, Error> {
        let unreadable = |error| self.failed(format!("it cannot be read: {error}"));
        let unfit = |what| self.failed(format!("{what}; remove it, or give another path"));
        // What is no file might never end, or never begin.
        let found = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(unreadable)?,
        };
        if !found.is_file() {
            return Err(unfit("something that is not a file is there"));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(unfit("a file of another user is there"));
        }
        File::open(&self.path).map(Some).map_err(unreadable)
    }

    /// A new, empty file next to the path of the one to be; no other user may read it.
    fn draft(&self) -> io::Result<File> {
        self.discard_draft();
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.draft_path())
    }

    /// Whatever an attempt left that was not finished.
    fn discard_draft(&self) {
        // Where it cannot be removed, it cannot be made anew either, which is an error.
        _ = std::fs::remove_file(self.draft_path());
    }

    fn draft_path(&self) -> PathBuf {
        with_suffix(&self.path, ".tmp")
    }

    fn unwritable(&self, error: io::Error) -> Error {
        self.failed(format!("it cannot be written: {error}"))
    }

    fn failed(&self, what: String) -> Error {
        Error(self.path.clone(), what)
    }
}

/// What became of the items of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// They are there.
    pub held: u64,
    /// Their time was over.
    pub expired: u64,
    /// They were too large, or were evicted by newer ones.
    pub unfit: u64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} back", items_in_words(self.held))?;
        if self.expired > 0 {
            write!(formatter, ", {} expired meanwhile,", self.expired)?;
        }
        if self.unfit > 0 {
            write!(formatter, ", {} did not fit,", self.unfit)?;
        }
        Ok(())
    }
}

/// Fill partitions from a source, as [`MemoryFile::restore`] does.
pub(crate) fn restore_from(
    source: impl io::Read + io::Seek,
    hasher: &Hasher,
    (partitions, parts): (&mut [Partition], usize),
    path: &Path,
) -> Result<(Clock, Counts), Damage> {
    let reader = Reader::new(source)?;
    let header = *reader.header();
    let clock = Clock::resume(header.zero_unix, header.written_at).ok_or(Damage::Time)?;
    let now = clock.now();
    for partition in &mut *partitions {
        partition.number_after(header.last_cas);
    }
    // All of it was stored before it was written.
    let is_flushed = header.flush_due.is_some_and(|due| due <= now);
    let (mut expired, mut too_large) = (0, 0);
    let share = partitions.len() / parts;
    let mut progress = Progress::new("reading", path, reader.bytes());
    reader.for_each(
        |bytes| progress.add(bytes),
        |record| {
            if is_flushed || (record.expires_at != 0 && record.expires_at <= now) {
                expired += 1;
                return;
            }
            let key = hasher.key(record.key);
            let index = owner(record.key, parts) * share + key.partition(share);
            let partition = &mut partitions[index];
            // At the second of its last use, which the item then has again.
            let used_at = record.accessed_at.min(now);
            if partition.set(key, used_at, &record.contents()).is_err() {
                too_large += 1;
            }
        },
    )?;
    let mut counts = Counts {
        held: 0,
        expired,
        unfit: too_large,
    };
    for partition in partitions {
        if let Some(due) = header.flush_due.filter(|_| !is_flushed) {
            partition.flush_at(due, now);
        }
        let statistics = partition.statistics();
        counts.held += statistics.items;
        counts.unfit += statistics.evictions + statistics.bucket_evictions;
    }
    Ok((clock, counts))
}

/// Returns the sink, and how many items are in it.
pub(crate) fn save_to<W: io::Write>(
    sink: W,
    all: &mut [Box<dyn Partitions>],
    (clock, hash_seed): (Clock, u64),
    path: &Path,
) -> io::Result<(W, u64)> {
    let now = clock.now();
    let mut header = Header {
        zero_unix: clock.unix_seconds(0),
        written_at: now,
        flush_due: None,
        last_cas: 0,
        hash_seed,
    };
    let mut bytes = 0;
    for worker in &mut *all {
        worker.each(&mut |partition| {
            header.last_cas = header.last_cas.max(partition.last_cas());
            // One is asked for in all of them.
            header.flush_due = header.flush_due.or(partition.flush_due());
            bytes += partition.statistics().bytes;
        });
    }
    let mut writer = Writer::new(sink, &header)?;
    let mut progress = Progress::new("writing", path, bytes);
    let mut number = 0;
    let mut result = Ok(());
    for worker in all {
        worker.each(&mut |partition| {
            partition.for_each_live(now, |live| {
                if result.is_ok() {
                    let record = Record {
                        key: live.key,
                        value: live.item.value,
                        flags: live.item.flags,
                        expires_at: live.item.expires_at,
                        accessed_at: live.item.accessed_at,
                        cas: live.own_cas,
                        marks: live.item.marks,
                    };
                    result = writer.add(number, &record);
                    progress.set(writer.bytes_written());
                }
            });
            number += 1;
        });
    }
    result?;
    writer.finish()
}

fn items_in_words(items: u64) -> String {
    match items {
        1 => "1 item is".to_owned(),
        items => format!("{items} items are"),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
