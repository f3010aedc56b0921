//! Which processes descend from one: found anew every half second at most, and less often where that takes long.

use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::files::{self, Opener};

/// Folders are read through a buffer of this size.
const FOLDER_BYTES: usize = 16 * 1024;

/// Lists start with room for this many.
const USUAL_PROCESSES: usize = 4096;

/// Lists of processes and threads, with buffers that are kept.
pub(super) struct Scanner {
    folder: Vec<MaybeUninit<u8>>,
    /// Whether `/proc/PID/task/TID/children` exists (CONFIG_PROC_CHILDREN); else all of `/proc` is searched.
    has_children: bool,
    /// Every process with its parent, where all of `/proc` is searched.
    parents: Vec<(u32, u32)>,
    numbers: Vec<u32>,
}

impl Scanner {
    pub(super) fn new(opener: &mut Opener, process: u32) -> Self {
        let has_children = opener.read_thread(process, process, "children").is_ok();
        Self {
            folder: vec![MaybeUninit::uninit(); FOLDER_BYTES],
            has_children,
            parents: Vec::with_capacity(USUAL_PROCESSES),
            numbers: Vec::with_capacity(USUAL_PROCESSES),
        }
    }

    /// The threads of a process, given to `found`.
    pub(super) fn threads(
        &mut self,
        opener: &mut Opener,
        process: u32,
        mut found: impl FnMut(&mut Opener, u32),
    ) {
        // A process that ends meanwhile has no threads.
        let _ = numbers_in(
            opener.process_path(process, "task"),
            &mut self.folder,
            &mut self.numbers,
        );
        for &thread in &self.numbers {
            found(opener, thread);
        }
    }

    /// Adds to `members` what descends from those in it, parents before children, up to `most`. True if that was all.
    pub(super) fn descendants(
        &mut self,
        opener: &mut Opener,
        members: &mut Vec<u32>,
        most: usize,
    ) -> bool {
        if !self.has_children {
            self.read_parents(opener);
        }
        let mut position = 0;
        let mut was_all = true;
        while position < members.len() && was_all {
            let process = members[position];
            position += 1;
            let mut meet = |child: u32| {
                if was_all && !members.contains(&child) {
                    was_all = members.len() < most;
                    if was_all {
                        members.push(child);
                    }
                }
            };
            if self.has_children {
                self.threads(opener, process, |opener, thread| {
                    let children = opener.read_thread(process, thread, "children");
                    let words = children.unwrap_or_default().split(u8::is_ascii_whitespace);
                    words.filter_map(files::number).for_each(&mut meet);
                });
            } else {
                let children = self.parents.iter().filter(|(_, of)| *of == process);
                children.for_each(|&(child, _)| meet(child));
            }
        }
        was_all
    }

    fn read_parents(&mut self, opener: &mut Opener) {
        // What cannot be listed has no processes.
        let _ = numbers_in(opener.proc_path(), &mut self.folder, &mut self.numbers);
        self.parents.clear();
        for &process in &self.numbers {
            if let Ok(text) = opener.read_process(process, "stat")
                && let Ok(stat) = files::stat(text)
            {
                self.parents.push((process, stat.parent));
            }
        }
    }
}

/// The names in a folder that are numbers.
fn numbers_in(
    path: &Path,
    buffer: &mut [MaybeUninit<u8>],
    numbers: &mut Vec<u32>,
) -> Result<(), Errno> {
    numbers.clear();
    let folder = rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut entries = RawDir::new(folder, buffer);
    while let Some(entry) = entries.next() {
        numbers.extend(files::number(entry?.file_name().to_bytes()));
    }
    Ok(())
}
