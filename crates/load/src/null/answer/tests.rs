use super::*;
use proptest::prelude::*;

const MEMCACHED: &[(&str, &str)] = &[
    ("get a\r\n", "END\r\n"),
    ("get a b c\r\n", "END\r\n"),
    ("set a 0 0 5\r\nget \n\r\n", "STORED\r\n"),
    ("set a 0 0 0\r\n\r\n", "STORED\r\n"),
    ("mg a v\r\n", "EN\r\n"),
    ("mg a v k q\r\n", ""),
    ("mn\r\n", "MN\r\n"),
    ("ms a 2\r\nhi\r\n", "HD\r\n"),
];
const REDIS: &[(&str, &str)] = &[
    ("*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "$-1\r\n"),
    (
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n\r\n\r\n\r\n",
        "+OK\r\n",
    ),
    (
        "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*2\r\n$-1\r\n$-1\r\n",
    ),
    ("*3\r\n$5\r\nLPUSH\r\n$1\r\na\r\n$1\r\nb\r\n", ":1\r\n"),
    (
        "*4\r\n$6\r\nZRANGE\r\n$1\r\na\r\n$1\r\n0\r\n$1\r\n0\r\n",
        "*0\r\n",
    ),
    ("*1\r\n$5\r\nHELLO\r\n", "-ERR unknown command\r\n"),
];

proptest! {
    #[test]
    fn every_request_is_answered_once_however_it_is_cut(
        redis in any::<bool>(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        chunk in 1_usize..50,
    ) {
        let (protocol, table) = if redis { (Protocol::Resp, REDIS) } else { (Protocol::MemcachedText, MEMCACHED) };
        let pairs = picks.iter().map(|pick| pick.get(table));
        let (requests, expected): (String, String) = pairs.copied().unzip();
        let mut answerer = Answerer::new(protocol);
        let (mut carry, mut out) = (Vec::new(), Vec::new());
        for piece in requests.as_bytes().chunks(chunk) {
            carry.extend_from_slice(piece);
            let used = answerer.answer(&carry, &mut out).expect("requests");
            carry.drain(..used);
        }
        prop_assert!(carry.is_empty());
        prop_assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn random_bytes_never_panic(redis in any::<bool>(), start in 0_usize..6, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let (protocol, table) = if redis { (Protocol::Resp, REDIS) } else { (Protocol::MemcachedText, MEMCACHED) };
        let half = table[start].0.len() / 2;
        let input = [&table[start].0.as_bytes()[..half], &bytes].concat();
        if let Ok(used) = Answerer::new(protocol).answer(&input, &mut Vec::new()) {
            prop_assert!(used <= input.len());
        }
    }
}
