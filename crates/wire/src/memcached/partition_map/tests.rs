use super::owner;

#[test]
fn any_client_can_tell_the_owner() {
    // zlib.crc32(b"123456789") is 0xcbf43926 in every language.
    assert_eq!(owner(b"123456789", 256), 0xcb);
    assert_eq!(owner(b"", 7), 0);
    assert_eq!(owner(b"anything", 1), 0);
}

#[test]
fn workers_get_equal_shares() {
    let mut keys = [0_u32; 3];
    for number in 0..30_000 {
        keys[owner(format!("key:{number:016}").as_bytes(), 3)] += 1;
    }
    assert!(
        keys.iter().all(|&keys| keys.abs_diff(10_000) < 500),
        "{keys:?}"
    );
}
