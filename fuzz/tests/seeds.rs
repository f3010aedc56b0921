//! What must hold, on every seed and on every input that once broke something: the engine is not needed for that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn try_seeds(target: &str, run: fn(&[u8])) {
    let seeds = files(&Path::new(FOLDER).join("seeds").join(target));
    assert!(!seeds.is_empty(), "{target} has no seeds");
    for seed in seeds {
        let data = fs::read(&seed).expect("a seed");
        // So that a test that fails says which it was.
        println!("{}", seed.display());
        run(&data);
        // Cut off in many places of its beginning.
        for length in (0..data.len().min(200)).step_by(7) {
            run(&data[..length]);
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

macro_rules! targets {
    ($($target:ident),*) => {
        $(
            #[test]
            fn $target() {
                try_seeds(stringify!($target), fuzz::$target::run);
            }
        )*

        /// One that is forgotten here is one that only the engine tries.
        #[test]
        fn every_target_is_tried_here_and_every_dictionary_is_used() {
            let here = BTreeSet::from([$(stringify!($target)),*]);
            for folder in ["targets", "seeds"] {
                let there = files(&Path::new(FOLDER).join(folder));
                let there = there.iter().filter_map(|path| path.file_stem()?.to_str());
                assert_eq!(here, there.collect(), "{folder}");
            }
            let dictionaries = files(&Path::new(FOLDER).join("dictionaries"));
            assert!(dictionaries.iter().all(|path| {
                path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| here.contains(name))
            }));
        }
    };
}

targets!(
    accounts,
    batch,
    binary_parser,
    connection,
    datagram_replies,
    datagrams,
    host_files,
    memcached_replies,
    memory_file,
    metrics,
    packets,
    partition,
    recipe,
    resp,
    snmp,
    text_parser
);
