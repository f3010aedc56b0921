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
        if self.has_children {
            self.by_children(opener, members, most)
        } else {
            self.by_parents(opener, members, most)
        }
    }

    fn by_children(&mut self, opener: &mut Opener, members: &mut Vec<u32>, most: usize) -> bool {
        let mut position = 0;
        while position < members.len() {
            let process = members[position];
            position += 1;
            let _ = numbers_in(
                opener.process_path(process, "task"),
                &mut self.folder,
                &mut self.numbers,
            );
            for &thread in &self.numbers {
                let Ok(text) = opener.read_thread(process, thread, "children") else {
                    continue;
                };
                for child in text
                    .split(|byte| byte.is_ascii_whitespace())
                    .filter_map(files::number)
                {
                    if members.contains(&child) {
                        continue;
                    }
                    if members.len() >= most {
                        return false;
                    }
                    members.push(child);
                }
            }
        }
        true
    }

    fn by_parents(&mut self, opener: &mut Opener, members: &mut Vec<u32>, most: usize) -> bool {
        let _ = numbers_in(opener.proc_path(), &mut self.folder, &mut self.numbers);
        self.parents.clear();
        for &process in &self.numbers {
            if let Ok(text) = opener.read_process(process, "stat")
                && let Ok(stat) = files::stat(text)
            {
                self.parents.push((process, stat.parent));
            }
        }
        let mut position = 0;
        while position < members.len() {
            let parent = members[position];
            position += 1;
            for &(child, of) in &self.parents {
                if of == parent && !members.contains(&child) {
                    if members.len() >= most {
                        return false;
                    }
                    members.push(child);
                }
            }
        }
        true
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
