use super::*;

#[test]
fn finds_ids_and_skips_damaged_lines() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nodd\nnobody:x:65534:65533:nobody:/:/bin/false\nbad:x:a:b:::\n";
    assert_eq!(find_ids(passwd, "nobody"), Some((65534, 65533)));
    assert_eq!(find_ids(passwd, "root"), Some((0, 0)));
    assert_eq!(find_ids(passwd, "bad"), None);
    assert_eq!(find_ids(passwd, "odd"), None);
    assert_eq!(find_ids(passwd, "nob"), None);
}

#[test]
fn reads_names_and_ids() {
    assert_eq!(
        "nobody".parse::<UserName>().unwrap(),
        UserName::Name("nobody".to_owned())
    );
    assert_eq!("12:34".parse::<UserName>().unwrap(), UserName::Ids(12, 34));
    for wrong in ["", ":", "1:", ":1", "-1:2", "4294967295:0"] {
        assert!(wrong.parse::<UserName>().is_err(), "{wrong}");
    }
}
