use super::*;
use crate::memcached::datagram::Format;

fn answers(lengths: &[usize]) -> Datagrams {
    let mut answers = Datagrams::default();
    for (number, &length) in (0..).zip(lengths) {
        let out = answers.begin(Frame::single(number, Format::Text));
        out.extend_from_slice(&vec![number as u8; length - FRAME_BYTES]);
        answers.end();
    }
    answers
}

#[test]
fn datagrams_of_one_length_go_together() {
    let answers = answers(&[20, 20, 20, 12, 20, 30, 20, 30, 30]);
    let runs = |datagrams, bytes| -> Vec<(usize, usize, usize)> {
        let runs = answers.runs(datagrams, bytes);
        runs.map(|(bytes, each, count)| (bytes.len(), each, count))
            .collect()
    };
    // A shorter one ends a run.
    assert_eq!(
        runs(64, 1000),
        [(72, 20, 4), (20, 20, 1), (50, 30, 2), (60, 30, 2)]
    );
    assert_eq!(runs(2, 1000).len(), 5);
    assert_eq!(runs(64, 45)[0], (40, 20, 2));
    // Longer than a packet of Ethernet.
    let long = self::answers(&[2000, 2000, 2000]);
    assert_eq!(long.runs(64, 60_000).count(), 3);
    let all: usize = answers.runs(3, 50).map(|(bytes, ..)| bytes.len()).sum();
    assert_eq!(all, answers.bytes.len());
}

#[test]
fn gathered_datagrams_are_the_same_in_few_runs() {
    let mut answers = answers(&[20, 30, 20, 12, 20, 30, 20, 30, 12]);
    let shown = |answers: &Datagrams| -> Vec<Vec<u8>> {
        answers
            .runs(1, 1000)
            .map(|(bytes, ..)| bytes.to_vec())
            .collect()
    };
    let mut before = shown(&answers);
    answers.gather();
    let after = shown(&answers);
    before.sort_by_key(|datagram| Reverse(datagram.len()));
    assert_eq!(before, after);
    assert_eq!(answers.runs(64, 1000).count(), 3);
    answers.gather();
    assert_eq!(shown(&answers), after);
}

#[test]
fn pieces_of_an_answer_stay_in_order() {
    let mut answers = answers(&[20, 20, 900, 20, 30]);
    answers.number(1);
    let pieces = [20, 20, 900, 20, 30].map(|length: usize| length);
    answers.gather();
    let lengths: Vec<usize> = answers.runs(1, 1000).map(|(_, each, _)| each).collect();
    assert_eq!(lengths, pieces);
}

#[test]
fn a_long_answer_is_split_and_numbered() {
    let mut answers = Datagrams::default();
    let body: Vec<u8> = (0..3000).map(|at| at as u8).collect();
    answers.push_split(Frame::single(7, Format::Text), &body);
    let mut joined = Vec::new();
    for (sequence, (bytes, ..)) in (0..).zip(answers.runs(1, 10_000)) {
        let (frame, rest) = Frame::parse(bytes).expect("a frame");
        assert_eq!(
            (frame.request, frame.sequence, frame.datagrams),
            (7, sequence, 3)
        );
        assert!(bytes.len() <= DATAGRAM_BYTES_MAX);
        joined.extend_from_slice(rest);
    }
    assert_eq!(joined, body);
    answers.clear();
    answers.push_split(Frame::single(7, Format::Text), b"");
    assert_eq!(answers.len(), 0);
}

#[test]
fn what_was_begun_and_not_ended_is_not_sent() {
    let mut answers = answers(&[20]);
    answers.begin(Frame::single(1, Format::Text)).push(1);
    assert_eq!(answers.body(), [1]);
    answers.begin(Frame::single(2, Format::Batch)).push(2);
    assert_eq!(answers.body(), [2]);
    answers.end();
    answers.number(1);
    assert_eq!(
        answers
            .runs(9, 99)
            .map(|(bytes, ..)| bytes.len())
            .sum::<usize>(),
        29
    );
}
