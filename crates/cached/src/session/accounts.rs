//! Who may use the server: memcached's `-Y` file.

use std::path::{Path, PathBuf};

/// A file of passwords is short; anything longer is not one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a file of accounts cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the file of accounts {path} {1}", path = .0.display())]
pub struct Error(PathBuf, String);

/// Names and passwords.
#[derive(Debug)]
pub struct Accounts(Vec<(Vec<u8>, Vec<u8>)>);

impl Accounts {
    /// Read a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |what| Error(path.to_owned(), what);
        let unread = |error| failed(format!("cannot be read: {error}"));
        let wrong = |what| failed(format!("{what}; it has lines of user:password"));
        if std::fs::metadata(path).map_err(unread)?.len() > FILE_BYTES_MAX {
            return Err(wrong(format!("has more than {FILE_BYTES_MAX} bytes")));
        }
        Self::parse(&std::fs::read(path).map_err(unread)?).map_err(wrong)
    }

    /// Read what a file holds.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut accounts = Vec::new();
        for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            match line.iter().position(|&byte| byte == b':') {
                Some(at) if at > 0 => accounts.push((line[..at].to_vec(), line[at + 1..].to_vec())),
                _ => return Err(format!("has no user before a colon in line {number}")),
            }
        }
        if accounts.is_empty() {
            return Err("names no user".to_owned());
        }
        Ok(Self(accounts))
    }

    /// Whether `given`, as `user password`, is one of them.
    #[must_use]
    pub fn admit(&self, given: &[u8]) -> bool {
        let Some(at) = given.iter().position(|&byte| byte == b' ') else {
            return false;
        };
        let (user, password) = (&given[..at], &given[at + 1..]);
        // All are compared, so that the time it takes does not show which was nearly right.
        self.0.iter().fold(false, |found, (known, secret)| {
            found | (constant_time_eq(known, user) & constant_time_eq(secret, password))
        })
    }
}

/// Whether they are the same, in a time that depends on their lengths only.
fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests;
