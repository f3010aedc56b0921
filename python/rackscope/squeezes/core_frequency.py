"""Core frequency: a lower ceiling for the clock of the system's cores (Documentation/admin-guide/pm/cpufreq.rst)."""

from __future__ import annotations

import os
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Resource, Squeeze, Subject
from rackscope.squeezes.groups import require
from rackscope.squeezes.held import Change, hold, read_integer, read_text
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.verifying import judge

_CPUS = "sys/devices/system/cpu"
_NEEDS = "a host whose clock is set by Linux (cpufreq), and root"
_KILOHERTZ = 1000.0
_SECONDS = 0.2


class CoreFrequency(Squeeze):
    """``scaling_max_freq`` of every core of the system's."""

    name = "core_frequency"
    resource: Resource = "cpu"
    description = "a lower clock of its cores, by the frequency driver's upper bound"
    settle_seconds = 0.2
    changes_core_speed = True

    def __init__(self, root: Path = Path("/")) -> None:
        """``root`` is where /sys is looked for."""
        self._root = root

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """The lowest of the cores' present bounds."""
        bounds, slowest = [], []
        if not subject.cores:
            return NotSqueezable("the system has no cores of its own")
        for core in subject.cores:
            folder = self._folder(core)
            bound, least = read_integer(folder / "scaling_max_freq"), read_integer(folder / "cpuinfo_min_freq")
            if bound is None or least is None or bound <= 0:
                return NotSqueezable(f"core {core} has no frequency that Linux sets", _NEEDS)
            if not os.access(folder / "scaling_max_freq", os.W_OK):
                return NotSqueezable(f"{folder / 'scaling_max_freq'} may not be written", _NEEDS)
            shared = set((read_text(folder / "affected_cpus") or "").split()) - {str(each) for each in subject.cores}
            if shared:
                return NotSqueezable(
                    f"core {core} shares its clock with cores that are not the system's ({', '.join(sorted(shared))})",
                    "cores with clocks of their own, or all of those cores for the system",
                )
            bounds.append(bound)
            slowest.append(least)
        if max(slowest) >= min(bounds):
            return NotSqueezable("the clock is at its lowest already", "a clock that can be set lower")
        floor = max(slowest) / min(bounds)
        return Capacity(min(bounds) * _KILOHERTZ, "hertz", "scaling_max_freq of the system's cores", max(0.05, floor))

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        capacity = require(self.capacity(subject), self.name)
        bound = round(capacity.value * fraction / _KILOHERTZ)
        changes: list[Change] = []
        for core in subject.cores:
            # Cores of one policy share the file.
            path = self._folder(core).resolve() / "scaling_max_freq"
            if all(change.path != path for change in changes):
                changes.append(Change(path, str(bound), str(read_integer(path))))
        return hold(self.name, changes, journal)

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """The clock of the first core, from additions that wait for each other, before and during."""
        require(self.capacity(subject), self.name)
        free = self._clock(subject.cores[0])
        with self.apply(subject, fraction, journal):
            held = self._clock(subject.cores[0])
        if not free or not held:
            return Achieved(None, "there is no kernel that measures this processor's clock", effective=False)
        return judge(
            held / free, fraction, f"core {subject.cores[0]} ran at {held / 1e9:.3g} GHz, {free / 1e9:.3g} free"
        )

    def _clock(self, core: int) -> float | None:
        from rackscope import _native

        try:
            measured = _native.measure_core_clock(_SECONDS, core)
        except (RuntimeError, OSError, ValueError) as error:
            raise SqueezeError(f"the clock of core {core} could not be measured: {error}") from error
        return None if measured is None else float(measured["median_hertz"])

    def _folder(self, core: int) -> Path:
        return self._root / _CPUS / f"cpu{core}" / "cpufreq"


SQUEEZES = (CoreFrequency(),)
