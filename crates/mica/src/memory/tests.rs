use super::*;
use mapping::HUGE_PAGE_BYTES;

#[test]
fn memory_is_zeroed_and_keeps_what_is_copied_in() {
    for bytes in [64, 4096, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES + 64] {
        let memory = Memory::zeroed(bytes).expect("a little memory");
        memory.use_huge_pages();
        assert!(
            memory
                .lines()
                .as_flattened()
                .iter()
                .all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0)
        );
        assert_eq!(memory.lines().as_ptr().align_offset(64), 0);
        // SAFETY: nobody else has this memory.
        unsafe { memory.store(bytes - 5, b"12345") };
        let mut found = b">".to_vec();
        memory.load(bytes - 5, 5, &mut found);
        assert_eq!(found, b">12345");
        assert!(memory.equals(bytes - 4, b"2345") && !memory.equals(bytes - 4, b"2346"));
    }
}

#[test]
fn nothing_is_within_bounds_at_the_very_end() {
    let memory = Memory::zeroed(64).expect("a little memory");
    let mut found = b">".to_vec();
    memory.load(64, 0, &mut found);
    assert_eq!(found, b">");
    assert!(memory.equals(64, b""));
}

#[test]
#[should_panic(expected = "0 bytes at 65 of 64")]
fn nothing_is_out_of_bounds_behind_the_end() {
    Memory::zeroed(64)
        .expect("a little memory")
        .load_into(65, &mut []);
}

#[test]
#[should_panic(expected = "6 bytes at 60 of 64")]
fn out_of_bounds_is_refused() {
    Memory::zeroed(64)
        .expect("a little memory")
        .load_into(60, &mut [0; 6]);
}

#[test]
fn what_nobody_has_is_an_error() {
    assert!(matches!(
        Memory::zeroed(usize::MAX),
        Err(Error::OutOfMemory { .. })
    ));
    assert!(matches!(
        Memory::zeroed(1 << 60),
        Err(Error::OutOfMemory { .. })
    ));
}
