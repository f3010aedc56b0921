use super::*;
use mapping::HUGE_PAGE_BYTES;

#[test]
fn words_start_at_zero_keep_what_is_written_and_are_aligned() {
    let mut buffer = zeroed(100_000).unwrap();
    assert!(buffer.iter().all(|&word| word == 0));
    assert_eq!(buffer.as_ptr().align_offset(HUGE_PAGE_BYTES), 0);
    for (index, word) in buffer.iter_mut().enumerate() {
        *word = index as u64;
    }
    assert!(
        buffer
            .iter()
            .enumerate()
            .all(|(index, &word)| word == index as u64)
    );
}

#[test]
fn more_memory_than_there_is_addresses_for_is_an_error() {
    for words in [usize::MAX, usize::MAX / size_of::<u64>(), 1 << 56] {
        assert!(matches!(zeroed(words), Err(Error::Host { .. })));
    }
}

#[test]
fn huge_pages_are_counted_once_for_each_mapping_that_holds_a_buffer() {
    let smaps = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nAnonHugePages:      2048 kB\n\
                 7f0000400000-7f0000800000 rw-p 00000000 00:00 0 \nVmFlags: rd wr\nAnonHugePages:      4096 kB\n";
    let found = |addresses: &[u64]| huge_page_bytes_in(smaps, addresses);
    assert_eq!(found(&[0x7f00_003f_ffff]), Some(2048 << 10));
    assert_eq!(
        found(&[0x7f00_0050_0000, 0x7f00_0040_0000]),
        Some(4096 << 10)
    );
    assert_eq!(
        found(&[0x7f00_0000_0000, 0x7f00_0040_0000]),
        Some(6144 << 10)
    );
    assert_eq!(found(&[0x1000]), None);
    assert_eq!(huge_page_bytes_in("damaged", &[0x1000]), None);
}
