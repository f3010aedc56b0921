"""Which process holds squeezes, told so that another process, later, can say whether it still lives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.process_identity import boot_id, process_start_ticks


@dataclass(frozen=True)
class Owner:
    """A process for all time: number, start (ticks since boot, proc(5)), boot, and among which processes it counts."""

    pid: int
    start_ticks: int
    boot_id: str
    pid_namespace: str

    @classmethod
    def this_process(cls) -> Owner:
        """The process that asks."""
        pid = os.getpid()
        return cls(pid, process_start_ticks(pid) or 0, boot_id() or "", _pid_namespace())

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Owner:
        """What was kept. Raises KeyError or TypeError for anything else."""
        pid, ticks = content["pid"], content["start_ticks"]
        texts = content["boot_id"], content["pid_namespace"]
        if type(pid) is not int or type(ticks) is not int or not all(isinstance(text, str) for text in texts):
            raise TypeError("an owner that is not a process")
        return cls(pid, ticks, *texts)

    def is_of_this_boot(self) -> bool:
        """Whether what it changed in the kernel can still be there."""
        return self.boot_id == (boot_id() or "")

    def is_visible(self) -> bool:
        """Whether its number means here what it meant there; not in another container."""
        return self.pid_namespace == _pid_namespace()

    def is_alive(self) -> bool:
        """Whether it still runs; a process that was given the same number later is another one."""
        ticks = process_start_ticks(self.pid)
        return ticks is not None and ticks == self.start_ticks


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
