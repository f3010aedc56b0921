use super::*;
use crate::team::usable_cores;

const BYTES: usize = 64 * GRANULE_BYTES;

#[test]
fn a_read_pass_sums_what_is_there() {
    let mut stream = Stream::new(Kind::Read, BYTES).unwrap();
    for (index, word) in stream.buffer.iter_mut().enumerate() {
        *word = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    let expected = stream
        .buffer
        .iter()
        .fold(0, |sum: u64, word| sum.wrapping_add(*word));
    assert_eq!(stream.pass(), BYTES as u64);
    assert_eq!(stream.sum, expected);
}

#[test]
fn a_write_pass_overwrites_every_word() {
    let mut stream = Stream::new(Kind::Write, BYTES).unwrap();
    for pass in 2..5 {
        assert_eq!(stream.pass(), BYTES as u64);
        assert!(stream.buffer.iter().all(|&word| word == pass));
    }
}

#[test]
fn a_copy_pass_copies_the_first_half_and_counts_both() {
    let mut stream = Stream::new(Kind::Copy, BYTES).unwrap();
    let middle = stream.buffer.len() / 2;
    for (index, word) in stream.buffer[..middle].iter_mut().enumerate() {
        *word = index as u64;
    }
    assert_eq!(stream.pass(), BYTES as u64);
    let (source, destination) = stream.buffer.split_at(middle);
    assert_eq!(source, destination);
    assert!(
        source
            .iter()
            .enumerate()
            .all(|(index, &word)| word == index as u64)
    );
}

#[test]
fn bytes_are_counted_over_threads_and_passes() {
    let cores: Vec<usize> = usable_cores().unwrap().into_iter().take(2).collect();
    for kind in [Kind::Read, Kind::Write, Kind::Copy] {
        let result = measure_bandwidth(kind, &cores, BYTES + 1, Duration::ZERO).unwrap();
        let each = (BYTES * cores.len()) as u64;
        assert_eq!(result.buffer_bytes, each);
        assert_eq!(
            result.rounds.amount(),
            each * result.rounds.rounds.len() as u64
        );
        assert_eq!(result.stores.is_some(), kind != Kind::Read);
    }
}

#[test]
fn too_small_a_buffer_and_an_unknown_kind_are_refused() {
    let refused = measure_bandwidth(Kind::Read, &[0], GRANULE_BYTES - 1, Duration::ZERO);
    assert!(matches!(refused, Err(Error::Argument(_))));
    assert!(
        "scale"
            .parse::<Kind>()
            .unwrap_err()
            .to_string()
            .contains("'scale'")
    );
}
