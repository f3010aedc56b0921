use super::*;
use proptest::prelude::*;

#[test]
fn limits() {
    assert_eq!(limit(b"1073741824\n"), Ok(1073741824.0));
    assert!(limit(b"max\n").unwrap().is_nan());
    // 4 KiB and 64 KiB pages.
    assert!(limit(b"9223372036854771712\n").unwrap().is_nan());
    assert!(limit(b"9223372036854710272\n").unwrap().is_nan());
    assert!(limit(b"lots\n").is_err());
}

#[test]
fn layers_are_not_counted_twice() {
    let layers = layers(
        "Character devices:\n  1 mem\n\nBlock devices:\n  7 loop\n  8 sd\n253 device-mapper\n",
    );
    assert_eq!(layers, [7, 253]);
    let io = b"8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=10 wbytes=20\n259:1 rbytes=1 wbytes=2\n";
    assert_eq!(io_stat(io, &layers), Ok([11.0, 22.0]));
    let service = b"8:0 Read 10\n8:0 Write 20\n8:0 Sync 5\n253:0 Read 10\nTotal 35\n";
    assert_eq!(io_service_bytes(service, &layers), Ok([10.0, 20.0]));
    assert!(io_service_bytes(b"Total 0\n", &layers).unwrap()[0].is_nan());
}

#[test]
fn keys_that_share_a_value_add_up() {
    let mut row = [f64::NAN; 2];
    keyed(
        b"a 1\nb 2\nc 3\n",
        &[(b"a", 0, 1.0), (b"c", 0, 1.0), (b"d", 1, 1.0)],
        &mut row,
    )
    .unwrap();
    assert_eq!(row[0], 4.0);
    assert!(row[1].is_nan());
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, text in "(8:0 ?(rbytes=|Read |)[0-9]{0,22} ?\n?){0,3}") {
        for text in [&bytes[..], text.as_bytes()] {
            let _ = keyed(text, &[(b"8:0", 0, 1.0)], &mut [0.0]);
            let _ = limit(text);
            let _ = io_stat(text, &vec![7]);
            let _ = io_service_bytes(text, &vec![7]);
            let _ = layers(&String::from_utf8_lossy(text));
        }
    }
}
