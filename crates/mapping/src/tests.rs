use super::*;
use std::fs::{File, OpenOptions};
use std::sync::atomic::Ordering::Relaxed;

fn file_of(words: &[u64]) -> File {
    let name = format!("mapping-{}-{}", std::process::id(), words.len());
    let path = std::env::temp_dir().join(name);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    std::fs::write(&path, bytes).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

#[test]
fn memory_is_zeroed_and_writable_to_its_last_word() {
    for bytes in [0, 64, 4096, HUGE_PAGE_BYTES - 8, HUGE_PAGE_BYTES + 24] {
        let mapping = Mapping::zeroed(bytes).unwrap();
        assert_eq!(mapping.bytes(), bytes);
        let alignment = match bytes < HUGE_PAGE_BYTES {
            true => 64,
            false => HUGE_PAGE_BYTES,
        };
        assert_eq!(mapping.start().as_ptr().align_offset(alignment), 0);
        mapping.use_huge_pages();
        let words = mapping.words();
        assert_eq!(words.len(), bytes / 8);
        if let Some(last) = words.last() {
            assert_eq!(last.load(Relaxed), 0);
            last.store(7, Relaxed);
            mapping.touch(bytes - 1);
        }
    }
}

#[test]
fn two_mappings_of_a_file_are_one_memory() {
    let file = file_of(&[1, 2, 3]);
    let one = Mapping::of_file(&file, 0, 24, Access::ReadWrite, false).unwrap();
    let other = Mapping::of_file(&file, 0, 24, Access::ReadWrite, true).unwrap();
    one.words()[2].store(9, Relaxed);
    assert_eq!(other.words()[2].load(Relaxed), 9);
}

#[test]
fn a_file_for_reading_is_touched_and_has_no_words_to_write() {
    let file = file_of(&[0; 512]);
    let mapping = Mapping::of_file(&file, 0, 4096, Access::Read, false).unwrap();
    mapping.expect_random_access();
    mapping.touch(4095);
    assert!(mapping.words().is_empty());
    assert!(std::panic::catch_unwind(|| mapping.touch(4096)).is_err());
}

#[test]
fn what_cannot_be_had_is_an_error() {
    assert!(Mapping::zeroed(usize::MAX).is_err());
    assert!(Words::zeroed(usize::MAX / 4).is_err());
    let file = file_of(&[0; 8]);
    assert!(Mapping::of_file(&file, 1, 8, Access::Read, false).is_err());
}

#[test]
fn words_are_numbers_of_their_owner() {
    let mut words = Words::zeroed(HUGE_PAGE_BYTES / 8 + 1).unwrap();
    assert!(words.iter().all(|&word| word == 0));
    let last = words.len() - 1;
    words[last] = 5;
    assert_eq!(words.iter().sum::<u64>(), 5);
}
