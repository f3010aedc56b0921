"""Control groups as both versions show them, recorded, for squeezes to be tried on; and journals of the dead."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from host_trees import write_tree
from rackscope.squeezes.base import Isolation, Subject
from rackscope.squeezes.journal import Journal

DISK = "254:0"
CEILINGS = {
    'disk_sequential_read_bytes_per_second{device="vda"}': 1000.0,
    'disk_sequential_write_bytes_per_second{device="vda"}': 500.0,
    'disk_random_read_operations_per_second{device="vda"}': 200.0,
}
_MEBI = 1 << 20
_VERSION_1 = {
    "cpu/rackscope/x/cpu.cfs_quota_us": "-1\n",
    "cpu/rackscope/x/cpu.cfs_period_us": "100000\n",
    "cpuset/rackscope/x/cpuset.cpus": "0-7\n",
    "cpuset/rackscope/x/cpuset.mems": "0\n",
    "memory/rackscope/x/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/rackscope/x/memory.usage_in_bytes": f"{300 * _MEBI}\n",
    "memory/rackscope/x/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    "memory/rackscope/x/memory.stat": f"cache {200 * _MEBI}\ntotal_rss {100 * _MEBI}\ntotal_shmem 0\n",
    **{
        f"blkio/rackscope/x/blkio.throttle.{direction}_{kind}_device": ""
        for direction in ("read", "write")
        for kind in ("bps", "iops")
    },
}
_VERSION_2 = {
    "rackscope/x/cpu.max": "max 100000\n",
    "rackscope/x/cpuset.cpus": "\n",
    "rackscope/x/memory.max": "max\n",
    "rackscope/x/memory.high": "max\n",
    "rackscope/x/memory.swap.max": "max\n",
    "rackscope/x/memory.current": f"{300 * _MEBI}\n",
    "rackscope/x/memory.stat": f"anon {100 * _MEBI}\nfile {200 * _MEBI}\nshmem 0\nkernel 0\nunevictable 0\n",
    "rackscope/x/io.max": "",
}


def write_groups(root: Path, version: Literal[1, 2]) -> Isolation:
    """A group ``rackscope/x`` below ``root/sys/fs/cgroup``, and a host of 1 GiB available with a disk ``vda``."""
    groups = root / "sys/fs/cgroup"
    write_tree(groups, _VERSION_1 if version == 1 else _VERSION_2)
    write_tree(
        root,
        {
            "proc/meminfo": f"MemAvailable: {1 << 20} kB\nSwapFree: 0 kB\n",
            "sys/devices/virtio/block/vda/dev": f"{DISK}\n",
            "sys/devices/virtio/block/vda/vda1/dev": "254:1\n",
            "sys/devices/virtio/block/vda/vda1/partition": "1\n",
        },
    )
    links = root / "sys/dev/block"
    links.mkdir(parents=True)
    for number, folder in ((DISK, "vda"), ("254:1", "vda/vda1")):
        (links / number).symlink_to(root / "sys/devices/virtio/block" / folder)
    names = ("cpu", "cpuset", "memory", "blkio") if version == 1 else ("cpu", "cpuset", "memory", "io")
    folders = {name: groups / (f"{name}/rackscope/x" if version == 1 else "rackscope/x") for name in names}
    return Isolation(folders, version)


def subject_of(isolation: Isolation, folder: Path | None = None, cores: tuple[int, ...] = (0, 1, 2, 3)) -> Subject:
    return Subject(isolation, cores, folder=folder, ceilings=CEILINGS)


def journal_in(folder: Path, *roots: Path) -> Journal:
    return Journal(folder / "journals", roots=roots or (folder,))


def bury(journal: Journal, **owner: object) -> Path:
    """Let the journal's file be as if its process had been killed: that of its number started at another time."""
    path = journal.path
    assert path is not None
    content = json.loads(path.read_text())
    content["owner"] |= owner or {"start_ticks": content["owner"]["start_ticks"] + 1}
    path.write_text(json.dumps(content))
    assert path.stat().st_uid == os.geteuid()
    return path
