use super::*;

fn written(prefixes: &Prefixes) -> String {
    let mut out = Vec::new();
    prefixes.write(&mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn requests_count_for_what_is_before_the_first_delimiter() {
    let prefixes = Prefixes::new(b'/', true);
    for (key, what) in [
        (&b"b/1/2"[..], Use::Hit),
        (b"b/1", Use::Miss),
        (b"a/", Use::Set),
        (b"a/1", Use::Delete),
        (b"none", Use::Hit),
        (b"/x", Use::Hit),
    ] {
        prefixes.count(key, what);
    }
    prefixes.switch(false);
    prefixes.count(b"b/1", Use::Hit);
    assert_eq!(
        written(&prefixes),
        "PREFIX  get 1 hit 1 set 0 del 0\r\n\
         PREFIX a get 0 hit 0 set 1 del 1\r\n\
         PREFIX b get 2 hit 1 set 0 del 0\r\n"
    );
    prefixes.reset();
    assert_eq!(written(&prefixes), "");
}

#[test]
fn prefixes_without_end_do_not_fill_the_memory() {
    let prefixes = Prefixes::new(b':', true);
    for number in 0..PREFIXES_MAX + 10 {
        prefixes.count(format!("{number}:x").as_bytes(), Use::Set);
    }
    prefixes.count(b"0:y", Use::Set);
    assert_eq!(prefixes.lock().len(), PREFIXES_MAX);
    assert!(written(&prefixes).contains("PREFIX 0 get 0 hit 0 set 2 del 0\r\n"));
}
