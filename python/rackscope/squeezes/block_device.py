"""Which block device takes a limit for what is kept in a folder, and what that disk is called in ceilings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rackscope.squeezes.base import NotSqueezable
from rackscope.squeezes.held import read_text

_NEEDS = "a folder on a block device that is seen from here"
_MOST_LAYERS = 16


@dataclass(frozen=True)
class BlockDevice:
    """``number`` (``254:0``) of the whole device that the file system is on; ``disk`` is the one below it."""

    number: str
    name: str
    disk: str


def find_block_device(folder: Path, root: Path = Path("/"), number: str | None = None) -> BlockDevice | NotSqueezable:
    """The device of ``folder``, whose ``st_dev`` is ``number`` (by default looked up).

    ``root`` is where /proc and /sys are looked for.
    """
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
    return BlockDevice(whole, block.name, _lowest(block))


def _block_folder(root: Path, number: str) -> Path | None:
    try:
        return (root / "sys/dev/block" / number).resolve(strict=True)
    except (OSError, RuntimeError):
        return None


def _block_folder_of_mount(root: Path, number: str) -> Path | None:
    """Some file systems (btrfs) have numbers of their own; their mounts name the device (proc_pid_mountinfo(5))."""
    for line in (read_text(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if len(left) > 2 and left[2] == number and len(right) > 1 and right[1].startswith("/dev/"):
            name = Path(right[1]).resolve().name
            actual = read_text(root / "sys/class/block" / name / "dev")
            if actual is not None:
                return _block_folder(root, actual)
    return None


def _lowest(block: Path) -> str:
    """Follow layers (dm, md) down to the disk, as calibration does when it names its ceilings, while there is one."""
    for _ in range(_MOST_LAYERS):
        try:
            below = list((block / "slaves").iterdir())
        except OSError:
            break
        if len(below) != 1:
            break
        block = below[0].resolve()
        if (block / "partition").exists():
            block = block.parent
    return block.name
