use super::*;
use proptest::prelude::*;

const STAT: &[u8] = b"7658 (a) R (b c) S 7644 7644 4624 0 -1 4194304 104 5 3 2 11 12 13 14 20 0 9 0 89635 3133440 418 \
    18446744073709551615 94780755136512 0\n";

#[test]
fn stat_is_read_past_a_name_with_brackets() {
    let expected = Stat {
        parent: 7644,
        major_faults: 3,
        children_major_faults: 2,
        user_ticks: 11,
        system_ticks: 12,
        children_user_ticks: 13,
        children_system_ticks: 14,
        threads: 9,
        resident_pages: 418,
    };
    assert_eq!(stat(STAT), Ok(expected));
}

#[test]
fn keyed_files() {
    assert_eq!(
        io(b"rchar: 1\nread_bytes: 2\nwrite_bytes: 3\ncancelled_write_bytes: 4\n"),
        Ok([2, 3])
    );
    assert_eq!(
        switches(b"Name:\tx\nvoluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t5\n"),
        Ok([4, 5])
    );
    assert_eq!(io(b"read_bytes: 2\n").unwrap_err().item, "write_bytes");
    assert_eq!(run_delay(b"590020 17 1\n"), Ok(17));
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, cut in 0..STAT.len()) {
        for text in [&bytes[..], &STAT[..cut]] {
            let _ = stat(text);
            let _ = io(text);
            let _ = switches(text);
            let _ = run_delay(text);
            let _ = number(text);
        }
    }

    #[test]
    fn a_stat_that_is_cut_off_is_never_taken(cut in 0..STAT.len()) {
        prop_assert!(stat(&STAT[..cut]).is_err());
    }
}
