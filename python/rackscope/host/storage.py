"""Disks, and which of them holds a folder."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rackscope.host.tree import Tree
from rackscope.mounts import Mount, read_mounts, whole_disks

#: What is no disk of its own: memory, files, optical and floppy drives. (The sampler leaves out the same.)
_NOT_DISKS = ("loop", "ram", "zram", "sr", "fd")
#: Layers over other disks: what they do is counted there.
_LAYERS = ("dm-", "md")
_SECTOR_BYTES = 512
#: File systems that hold their files in memory.
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


@dataclass(frozen=True)
class Disk:
    """A disk as a whole. ``scheduler`` is the one in use."""

    name: str
    model: str | None
    vendor: str | None
    size_bytes: int | None
    rotational: bool | None
    scheduler: str | None
    queue_requests: int | None
    write_cache: str | None
    logical_block_bytes: int | None


@dataclass(frozen=True)
class FolderStorage:
    """What a folder is kept on. ``disks`` are the whole disks below it; empty with the ``reason`` when unknown."""

    folder: str
    file_system: str | None
    source: str | None
    mount_point: str | None
    options: str | None
    disks: tuple[str, ...]
    reason: str | None
    in_memory: bool


def read_disks(tree: Tree) -> tuple[Disk, ...]:
    """Whole disks of ``/sys/block``, without layers over them."""
    return tuple(
        _read_disk(tree, name) for name in tree.names("sys/block") if not name.startswith((*_NOT_DISKS, *_LAYERS))
    )


def _read_disk(tree: Tree, name: str) -> Disk:
    folder = f"sys/block/{name}"
    sectors = tree.integer(f"{folder}/size")
    rotational = tree.integer(f"{folder}/queue/rotational")
    chosen = re.search(r"\[([^]]+)]", tree.text(f"{folder}/queue/scheduler") or "")
    return Disk(
        name=name,
        model=tree.text(f"{folder}/device/model"),
        vendor=tree.text(f"{folder}/device/vendor"),
        size_bytes=None if sectors is None else sectors * _SECTOR_BYTES,
        rotational=None if rotational is None else rotational != 0,
        scheduler=chosen[1] if chosen else None,
        queue_requests=tree.integer(f"{folder}/queue/nr_requests"),
        write_cache=tree.text(f"{folder}/queue/write_cache"),
        logical_block_bytes=tree.integer(f"{folder}/queue/logical_block_size"),
    )


def read_folder_storage(tree: Tree, folder: Path, device: int | None = None) -> FolderStorage:
    """Find the mount that holds ``folder`` (``device`` is its ``st_dev``, by default looked up) and the disks below."""
    if tree.root == Path("/"):
        folder = folder.resolve()
        if device is None:
            with suppress(OSError):
                device = folder.stat().st_dev
    mount = find_mount(tree.text("proc/self/mountinfo") or "", folder)
    numbers = None if device is None else f"{os.major(device)}:{os.minor(device)}"
    if mount is None:
        return FolderStorage(str(folder), None, None, None, None, (), "its mount was not found", in_memory=False)
    disks, reason = _disks_below(tree, mount, numbers)
    return FolderStorage(
        folder=str(folder),
        file_system=mount.file_system,
        source=mount.source,
        mount_point=mount.mount_point,
        options=mount.options,
        disks=disks,
        reason=reason,
        in_memory=mount.file_system in _IN_MEMORY,
    )


def find_mount(mountinfo: str, folder: Path) -> Mount | None:
    """The mount that ``folder`` (absolute) is on: the longest mount point above it; of equals, the last mounted."""
    above = [mount for mount in reversed(read_mounts(mountinfo)) if folder.is_relative_to(mount.mount_point)]
    return max(above, key=lambda mount: len(mount.mount_point), default=None)


def _disks_below(tree: Tree, mount: Mount, numbers: str | None) -> tuple[tuple[str, ...], str | None]:
    """Whole disks below a mount. Some file systems (btrfs, overlay) give a device number that is no block device."""
    if mount.file_system in _IN_MEMORY:
        return (), f"{mount.mount_point} is held in memory ({mount.file_system})"
    candidates = [numbers, mount.device]
    if mount.source.startswith("/dev/"):
        candidates.append(tree.text(f"sys/class/block/{Path(mount.source).name}/dev"))
    for candidate in candidates:
        block = tree.resolve(f"sys/dev/block/{candidate}") if candidate else None
        if block is not None:
            return whole_disks(block), None
    return (), f"{mount.mount_point} ({mount.file_system}) is on no block device that is seen from here"
