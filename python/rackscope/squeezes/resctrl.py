"""Memory bandwidth and last-level cache by the processor's regulators (Documentation/arch/x86/resctrl.rst)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rackscope.errors import SqueezeError
from rackscope.squeezes.affinity import read_process_tree
from rackscope.squeezes.held import Changes, read_integer, read_text
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.removal import write_control
from rackscope.squeezes.undo import RemoveResctrlGroup

ROOT = Path("/sys/fs/resctrl")
#: Threads that start while others are being moved are found by looking again, at most this often.
_MOVES = 5
_FULL_PERCENT = 100


@dataclass(frozen=True)
class Regulator:
    """``MB`` or ``L3`` of this host: what each domain has when nothing is taken, in percent or as a mask of ways."""

    root: Path
    name: Literal["MB", "L3"]
    domains: Mapping[str, int]
    #: Least of it, and the steps it is given in: percent, or ways.
    least: int
    step: int

    def floor(self) -> float:
        """The smallest fraction that can be left."""
        return self.least / (_FULL_PERCENT if self.name == "MB" else min(map(int.bit_count, self.domains.values())))

    def schemata(self, fraction: float) -> str:
        """The line that leaves ``fraction`` in every domain, rounded to what the hardware can."""
        if self.name == "MB":
            percent = max(round(fraction * _FULL_PERCENT / self.step) * self.step, self.least)
            parts = [f"{domain}={percent}" for domain in self.domains]
        else:
            parts = [f"{domain}={_low_ways(mask, fraction, self.least):x}" for domain, mask in self.domains.items()]
        return f"{self.name}:{';'.join(parts)}\n"


def find_regulator(name: Literal["MB", "L3"], root: Path = ROOT) -> Regulator | None:
    """What the kernel offers; ``None`` where resctrl is not mounted, does not have it, or counts bandwidth in MB/s."""
    for line in (read_text(root / "schemata") or "").splitlines():
        kind, _, values = line.strip().partition(":")
        if kind != name:
            continue
        try:
            pairs = [part.split("=") for part in values.split(";")]
            domains = {domain.strip(): int(value, 10 if name == "MB" else 16) for domain, value in pairs}
        except ValueError:
            return None
        if not all(domains.values()):
            return None
        if name == "MB":
            # With the mount option mba_MBps the values are MB/s, of which there is no full amount to take part of.
            if any(value > _FULL_PERCENT for value in domains.values()):
                return None
            least = read_integer(root / "info/MB/min_bandwidth") or 10
            return Regulator(root, name, domains, least, read_integer(root / "info/MB/bandwidth_gran") or 10)
        return Regulator(root, name, domains, read_integer(root / "info/L3/min_cbm_bits") or 1, 1)
    return None


def hold_part(regulator: Regulator, fraction: float, threads: Callable[[], Iterable[int]], journal: Journal) -> Changes:
    """Put ``threads`` in a group that has ``fraction``; asked for again until no new ones come. Raises SqueezeError."""
    group = regulator.root / f"rackscope-{os.getpid()}-{os.urandom(4).hex()}"
    changes = Changes(journal)
    with changes.undone_on_failure():
        changes.record(RemoveResctrlGroup(group))
        try:
            make_group(group)
            write_control(group / "schemata", regulator.schemata(fraction))
            _move(threads, group / "tasks")
        except OSError as error:
            said = read_text(regulator.root / "info/last_cmd_status") or error.strerror
            raise SqueezeError(f"{regulator.name} of resctrl could not be squeezed in {group}: {said}") from error
    return changes


def make_group(group: Path) -> None:
    """The kernel puts the files in. Raises OSError (ENOSPC: no class of service is left)."""
    group.mkdir()


def threads_of(pid: int) -> list[int]:
    """Every thread of a process and of those below it."""
    return [thread for threads in read_process_tree(pid).values() for thread in threads]


def _move(threads: Callable[[], Iterable[int]], tasks: Path) -> None:
    moved: set[int] = set()
    for _ in range(_MOVES):
        new = set(threads()) - moved
        if not new:
            return
        for thread in sorted(new):
            # One a write; one that has ended meanwhile needs nothing.
            with suppress(ProcessLookupError):
                write_control(tasks, str(thread))
        moved |= new


def _low_ways(mask: int, fraction: float, least: int) -> int:
    """The lowest ways of a mask, next to each other as CAT wants them."""
    ways = mask.bit_count()
    count = min(max(round(ways * fraction), least), ways)
    shift = (mask & -mask).bit_length() - 1
    return ((1 << count) - 1) << shift
