//! Doing the work of a recipe: what all threads share is prepared once, each thread has a [`Hand`] of its own.

use crate::Error;
use crate::arguments::Options;
use crate::recipe::{Kind, Recipe, Work};
use antagonist::channel::{self, Channel};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

mod files;
mod instructions;
mod memory;
mod pages;

use files::{Access, BlockFile, next_random};
use instructions::Instructions;
use memory::Stream;
use pages::PageFile;

/// Everything that the recipes of a server need; what none of them needs is not there.
#[derive(Debug)]
pub struct Workshop {
    instructions: Option<Instructions>,
    stream: Option<Stream>,
    channel: Option<Channel>,
    pages: Option<PageFile>,
    read_file: Option<BlockFile>,
    write_file: Option<BlockFile>,
    lock: Mutex<()>,
    /// The largest piece of a file that one system call moves.
    piece_bytes: usize,
    /// What a reader of the log should know.
    pub notes: Vec<String>,
    /// The channel's file, which must be removed in the end.
    pub channel_file: Option<PathBuf>,
}

/// What one thread needs for itself.
#[derive(Debug)]
pub struct Hand {
    /// Of the stream, in words.
    position: usize,
    random: u64,
    /// Holds an aligned piece of a file.
    block: Vec<u8>,
}

impl Workshop {
    /// Makes the files, memory and measurements that the recipes of `options` need.
    pub fn prepare(options: &Options) -> Result<Self, Error> {
        let steps: Vec<Work> = [&options.on_read, &options.on_update]
            .into_iter()
            .flat_map(|recipe| recipe.0.iter().copied())
            .collect();
        let needs = |kinds: &[Kind]| steps.iter().any(|work| kinds.contains(&work.kind));
        let largest = largest_block(&steps, options.file_bytes)?;
        let mut notes = Vec::new();

        let instructions = needs(&[Kind::Cpu]).then(Instructions::calibrate);
        let stream = needs(&[Kind::MemoryStream, Kind::MemoryStreamRegulated])
            .then(Stream::new)
            .transpose()?;
        let channel_file =
            needs(&[Kind::MemoryStreamRegulated]).then(|| options.folder.join(channel::FILE_NAME));
        let pages = needs(&[Kind::PageTouch])
            .then(|| PageFile::create(&options.folder.join("pages"), options.file_bytes))
            .transpose()?;
        let mut block_file = |name: &str, access| {
            let file = BlockFile::create(&options.folder.join(name), options.file_bytes, access)?;
            if !file.direct {
                notes.push(format!(
                    "{} is on a file system without direct I/O: pages are dropped from the cache instead",
                    options.folder.display()
                ));
            }
            Ok::<_, Error>(file)
        };
        let read_file = needs(&[Kind::DiskSequential, Kind::DiskRandom])
            .then(|| block_file("blocks-to-read", Access::Read))
            .transpose()?;
        let write_file = needs(&[Kind::DiskWrite])
            .then(|| block_file("blocks-to-write", Access::Write))
            .transpose()?;
        // Last, so that nothing after it can fail and leave its file behind.
        let channel = channel_file
            .as_deref()
            .map(|path| Channel::create(path, options.channel_bytes_per_second))
            .transpose()?;
        Ok(Self {
            instructions,
            stream,
            channel,
            pages,
            read_file,
            write_file,
            lock: Mutex::new(()),
            piece_bytes: largest.min(files::PIECE_BYTES),
            notes,
            channel_file,
        })
    }

    /// A hand for thread number `number`.
    #[must_use]
    pub fn hand(&self, number: u64) -> Hand {
        let mut random = number;
        let first = next_random(&mut random);
        let words = self.stream.as_ref().map_or(1, Stream::words);
        Hand {
            position: (first % words as u64) as usize,
            random,
            block: if self.piece_bytes > 0 {
                vec![0; self.piece_bytes + files::ALIGNMENT_BYTES]
            } else {
                Vec::new()
            },
        }
    }

    /// Does all of `recipe`.
    pub fn work(&self, recipe: &Recipe, hand: &mut Hand) -> io::Result<()> {
        recipe.0.iter().try_for_each(|work| self.step(work, hand))
    }

    fn step(&self, work: &Work, hand: &mut Hand) -> io::Result<()> {
        let amount = work.amount;
        match work.kind {
            Kind::Cpu => {
                if let Some(instructions) = &self.instructions {
                    instructions.execute(amount);
                }
            }
            Kind::MemoryStream => self.read_memory(amount, hand),
            Kind::MemoryStreamRegulated => {
                if let Some(channel) = &self.channel {
                    let passage = channel.draw(amount);
                    self.read_memory(amount, hand);
                    channel.wait_for(passage);
                }
            }
            Kind::PageTouch => {
                if let Some(file) = &self.pages {
                    file.touch(amount, || next_random(&mut hand.random));
                }
            }
            Kind::DiskSequential => {
                if let Some(file) = &self.read_file {
                    file.read_next(amount, &mut hand.block)?;
                }
            }
            Kind::DiskRandom => {
                if let Some(file) = &self.read_file {
                    file.read_at_slot(next_random(&mut hand.random), amount, &mut hand.block)?;
                }
            }
            Kind::DiskWrite => {
                if let Some(file) = &self.write_file {
                    file.write_next(amount, &mut hand.block)?;
                }
            }
            Kind::Lock => {
                // Nothing is guarded by it, so a poisoned one is as good.
                let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                thread::sleep(Duration::from_micros(amount));
                drop(held);
            }
            Kind::Sleep => thread::sleep(Duration::from_micros(amount)),
        }
        Ok(())
    }

    fn read_memory(&self, bytes: u64, hand: &mut Hand) {
        if let Some(stream) = &self.stream {
            hand.position = stream.read(hand.position, bytes);
        }
    }

    /// Instructions a microsecond that `cpu` was calibrated to; `None` when there is no such work.
    pub fn instructions_per_microsecond(&self) -> Option<f64> {
        self.instructions
            .as_ref()
            .map(Instructions::per_microsecond)
    }

    /// The channel, where there is such work.
    pub fn channel(&self) -> Option<&Channel> {
        self.channel.as_ref()
    }
}

/// The most bytes of a file that a step moves; 0 when none does.
fn largest_block(steps: &[Work], file_bytes: u64) -> Result<usize, Error> {
    let mut largest = 0;
    let moves_blocks = |kind| {
        matches!(
            kind,
            Kind::DiskSequential | Kind::DiskRandom | Kind::DiskWrite
        )
    };
    for &work in steps.iter().filter(|work| moves_blocks(work.kind)) {
        let bytes = files::aligned(work.amount);
        if bytes > file_bytes {
            return Err(Error::Host(format!(
                "{work} moves more than the {file_bytes} bytes of a file; raise --file-bytes"
            )));
        }
        largest = largest.max(bytes as usize);
    }
    Ok(largest)
}
