use super::*;

#[test]
fn numbers_survive_the_trip() {
    for number in [0, 9, 10, 4_294_967_296, 9_999_999_999_999_999_999] {
        let mut text = Vec::new();
        push(&mut text, number);
        assert_eq!(text, number.to_string().into_bytes());
        assert_eq!(parse(&text), Some(number));
    }
    let mut text = Vec::new();
    push(&mut text, u64::MAX);
    assert_eq!(text, u64::MAX.to_string().into_bytes());
}

#[test]
fn what_is_not_a_number_is_refused() {
    for text in ["", "-1", "+1", "1 ", "0x1", "99999999999999999999"] {
        assert_eq!(parse(text.as_bytes()), None, "{text:?}");
    }
}
