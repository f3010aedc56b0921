"""Which block device takes a limit for what is kept in a folder, and what that disk is called in ceilings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rackscope.mounts import read_mounts, whole_disks
from rackscope.squeezes.base import NotSqueezable
from rackscope.squeezes.held import read_text

_NEEDS = "a folder on a block device that is seen from here"


@dataclass(frozen=True)
class BlockDevice:
    """``number`` (``254:0``) of the whole device that the file system is on; ``disk`` is the one below it."""

    number: str
    name: str
    disk: str


def find_block_device(folder: Path, root: Path = Path("/"), number: str | None = None) -> BlockDevice | NotSqueezable:
    """The device of ``folder``, whose ``st_dev`` is ``number`` (by default looked up); ``root`` has /proc and /sys."""
    if number is None:
        try:
            device = folder.stat().st_dev
        except OSError as error:
            return NotSqueezable(f"the disk of {folder} cannot be told: {error.strerror}", _NEEDS)
        number = f"{os.major(device)}:{os.minor(device)}"
    block = _block_folder(root, number) or _block_folder_of_mount(root, number)
    if block is None:
        return NotSqueezable(f"{folder} is on no block device that is seen from here", _NEEDS)
    if (block / "partition").exists():
        # Limits are the whole disk's; the kernel takes none for a partition.
        block = block.parent
    whole = read_text(block / "dev")
    if whole is None:
        return NotSqueezable(f"the block device of {folder} has no number", _NEEDS)
    disks = whole_disks(block)
    # As calibration does when it names its ceilings, while there is one below.
    return BlockDevice(whole, block.name, disks[0] if len(disks) == 1 else block.name)


def _block_folder(root: Path, number: str) -> Path | None:
    try:
        return (root / "sys/dev/block" / number).resolve(strict=True)
    except (OSError, RuntimeError):
        return None


def _block_folder_of_mount(root: Path, number: str) -> Path | None:
    """Some file systems (btrfs) have numbers of their own; their mounts name the device (proc_pid_mountinfo(5))."""
    for mount in read_mounts(read_text(root / "proc/self/mountinfo") or ""):
        if mount.device == number and mount.source.startswith("/dev/"):
            actual = read_text(root / "sys/class/block" / Path(mount.source).resolve().name / "dev")
            if actual is not None:
                return _block_folder(root, actual)
    return None
