use super::*;
use Register::{R1, R2, R3, R5};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Label {
    Here,
    There,
    Nowhere,
}

fn bytes(line: Line<Label>) -> [u8; 8] {
    let (Line::Plain(it) | Line::Jump(it, _)) = line else {
        panic!("not an instruction");
    };
    let (offset, immediate) = (it.offset.to_le_bytes(), it.immediate.to_le_bytes());
    let [a, b, c, d] = immediate;
    [it.code, it.registers, offset[0], offset[1], a, b, c, d]
}

/// By the tables of RFC 9669; that the kernel reads them the same way is for the program's own tests.
#[test]
#[cfg(target_endian = "little")]
fn instructions_are_encoded_as_the_standard_says() {
    for (line, expected) in [
        (copy(R1, R2), [0xbf, 0x21, 0, 0, 0, 0, 0, 0]),
        (set(R3, 2), [0xb4, 0x03, 0, 0, 2, 0, 0, 0]),
        (add(R1, 42), [0x07, 0x01, 0, 0, 42, 0, 0, 0]),
        (and(R5, 0xf0), [0x54, 0x05, 0, 0, 0xf0, 0, 0, 0]),
        (half_from_network(R5), [0xdc, 0x05, 0, 0, 16, 0, 0, 0]),
        (
            load(Size::Byte, R5, R2, 14),
            [0x71, 0x25, 14, 0, 0, 0, 0, 0],
        ),
        (
            load(Size::Half, R5, R2, 12),
            [0x69, 0x25, 12, 0, 0, 0, 0, 0],
        ),
        (
            load(Size::Word, R2, R1, -4),
            [0x61, 0x12, 0xfc, 0xff, 0, 0, 0, 0],
        ),
        (load_map(R1, 5)[0], [0x18, 0x11, 0, 0, 5, 0, 0, 0]),
        (load_map(R1, 5)[1], [0; 8]),
        (jump(Label::Here), [0x05, 0, 0, 0, 0, 0, 0, 0]),
        (
            jump_if(R5, If::Equal, 8, Label::Here),
            [0x16, 0x05, 0, 0, 8, 0, 0, 0],
        ),
        (
            jump_if(R5, If::Different, 17, Label::Here),
            [0x56, 0x05, 0, 0, 17, 0, 0, 0],
        ),
        (
            jump_if(R5, If::Above, 17, Label::Here),
            [0x26, 0x05, 0, 0, 17, 0, 0, 0],
        ),
        (
            jump_if(R5, If::Below, 17, Label::Here),
            [0xa6, 0x05, 0, 0, 17, 0, 0, 0],
        ),
        (
            jump_if(R5, If::AnyBit, 3, Label::Here),
            [0x46, 0x05, 0, 0, 3, 0, 0, 0],
        ),
        (
            jump_if_beyond(R5, R3, Label::Here),
            [0x2d, 0x35, 0, 0, 0, 0, 0, 0],
        ),
        (call(51), [0x85, 0, 0, 0, 51, 0, 0, 0]),
        (exit(), [0x95, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        assert_eq!(bytes(line), expected, "{line:?}");
    }
}

#[test]
fn jumps_are_counted_from_behind_themselves_in_both_directions() {
    let assembled = assemble(&[
        Line::Label(Label::Here),
        jump(Label::There),
        set(R0, 1),
        jump(Label::Here),
        Line::Label(Label::There),
        exit(),
    ])
    .expect("labels are there");
    let offsets: Vec<i16> = assembled.iter().map(|it| it.offset).collect();
    assert_eq!(offsets, [2, 0, -3, 0]);
}

#[test]
fn a_label_that_is_missing_or_too_far_away_is_refused() {
    assert_eq!(assemble(&[jump(Label::Nowhere), exit()]), None);
    let mut lines = vec![jump(Label::There)];
    lines.resize(1 + 32_767, set(R0, 1));
    lines.extend([Line::Label(Label::There), exit()]);
    assert!(assemble(&lines).is_some());
    lines.insert(1, set(R0, 1));
    assert_eq!(assemble(&lines), None);
}
