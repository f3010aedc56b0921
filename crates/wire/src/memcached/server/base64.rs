//! Base64 (RFC 4648, section 4) for binary keys of meta commands, into room that is there already.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Append the encoding of `bytes`.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            out.push(if place <= group.len() {
                ALPHABET[(word >> (18 - 6 * place)) as usize & 63]
            } else {
                b'='
            });
        }
    }
}

/// Decode `text` into `room` and return the length; `None` where it is empty, malformed, or too long for `room`.
pub(super) fn decode(text: &[u8], room: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|&&byte| byte == b'=')
        .count();
    let digits = &text[..text.len() - padding];
    for group in digits.chunks(4) {
        let mut word = 0_u32;
        for &digit in group {
            word = word << 6 | value(digit)?;
        }
        word <<= 6 * (4 - group.len());
        for place in 0..group.len() - 1 {
            *room.get_mut(length)? = (word >> (16 - 8 * place)) as u8;
            length += 1;
        }
    }
    Some(length)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests;
