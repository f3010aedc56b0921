//! The floors of this crate: a file imports from its own floor and those below it only.

use std::fs;
use std::path::Path;

/// From the lowest to the highest.
const FLOORS: [&str; 4] = ["engine", "session", "carrier", "control"];

fn check(folder: &Path, forbidden: &[&str]) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files += check(&path, forbidden);
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).expect("a source file");
        for floor in forbidden {
            let import = format!("crate::{floor}");
            let line = text.lines().position(|line| line.contains(&import));
            assert!(
                line.is_none(),
                "{}: {import} at line index {line:?}",
                path.display()
            );
        }
    }
    files
}

#[test]
fn no_floor_knows_one_above_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    check(&source.join("options"), &FLOORS);
    for (floor, above) in FLOORS.iter().zip(1..) {
        assert!(check(&source.join(floor), &FLOORS[above..]) > 3, "{floor}");
    }
}
