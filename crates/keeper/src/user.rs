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
            None if text.is_empty() => Err(Error::usage("--user needs a name")),
            None => Ok(Self::Name(text.to_owned())),
            Some((user, group)) => match (id(user), id(group)) {
                (Some(user), Some(group)) => Ok(Self::Ids(user, group)),
                _ => Err(Error::usage(format!(
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
    /// Finds the user. An error if there is none.
    pub(crate) fn find(name: &UserName) -> Result<Self, Error> {
        let (written, (user, group)) = match name {
            UserName::Ids(user, group) => (format!("{user}:{group}"), (*user, *group)),
            UserName::Name(name) => {
                let passwd =
                    fs::read_to_string(PASSWD).map_err(Error::cannot(format!("read {PASSWD}")))?;
                let ids = find_ids(&passwd, name).ok_or_else(|| {
                    Error::new(format!(
                        "there is no user '{name}' in {PASSWD} (an id is written UID:GID)"
                    ))
                })?;
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
        let refused = |source: rustix::io::Errno| {
            Error::new(format!(
                "cannot become user {}: {} (this takes root with CAP_SETUID and CAP_SETGID)",
                self.written,
                std::io::Error::from(source)
            ))
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
mod tests;
