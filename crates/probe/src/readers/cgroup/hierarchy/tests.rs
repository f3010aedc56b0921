use super::*;
use crate::readers::tests::Tree;

const HYBRID: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
    cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
    cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
    cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0\n\
    cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

#[test]
fn both_versions_are_found() {
    let mounts = Mounts::parse(HYBRID);
    assert_eq!(mounts.unified.as_deref(), Some("/sys/fs/cgroup/unified"));
    let names: Vec<&str> = mounts
        .controllers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["cpu", "cpuacct", "memory"]);
}

#[test]
fn a_group_is_named_below_a_hierarchy_or_by_its_folder() {
    let mounts = Mounts::parse(HYBRID);
    for group in [
        "/a/b",
        "a/b",
        "/sys/fs/cgroup/unified/a/b",
        "/sys/fs/cgroup/memory/a/b/",
    ] {
        assert_eq!(mounts.below(group), "a/b");
    }
    assert_eq!(mounts.below("/sys/fs/cgroup/memory"), "");
    assert_eq!(mounts.below("/"), "");
    assert_eq!(
        mounts.below("/sys/fs/cgroup/memoryhog"),
        "sys/fs/cgroup/memoryhog"
    );
}

#[test]
fn a_group_may_be_in_some_hierarchies_only() {
    let tree = Tree::with("proc/self/mounts", HYBRID);
    tree.write("sys/fs/cgroup/memory/a/memory.stat", "");
    let host = tree.host();
    let folders = Mounts::of(&host).folders(&host, "/a");
    assert_eq!(
        folders.memory,
        Some(tree.root().join("sys/fs/cgroup/memory/a"))
    );
    assert_eq!(folders.unified, None);
    assert!(Mounts::of(&host).folders(&host, "/b").is_empty());
}

#[test]
fn blanks_in_mount_points() {
    assert_eq!(unescape("/a\\040b\\134"), "/a b\\");
}
