//! Who the program runs as.

use std::fs;
use std::str::FromStr;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::error::Error;

const PASSWD: &str = "/etc/passwd";

/// A user as written on the command line: a name, or `UID:GID` for one that /etc/passwd does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UserName {
    Name(String),
    Ids(u32, u32),
}

impl FromStr for UserName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // `chown(2)` and `setresuid(2)` read the highest id as "leave it as it is".
        let id = |part: &str| part.parse().ok().filter(|&id| id != u32::MAX);
        match text.split_once(':') {
            None if text.is_empty() => Err(Error::Usage("--user needs a name".to_owned())),
            None => Ok(Self::Name(text.to_owned())),
            Some((user, group)) => match (id(user), id(group)) {
                (Some(user), Some(group)) => Ok(Self::Ids(user, group)),
                _ => Err(Error::Usage(format!(
                    "--user {text} is neither a name nor UID:GID"
                ))),
            },
        }
    }
}

/// A user that was found.
#[derive(Clone, Debug)]
pub(crate) struct User {
    written: String,
    user: Uid,
    group: Gid,
}

impl User {
    /// Finds the user. Raises [`Error::UnknownUser`].
    pub(crate) fn find(name: &UserName) -> Result<Self, Error> {
        let (written, (user, group)) = match name {
            UserName::Ids(user, group) => (format!("{user}:{group}"), (*user, *group)),
            UserName::Name(name) => {
                let passwd = fs::read_to_string(PASSWD)
                    .map_err(|source| Error::setup(format!("read {PASSWD}"), source))?;
                let ids =
                    find_ids(&passwd, name).ok_or_else(|| Error::UnknownUser(name.clone()))?;
                (name.clone(), ids)
            }
        };
        Ok(Self {
            written,
            user: Uid::from_raw(user),
            group: Gid::from_raw(group),
        })
    }

    /// Becomes this user for good: supplementary groups, then group, then user, each as real, effective and saved.
    ///
    /// These act on the calling thread, which is the whole process: the keeper has one thread.
    pub(crate) fn become_forever(&self) -> Result<(), Error> {
        let refused = |source: rustix::io::Errno| Error::BecomeUser {
            user: self.written.clone(),
            source: source.into(),
        };
        set_thread_groups(&[]).map_err(refused)?;
        set_thread_res_gid(self.group, self.group, self.group).map_err(refused)?;
        set_thread_res_uid(self.user, self.user, self.user).map_err(refused)
    }
}

/// User and group id of `name` in the text of /etc/passwd (`passwd(5)`).
fn find_ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some((user, group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_ids_and_skips_damaged_lines() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nodd\nnobody:x:65534:65533:nobody:/:/bin/false\nbad:x:a:b:::\n";
        assert_eq!(find_ids(passwd, "nobody"), Some((65534, 65533)));
        assert_eq!(find_ids(passwd, "root"), Some((0, 0)));
        assert_eq!(find_ids(passwd, "bad"), None);
        assert_eq!(find_ids(passwd, "odd"), None);
        assert_eq!(find_ids(passwd, "nob"), None);
    }

    #[test]
    fn reads_names_and_ids() {
        assert_eq!(
            "nobody".parse::<UserName>().unwrap(),
            UserName::Name("nobody".to_owned())
        );
        assert_eq!("12:34".parse::<UserName>().unwrap(), UserName::Ids(12, 34));
        for wrong in ["", ":", "1:", ":1", "-1:2", "4294967295:0"] {
            assert!(wrong.parse::<UserName>().is_err(), "{wrong}");
        }
    }
}
