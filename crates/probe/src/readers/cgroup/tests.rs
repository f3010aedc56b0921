use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};

const V2: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n";
const V1: &str = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
    cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
    cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\n";

fn host(tree: &Tree, group: &str) -> Host {
    Host {
        cgroups: vec![("system".to_owned(), group.to_owned())],
        ..tree.host()
    }
}

fn assert_values(tree: &Tree, group: &str) {
    let mut reader = build(&host(tree, group)).remove(0);
    let row = sample(&mut *reader);
    assert_eq!(
        row.get(r#"cgroup_cpu_seconds_total{cgroup="system",state="user"}"#),
        1.5
    );
    assert_eq!(
        row.get(r#"cgroup_cpu_seconds_total{cgroup="system",state="system"}"#),
        0.25
    );
    assert_eq!(
        row.get(r#"cgroup_throttled_seconds_total{cgroup="system"}"#),
        2.5
    );
    assert_eq!(
        row.get(r#"cgroup_throttled_periods_total{cgroup="system"}"#),
        4.0
    );
    assert_eq!(
        row.get(r#"cgroup_memory_bytes{cgroup="system",kind="current"}"#),
        1000.0
    );
    assert_eq!(
        row.get(r#"cgroup_memory_bytes{cgroup="system",kind="anonymous"}"#),
        100.0
    );
    assert_eq!(
        row.get(r#"cgroup_memory_bytes{cgroup="system",kind="cached"}"#),
        200.0
    );
    assert_eq!(
        row.get(r#"cgroup_memory_bytes{cgroup="system",kind="mapped"}"#),
        50.0
    );
    assert_eq!(
        row.get(r#"cgroup_memory_limit_bytes{cgroup="system"}"#),
        4096.0
    );
    assert_eq!(row.get(r#"cgroup_read_bytes_total{cgroup="system"}"#), 10.0);
    assert_eq!(
        row.get(r#"cgroup_write_bytes_total{cgroup="system"}"#),
        20.0
    );
    assert_eq!(row.get(r#"cgroup_refaults_total{cgroup="system"}"#), 7.0);
    let probe = reader.probes().remove(0);
    assert_eq!((probe.status, probe.reason.as_str()), (Status::Ok, ""));
}

fn v2(tree: &Tree, folder: &str) {
    tree.write(
        &format!("{folder}/cpu.stat"),
        "usage_usec 1750000\nuser_usec 1500000\nsystem_usec 250000\nnr_periods 9\nnr_throttled 4\nthrottled_usec 2500000\n",
    );
    tree.write(&format!("{folder}/memory.current"), "1000\n");
    tree.write(&format!("{folder}/memory.max"), "4096\n");
    tree.write(
        &format!("{folder}/memory.stat"),
        "anon 100\nfile 200\nfile_mapped 50\nworkingset_refault_anon 3\nworkingset_refault_file 4\n",
    );
    tree.write(
        &format!("{folder}/io.stat"),
        "254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n",
    );
}

#[test]
fn the_unified_hierarchy() {
    let tree = Tree::with("proc/self/mounts", V2);
    v2(&tree, "sys/fs/cgroup/system.slice/a.service");
    assert_values(&tree, "/system.slice/a.service");
    assert_values(&tree, "/sys/fs/cgroup/system.slice/a.service");
}

#[test]
fn one_hierarchy_a_controller() {
    let tree = Tree::with("proc/self/mounts", V1);
    let cpu = "sys/fs/cgroup/cpu,cpuacct/docker/a";
    tree.write(&format!("{cpu}/cpuacct.stat"), "user 150\nsystem 25\n");
    tree.write(
        &format!("{cpu}/cpu.stat"),
        "nr_periods 9\nnr_throttled 4\nthrottled_time 2500000000\n",
    );
    let memory = "sys/fs/cgroup/memory/docker/a";
    tree.write(&format!("{memory}/memory.usage_in_bytes"), "1000\n");
    tree.write(&format!("{memory}/memory.limit_in_bytes"), "4096\n");
    tree.write(
        &format!("{memory}/memory.stat"),
        "rss 1\ncache 1\ntotal_rss 100\ntotal_cache 200\ntotal_mapped_file 50\ntotal_workingset_refault_anon 3\n\
         total_workingset_refault_file 4\n",
    );
    tree.write(
        "sys/fs/cgroup/blkio/docker/a/blkio.throttle.io_service_bytes",
        "8:0 Read 10\n8:0 Write 20\nTotal 30\n",
    );
    assert_values(&tree, "/docker/a");
}

#[test]
fn what_a_group_does_not_give_is_named_and_not_zero() {
    let tree = Tree::with("proc/self/mounts", V2);
    tree.write(
        "sys/fs/cgroup/a/cpu.stat",
        "usage_usec 3\nuser_usec 1000000\nsystem_usec 0\n",
    );
    tree.write("sys/fs/cgroup/a/memory.max", "max\n");
    let mut reader = build(&host(&tree, "a")).remove(0);
    let row = sample(&mut *reader);
    assert!(
        row.get(r#"cgroup_throttled_seconds_total{cgroup="system"}"#)
            .is_nan()
    );
    assert!(
        row.get(r#"cgroup_memory_bytes{cgroup="system",kind="current"}"#)
            .is_nan()
    );
    assert!(
        row.get(r#"cgroup_memory_limit_bytes{cgroup="system"}"#)
            .is_nan()
    );
    assert_eq!(
        reader.probes()[0].reason,
        "not given for this group: memory, memory by kind, disk traffic; the group has no memory limit of its own"
    );
}

#[test]
fn a_group_that_is_not_there_is_missing() {
    let tree = Tree::with("proc/self/mounts", V2);
    tree.write("sys/fs/cgroup/cgroup.procs", "");
    let probe = build(&host(&tree, "/no/such")).remove(0).probes().remove(0);
    assert_eq!(
        (probe.status, probe.reason.as_str()),
        (Status::Missing, "there is no control group /no/such")
    );
    let probe = build(&host(&Tree::empty(), "/a"))
        .remove(0)
        .probes()
        .remove(0);
    assert_eq!(probe.reason, "no control group hierarchy is mounted");
}
