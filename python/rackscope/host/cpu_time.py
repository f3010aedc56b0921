"""How much of the cores' time went where, from ``/proc/stat`` and ``/proc/PID``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackscope.host.tree import Tree

_STEAL = 7
#: user, nice, system, idle, iowait, irq, softirq, steal; guest time is already in user.
_STATES = 8


@dataclass(frozen=True)
class CpuTime:
    """Ticks of all cores since the start of the host."""

    total: int
    steal: int

    def steal_ratio_since(self, earlier: CpuTime) -> float | None:
        """Fraction of the cores' time that the hypervisor gave to other guests; ``None`` if no time passed."""
        passed = self.total - earlier.total
        return (self.steal - earlier.steal) / passed if passed > 0 else None


def read_cpu_time(tree: Tree) -> CpuTime | None:
    """The first line of ``/proc/stat`` (proc(5)); ``None`` where it is missing or from before there was steal."""
    first = (tree.text("proc/stat") or "").partition("\n")[0].split()
    if len(first) <= _STATES or first[0] != "cpu" or not all(part.isdigit() for part in first[1:]):
        return None
    ticks = [int(part) for part in first[1 : 1 + _STATES]]
    return CpuTime(sum(ticks), ticks[_STEAL])


def process_cpu_seconds(pid: int, root: Path = Path("/")) -> float | None:
    """What all threads that still run took of the cores (``schedstat``, proc(5)); ``None`` where it cannot be read."""
    try:
        files = list((root / "proc" / str(pid) / "task").glob("*/schedstat"))
        return sum(int(file.read_text(encoding="ascii").split()[0]) for file in files) / 1e9 if files else None
    except (OSError, ValueError, IndexError):
        return None
