//! Where control groups are mounted, and which folders a group has: one in the unified hierarchy (v2), or one for each
//! controller (v1), or both where a host has both (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cgroups.rst).

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::Host;

/// Mount points as the host sees them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Mounts {
    /// The unified hierarchy.
    pub unified: Option<String>,
    /// Controller and mount point of each v1 hierarchy.
    pub controllers: Vec<(String, String)>,
}

impl Mounts {
    /// Reads `/proc/self/mounts`; a recorded tree may have `/proc/mounts` only.
    pub(super) fn of(host: &Host) -> Self {
        let table = fs::read_to_string(host.path("proc/self/mounts"))
            .or_else(|_| fs::read_to_string(host.path("proc/mounts")))
            .unwrap_or_default();
        Self::parse(&table)
    }

    fn parse(table: &str) -> Self {
        let mut mounts = Self::default();
        for line in table.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, point, kind, options, ..] = fields[..] else {
                continue;
            };
            let point = unescape(point);
            match kind {
                "cgroup2" => mounts.unified = mounts.unified.or(Some(point)),
                "cgroup" => {
                    for option in options
                        .split(',')
                        .filter(|option| CONTROLLERS.contains(option))
                    {
                        mounts.controllers.push((option.to_owned(), point.clone()));
                    }
                }
                _ => {}
            }
        }
        mounts
    }

    /// The part of `group` below the hierarchies: a group may be given with a mount point in front.
    fn below<'a>(&self, group: &'a str) -> &'a str {
        let points = self
            .controllers
            .iter()
            .map(|(_, point)| point)
            .chain(&self.unified);
        let longest = points
            .filter(|point| {
                group
                    .strip_prefix(point.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
            .max_by_key(|point| point.len());
        longest
            .map_or(group, |point| &group[point.len()..])
            .trim_matches('/')
    }

    /// The folders of a group.
    pub(super) fn folders(&self, host: &Host, group: &str) -> Folders {
        let below = self.below(group);
        let folder = |point: &str| {
            let folder = host.path(point).join(below);
            folder.is_dir().then_some(folder)
        };
        let controller = |name: &str| {
            self.controllers
                .iter()
                .filter(|(known, _)| known == name)
                .find_map(|(_, point)| folder(point))
        };
        Folders {
            unified: self.unified.as_deref().and_then(folder),
            cpu: controller("cpu"),
            cpuacct: controller("cpuacct"),
            memory: controller("memory"),
            blkio: controller("blkio"),
        }
    }
}

const CONTROLLERS: [&str; 4] = ["cpu", "cpuacct", "memory", "blkio"];

/// The folders of one group; those that there are.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Folders {
    pub unified: Option<PathBuf>,
    pub cpu: Option<PathBuf>,
    pub cpuacct: Option<PathBuf>,
    pub memory: Option<PathBuf>,
    pub blkio: Option<PathBuf>,
}

impl Folders {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A file in the first of the folders that has it.
pub(super) fn first_file(candidates: &[(&Option<PathBuf>, &str)]) -> Option<(usize, PathBuf)> {
    candidates
        .iter()
        .enumerate()
        .find_map(|(position, (folder, name))| {
            let path = folder.as_deref().map(|folder: &Path| folder.join(name))?;
            path.is_file().then_some((position, path))
        })
}

/// Blanks of mount points are written as octal numbers (fstab(5)).
fn unescape(point: &str) -> String {
    point
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests;
