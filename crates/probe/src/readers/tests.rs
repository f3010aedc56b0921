//! Trees of `/proc` and `/sys` for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Host;
use crate::readers::Reader;

/// A folder of its own that is gone after the test.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("rackscope-probe-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A tree with one file.
    pub(crate) fn with(path: &str, text: &str) -> Self {
        let tree = Self::empty();
        tree.write(path, text);
        tree
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with its folders, and returns where it is. Written in place: readers keep files open.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn host(&self) -> Host {
        Host {
            page_bytes: 4096,
            clock_ticks_per_second: 100,
            ..Host::at(&self.0)
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reads once and gives every column with its value.
pub(crate) fn sample(reader: &mut dyn Reader) -> Sample {
    let columns: Vec<String> = reader
        .probes()
        .into_iter()
        .filter(|probe| probe.status != crate::Status::Missing)
        .flat_map(|probe| probe.columns)
        .collect();
    let mut row = vec![f64::NAN; columns.len()];
    reader.read(&mut row);
    Sample(columns.into_iter().zip(row).collect())
}

/// A row with its columns.
pub(crate) struct Sample(pub(crate) Vec<(String, f64)>);

impl Sample {
    /// The value of a column; the test fails if there is none.
    #[track_caller]
    pub(crate) fn get(&self, column: &str) -> f64 {
        match self.0.iter().find(|(name, _)| name == column) {
            Some((_, value)) => *value,
            None => panic!(
                "no column {column} among {:?}",
                self.0.iter().map(|(name, _)| name).collect::<Vec<_>>()
            ),
        }
    }
}
