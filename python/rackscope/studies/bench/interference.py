"""What was taken from the host while something was measured: by the hypervisor, and by other programs.

Judged only by what was taken, never by what was measured: that would hide bad results.
"""

from __future__ import annotations

import functools
import itertools
import os
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackscope.analysis.thresholds import packaged_thresholds

#: What all tasks took, in nanoseconds, as the scheduler measures it (control groups of version 1).
_USAGE_FILE = "sys/fs/cgroup/cpuacct/cpuacct.usage"
#: user, nice, system: what tasks took, as ticks sample it; interrupts are charged to the task they interrupt (proc(5)).
_TASK_STATES = (0, 1, 2)
#: A throttled task runs in step with ticks: what they charge it with is off by about a tenth.
_TICKS_ERROR = 0.1
_STEAL_STATE = 7
#: How often a window is measured again at least because something else ran on the host.
_RETRIES = 2
#: For studies of rounds: after so many windows in a row that were disturbed each time they were measured, windows are
#: measured once, until one is not disturbed.
FUTILE_AFTER = 3
#: Interference comes in bursts of seconds to a minute. Between later attempts nothing is done, longer each time.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 2.0


#: Says of a window's row why it should be discarded; empty when it should not.
Judge = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Taken:
    """Share of the cores' time stolen, and cores that others used; ``None`` where it could not be read."""

    steal_ratio: float | None = None
    others_cores: float | None = None

    @property
    def interference(self) -> str:
        """What was seen, in words; empty when nothing was."""
        limit = packaged_thresholds().limit
        if self.steal_ratio is not None and self.steal_ratio > limit("steal.doubt"):
            return "the hypervisor gave the cores to other guests (steal)"
        if self.others_cores is not None and self.others_cores > limit("interference.cores"):
            return "other processes ran"
        return ""


class Watch:
    """Looks at the host from its making to ``taken``. ``beside`` is CPU time of other processes of rackscope's."""

    def __init__(self, root: Path = Path("/"), beside: Callable[[], float] = lambda: 0.0) -> None:
        self._root = root
        self._beside = beside
        self._ticks = _ticks(root)
        self._usage_seconds = _usage_seconds(root)
        self._own_seconds = _own_cpu_seconds() + beside()

    def taken(self, system_seconds: float | None) -> Taken:
        """What was taken since; ``system_seconds`` is the CPU time of the system under test in between."""
        before, after = self._ticks, _ticks(self._root)
        if before is None or after is None:
            return Taken()
        passed = [late - early for early, late in zip(before, after, strict=True)]
        total = sum(passed[: _STEAL_STATE + 1])
        if total <= 0:
            return Taken()
        hertz = os.sysconf("SC_CLK_TCK")
        cores = os.cpu_count() or 1
        steal = passed[_STEAL_STATE] / total
        if system_seconds is None:
            return Taken(steal)
        known = _own_cpu_seconds() + self._beside() - self._own_seconds + system_seconds
        usage = _usage_seconds(self._root)
        if usage is not None and self._usage_seconds is not None:
            others = usage - self._usage_seconds - known
        else:
            others = sum(passed[state] for state in _TASK_STATES) / hertz - known * (1 + _TICKS_ERROR)
        return Taken(steal, max(0.0, others / (total / hertz / cores)))


@dataclass
class Interference:
    """How often measurements met interference; ``patience_seconds`` may be waited for a quiet host, in all."""

    patience_seconds: float = 0.0
    #: What discarded windows, and pauses after them, took.
    waited_seconds: float = 0.0
    windows: int = 0
    discarded: int = 0
    #: Windows that count in spite of interference, as there was some in those measured again, too.
    kept: int = 0
    reasons: set[str] = field(default_factory=set)
    #: After so many windows in a row that met interference each time, windows are measured once until one meets none:
    #: on a host that is never quiet, more rounds say more than the same window again. ``None``: never.
    futile_after: int | None = None
    futile: int = 0
    #: CPU time of other processes of rackscope's, which are no interference.
    beside: Callable[[], float] = lambda: 0.0

    def measure(self, once: Callable[[Callable[[], Judge]], dict[str, Any]]) -> dict[str, Any]:
        """The row of a window. One with interference is measured again, until patience is spent and twice at
        least.

        ``once`` measures it. It calls what it is given when the window begins, and lets what that returns say of the
        row why it is discarded; the last one counts.
        """
        for attempt in itertools.count():
            begun = time.monotonic()
            is_futile = self.futile_after is not None and self.futile >= self.futile_after
            patient = not is_futile and (attempt < _RETRIES or self.waited_seconds < self.patience_seconds)
            row = once(functools.partial(self._begin, may_discard=patient))
            if not row["discarded"]:
                return row
            if attempt >= _RETRIES:
                time.sleep(min(_FIRST_PAUSE_SECONDS * 2 ** (attempt - _RETRIES), _LONGEST_PAUSE_SECONDS))
            self.waited_seconds += time.monotonic() - begun
        raise AssertionError

    def _begin(self, *, may_discard: bool) -> Judge:
        """What counts the window that begins now, once its row is known, and says why it should be discarded."""
        watch = Watch(beside=self.beside)

        def discard(row: Mapping[str, Any]) -> str:
            reason = watch.taken(row["system_cpu_seconds"]).interference
            self.windows += 1
            if not reason:
                self.futile = 0
                return ""
            self.futile += not may_discard
            self.reasons.add(reason)
            self.discarded += may_discard
            self.kept += not may_discard
            return reason if may_discard else ""

        return discard


def _ticks(root: Path) -> list[int] | None:
    try:
        first = (root / "proc/stat").read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return None
    return [int(part) for part in first[1:]] if len(first) > _STEAL_STATE + 1 else None


def _usage_seconds(root: Path) -> float | None:
    try:
        return int((root / _USAGE_FILE).read_text(encoding="ascii")) / 1e9
    except (OSError, ValueError):
        return None


def _own_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
