//! What clients may be told: under each key, one of the values that a client stored there.

use std::collections::HashMap;

/// More possibilities than these are not told apart any more.
const CANDIDATES_MAX: usize = 8;

/// The values that may be there. Anything may be missing, for the store may drop it at any time.
#[derive(Default)]
pub(crate) struct Values(HashMap<Vec<u8>, Candidates>);

#[derive(Clone)]
enum Candidates {
    These(Vec<Vec<u8>>),
    Any,
}

impl Values {
    /// A client was told this value.
    pub fn hit(&mut self, key: &[u8], value: &[u8]) {
        match self.0.get(key) {
            None => panic!(
                "{} holds {}, and nothing was stored there",
                key.escape_ascii(),
                value.escape_ascii()
            ),
            Some(Candidates::These(known)) => assert!(
                known.iter().any(|known| known == value),
                "{} holds {}, which was not stored there",
                key.escape_ascii(),
                value.escape_ascii()
            ),
            Some(Candidates::Any) => {}
        }
        self.stored(key, value);
    }

    /// This value is there, if anything is.
    pub fn stored(&mut self, key: &[u8], value: &[u8]) {
        let known = Candidates::These(vec![value.to_vec()]);
        self.0.insert(key.to_vec(), known);
    }

    /// This value may be there instead.
    pub fn maybe_stored(&mut self, key: &[u8], value: &[u8]) {
        let known = self.0.entry(key.to_vec());
        let known = known.or_insert_with(|| Candidates::These(Vec::new()));
        if let Candidates::These(values) = known {
            values.push(value.to_vec());
            if values.len() > CANDIDATES_MAX {
                *known = Candidates::Any;
            }
        }
    }

    /// Whatever was there became something else.
    pub fn changed(&mut self, key: &[u8], change: impl Fn(&[u8]) -> Vec<u8>) {
        if let Some(Candidates::These(values)) = self.0.get_mut(key) {
            for value in values {
                *value = change(value);
            }
        }
    }

    /// It may have become something else.
    pub fn maybe_changed(&mut self, key: &[u8], change: impl Fn(&[u8]) -> Vec<u8>) {
        if let Some(Candidates::These(values)) = self.0.get(key).cloned() {
            for value in values {
                self.maybe_stored(key, &change(&value));
            }
        }
    }

    pub fn removed(&mut self, key: &[u8]) {
        self.0.remove(key);
    }

    pub fn flushed(&mut self) {
        self.0.clear();
    }
}

/// The value of a number that was counted to `number` where it was `before`: as long, padded with spaces, or longer.
pub(crate) fn counted(before: &[u8], number: u64) -> Vec<u8> {
    let mut value = number.to_string().into_bytes();
    value.resize(value.len().max(before.len()), b' ');
    value
}
