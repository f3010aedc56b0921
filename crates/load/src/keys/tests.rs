use super::*;
use proptest::prelude::*;

fn format(count: u64, size: SizeConfig) -> Result<KeyFormat, Error> {
    KeyFormat::new(&KeysConfig { count, size }, 1)
}

#[test]
fn keys_are_a_word_and_a_padded_number() {
    let keys = format(100, SizeConfig::Fixed { bytes: 24 }).expect("valid");
    assert_eq!(keys.text(KeyKind::User, 42), "user00000000000000000042");
    let keys = format(100, SizeConfig::Fixed { bytes: 6 }).expect("valid");
    assert_eq!(keys.text(KeyKind::SortedSet, 99), "zset99");
    assert_eq!(keys.capacity(), 100);
    let keys = format(100, SizeConfig::Fixed { bytes: 250 }).expect("valid");
    let text = keys.text(KeyKind::User, u64::MAX);
    assert_eq!(text, format!("user{:0>246}", u64::MAX));
}

#[test]
fn a_size_too_small_to_tell_keys_apart_is_refused() {
    for (count, bytes) in [(101, 6), (1, 4), (10_000_000, 10), (5, 251)] {
        let message = format(count, SizeConfig::Fixed { bytes })
            .expect_err("too small or too long")
            .to_string();
        assert!(
            message.starts_with("keys.size.bytes must be between "),
            "{message}"
        );
    }
    format(1, SizeConfig::Fixed { bytes: 5 }).expect("one digit is enough for one key");
    format(10_000_000, SizeConfig::Fixed { bytes: 11 }).expect("seven digits");
}

#[test]
fn etc_keys_differ() {
    let keys = format(20_000, SizeConfig::Etc {}).expect("valid");
    let texts: std::collections::HashSet<String> =
        (0..20_000).map(|id| keys.text(KeyKind::User, id)).collect();
    assert_eq!(texts.len(), 20_000);
    assert!(texts.iter().all(|text| (12..=250).contains(&text.len())));
}

proptest! {
    #[test]
    fn digits_are_those_of_the_number(number in any::<u64>(), shift in 0..64, bytes in 24_usize..=250) {
        let number = number >> shift;
        let keys = format(100, SizeConfig::Fixed { bytes }).expect("valid");
        let expected = format!("list{number:0>width$}", width = bytes - 4);
        prop_assert_eq!(keys.text(KeyKind::List, number), expected);
    }

    #[test]
    fn a_template_writes_what_is_written_without(id in any::<u64>(), shift in 0..64, bytes in 20_usize..=40) {
        let id = id >> shift;
        let keys = format(100, SizeConfig::Fixed { bytes }).expect("valid");
        let push = |out: &mut Vec<u8>, key: &[u8]| out.extend([b"get 0 ", key, b" 0\r\n"].concat());
        let mut template = keys.template(push).expect("long keys of one size");
        template.with(9_999_999_999_999_999);
        if let Some(request) = template.with(id) {
            let expected = format!("get 0 {} 0\r\n", keys.text(KeyKind::User, id));
            prop_assert_eq!(String::from_utf8_lossy(request), expected);
        } else {
            prop_assert!(id >= 10_000_000_000_000_000);
        }
    }
}

#[test]
fn every_group_of_four_digits_is_right() {
    for number in (0..10_000).map(|number| number * 10_001) {
        assert_eq!(
            eight_digits(number).to_vec(),
            format!("{number:08}").into_bytes()
        );
    }
}
