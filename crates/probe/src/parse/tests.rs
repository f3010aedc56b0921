use super::*;
use proptest::prelude::*;

#[test]
fn lines_are_numbered_and_a_cut_off_one_is_told() {
    let mut lines = Lines::new(b"one\ntwo\nthr");
    assert_eq!(lines.next().unwrap().unwrap().text, b"one");
    let second = lines.next().unwrap().unwrap();
    assert_eq!((second.text, second.number), (&b"two"[..], 2));
    let fault = lines.next().err().unwrap();
    assert_eq!((fault.line, fault.problem), (3, Problem::CutOff));
}

#[test]
fn a_missing_line_is_told_from_an_empty_file() {
    assert_eq!(
        Lines::new(b"").expect("load").err().unwrap().problem,
        Problem::Empty
    );
    let mut lines = Lines::new(b"a\n");
    lines.next().unwrap();
    let fault = lines.expect("load").err().unwrap();
    assert_eq!((fault.line, fault.problem), (2, Problem::Missing));
}

#[test]
fn numbers_that_are_none_are_told_apart() {
    assert_eq!(unsigned(b"18446744073709551615"), Ok(u64::MAX));
    assert_eq!(unsigned(b"18446744073709551616"), Err(Problem::TooLarge));
    assert_eq!(unsigned(b"-1"), Err(Problem::NotANumber));
    assert_eq!(unsigned(b"1.5"), Err(Problem::NotANumber));
    assert_eq!(unsigned(b""), Err(Problem::Missing));
}

#[test]
fn cpu_lists() {
    assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
    assert_eq!(cpu_list("0\n"), Some(vec![0]));
    assert_eq!(cpu_list("\n"), Some(vec![]));
    assert_eq!(cpu_list("3-0"), None);
    assert_eq!(cpu_list("0-4294967295"), None);
    assert_eq!(cpu_list("x"), None);
}

proptest! {
    #[test]
    fn every_number_is_read_back(value: u64) {
        prop_assert_eq!(unsigned(value.to_string().as_bytes()), Ok(value));
    }

    #[test]
    fn lines_and_fields_give_back_every_byte_that_is_not_blank(text in "([a-z0-9 \t]{0,12}\n){0,8}") {
        let mut lines = Lines::new(text.as_bytes());
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let mut fields = line.fields();
            while let Some(field) = fields.next() {
                seen.extend_from_slice(field);
            }
        }
        let expected: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>) {
        let mut lines = Lines::new(&bytes);
        while let Ok(Some(line)) = lines.next() {
            let mut fields = line.fields();
            fields.skip(1);
            let _ = fields.number("anything");
        }
        let _ = only_number(&bytes, "anything");
        let _ = cpu_list(&String::from_utf8_lossy(&bytes));
    }
}
