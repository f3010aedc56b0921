use super::*;

#[test]
fn an_account_is_admitted_whole_or_not_at_all() {
    let accounts = Accounts::parse(b"ann:secret\nbob:with space:and colon\r\n\n").expect("two");
    for given in ["ann secret", "bob with space:and colon"] {
        assert!(accounts.admit(given.as_bytes()), "{given}");
    }
    for given in [
        "",
        "ann",
        "ann ",
        "ann secre",
        "ann secret ",
        "bob secret",
        " secret",
    ] {
        assert!(!accounts.admit(given.as_bytes()), "{given}");
    }
}

#[test]
fn a_file_that_is_not_one_is_named_with_its_mistake() {
    for (text, part) in [
        ("", "no user"),
        ("\n", "no user"),
        ("ann:x\nbob", "line 2"),
        (":x", "line 1"),
    ] {
        let mistake = Accounts::parse(text.as_bytes()).expect_err(text);
        assert!(mistake.contains(part), "{text:?}: {mistake}");
    }
    let missing = Accounts::read(Path::new("/no/such/file")).expect_err("missing");
    assert!(missing.to_string().contains("/no/such/file"));
}
