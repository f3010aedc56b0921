//! What a power strip answers.

use probe::snmp::{Message, Value, decode, encode};

/// Bytes are refused in words, or are a message that is within its limits, holds no more than there was, means the same
/// when it is written again, and is none when it is cut off or goes on.
pub fn run(data: &[u8]) {
    let message = match decode(data) {
        Ok(message) => message,
        Err(malformed) => {
            assert!(!malformed.to_string().is_empty());
            return;
        }
    };
    assert!(message.bindings.len() <= 64);
    assert!(kept(&message) <= data.len());
    for (name, _) in &message.bindings {
        assert_eq!(name.to_string().parse().as_ref(), Ok(name));
    }
    assert_eq!(decode(&encode(&message)).as_ref(), Ok(&message));
    assert!(decode(&data[..data.len() - 1]).is_err());
    assert!(decode(&[data, &[0]].concat()).is_err());
}

/// The bytes of text that are kept of it.
fn kept(message: &Message) -> usize {
    let texts = message.bindings.iter().map(|(_, value)| match value {
        Value::Text(text) => text.len(),
        _ => 0,
    });
    message.community.len() + texts.sum::<usize>()
}
