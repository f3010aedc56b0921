use super::*;
use crate::parse::only_number;
use std::fs;

#[test]
fn a_file_that_grows_is_read_whole() {
    let folder = crate::readers::tests::Tree::empty();
    let path = folder.write("big", "");
    let mut source = Source::open_small(&path).unwrap();
    for length in [0, 511, 512, 513, 5000, 3] {
        let text = "x".repeat(length);
        fs::write(&path, &text).unwrap();
        let mut seen = 0;
        assert!(source.read(|bytes| {
            seen = bytes.len();
            Ok(())
        }));
        assert_eq!(seen, length);
    }
}

#[test]
fn a_failure_says_path_line_and_item() {
    let folder = crate::readers::tests::Tree::empty();
    let path = folder.write("frequency", "fast\n");
    let mut source = Source::open(&path).unwrap();
    assert!(!source.read(|text| only_number(text, "frequency").map(|_| ())));
    assert_eq!(
        source.complaint(),
        format!("{}, line 1: frequency is not a number", path.display())
    );
    fs::write(&path, "17\n").unwrap();
    assert!(source.read(|text| only_number(text, "frequency").map(|_| ())));
    assert!(
        source
            .complaint()
            .starts_with("1 of 2 readings failed, the first: "),
        "{}",
        source.complaint()
    );
}

#[test]
fn a_folder_or_nothing_is_no_file() {
    let folder = crate::readers::tests::Tree::empty();
    let error = Source::open(folder.root()).err().unwrap().to_string();
    assert!(error.contains("directory"), "{error}");
    let error = Source::open(folder.root().join("absent"))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("absent") && error.contains("No such file"),
        "{error}"
    );
}
