use super::*;
use proptest::prelude::*;

#[test]
fn the_vectors_of_rfc_4648() {
    for (bytes, text) in [
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        let mut out = Vec::new();
        encode(bytes.as_bytes(), &mut out);
        assert_eq!(out, text.as_bytes());
    }
    for malformed in ["", "Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Z!==", "Zm 9"] {
        assert_eq!(
            decode(malformed.as_bytes(), &mut [0; 16]),
            None,
            "{malformed}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(bytes in prop::collection::vec(any::<u8>(), 1..200)) {
        let mut text = Vec::new();
        encode(&bytes, &mut text);
        let mut room = [0; 200];
        prop_assert_eq!(decode(&text, &mut room), Some(bytes.len()));
        prop_assert_eq!(&room[..bytes.len()], &bytes[..]);
    }
}
