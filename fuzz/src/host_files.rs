//! Files of `/proc`, `/sys` and control groups, as the probes read them.

use probe::{Host, ReaderSet, Status};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// The recorded host whose files are written over.
const TREE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/probe/tests/trees/container-cgroup-v2"
);

struct Copy {
    root: PathBuf,
    /// Every file, and what is in it.
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// The first byte picks a file of a recorded host, the rest is what that holds: the probes give numbers, not negative,
/// or none with a reason, whether the file is so from the start or becomes so while it is read.
pub fn run(data: &[u8]) {
    thread_local!(static COPY: Copy = Copy::new());
    if let Some((&pick, text)) = data.split_first() {
        COPY.with(|copy| replace(copy, pick, text));
    }
}

fn replace(copy: &Copy, pick: u8, text: &[u8]) {
    let (path, before) = &copy.files[usize::from(pick) % copy.files.len()];
    let host = Host {
        processes: vec![("system".to_owned(), 1)],
        cgroups: vec![("system".to_owned(), "/".to_owned())],
        page_bytes: 4096,
        clock_ticks_per_second: 100,
        perf: false,
        ..Host::at(&copy.root)
    };
    let mut from_before = (pick >= 128).then(|| ReaderSet::new(&host));
    fs::write(path, text).expect("a file");
    if let Some(set) = &mut from_before {
        set.read();
        set.refresh_probes();
        check(set);
    } else {
        check(&mut ReaderSet::new(&host));
    }
    fs::write(path, before).expect("a file");
}

fn check(set: &mut ReaderSet) {
    let row = set.read().to_vec();
    assert_eq!(row.len(), set.columns().len());
    for (column, value) in set.columns().iter().zip(row) {
        assert!(
            value.is_nan() || (value.is_finite() && value >= 0.0),
            "{column} = {value}"
        );
    }
    for probe in set.probes() {
        assert!(
            probe.status == Status::Ok || !probe.reason.is_empty(),
            "{} is not ok, and nobody says why",
            probe.name
        );
    }
}

impl Copy {
    /// One that belongs to this thread.
    fn new() -> Self {
        let name = format!(
            "rackscope-fuzz-{}-{:?}",
            std::process::id(),
            thread::current().id()
        );
        let root = std::env::temp_dir().join(name);
        let mut files = Vec::new();
        copy_below(Path::new(TREE), &root, &mut files);
        files.sort();
        Self { root, files }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What is left of it hurts nobody.
        _ = fs::remove_dir_all(&self.root);
    }
}

fn copy_below(from: &Path, to: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_below(&entry.path(), &target, files);
        } else {
            let text = fs::read(entry.path()).expect("a file");
            fs::write(&target, &text).expect("a file");
            files.push((target, text));
        }
    }
}
