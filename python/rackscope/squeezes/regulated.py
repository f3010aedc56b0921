"""Resources that the processor may regulate (resctrl), and that threads of this process take away elsewhere."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Applied, Capacity, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.groups import require
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.resctrl import ROOT, Regulator, find_regulator, hold_part, threads_of

#: What antagonists may leave at least: below, their duty is all of the time anyhow.
_FLOOR = 0.05


class HeldAntagonist(Applied):
    """Something of ``rackscope._native`` that goes on until it is stopped."""

    def __init__(self, name: str, start: Callable[[], Any]) -> None:
        """Start it. Raises SqueezeError with what stood in the way."""
        try:
            self._antagonist = start()
        except (OSError, ValueError, RuntimeError) as error:
            raise SqueezeError(f"{name}: {error}") from error

    def release(self) -> None:
        self._antagonist.stop()


class Regulated(Squeeze):
    """The regulator, or antagonists (of its name) for ``1 - fraction`` of the time with a placebo as control."""

    #: Resource of resctrl, what the kernel calls its regulator, and what is taken away, in words.
    resctrl_name: ClassVar[Literal["MB", "L3"]]
    regulator_title: ClassVar[str]
    taken: ClassVar[str]

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    @property
    def has_control(self) -> bool:
        # Only antagonists disturb in more ways than the one meant.
        return self._regulator() is None

    @abstractmethod
    def amount(self, subject: Subject) -> tuple[float, str, str] | NotSqueezable:
        """How much there is, its unit, and where that figure comes from. Raises SqueezeError."""

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """See ``amount``; not squeezable without a regulator and without a core to spare."""
        regulator = self._regulator()
        if regulator is None and not subject.spare_cores:
            return self._no_spare_core()
        found = self.amount(subject)
        if isinstance(found, NotSqueezable):
            return found
        value, unit, source = found
        by = (
            f"resctrl {self.regulator_title}" if regulator else f"antagonists on {len(subject.spare_cores)} spare cores"
        )
        return Capacity(value, unit, f"{source}; taken by {by}", regulator.floor() if regulator else _FLOOR)

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        regulator = self._regulator()
        if regulator is None:
            return self._antagonists(self.name, subject, fraction)
        if subject.pid is None:
            raise SqueezeError(f"{self.name}: there is no process to put into a resctrl group")
        pid = subject.pid
        return hold_part(regulator, fraction, lambda: threads_of(pid), journal)

    def apply_control(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        """The same cores, as busy, without memory."""
        del journal
        return self._antagonists("placebo", subject, fraction)

    def _regulator(self) -> Regulator | None:
        return find_regulator(self.resctrl_name, self._root)

    def _antagonists(self, kind: str, subject: Subject, fraction: float) -> HeldAntagonist:
        """``kind`` on every spare core, for the share of the time that is to be taken away. Raises SqueezeError."""
        from rackscope import _native

        if not subject.spare_cores:
            require(self._no_spare_core(), self.name)
        duty = min(max(1 - fraction, 0.01), 1.0)
        return HeldAntagonist(self.name, lambda: _native.Antagonist(kind, list(subject.spare_cores), duty=duty))

    def _no_spare_core(self) -> NotSqueezable:
        return NotSqueezable(
            f"there is no core to spare for threads that take {self.taken} away, and no resctrl",
            "a core that neither the system nor its client needs, or a processor and kernel with resctrl",
        )

    def _measure(
        self, subject: Subject, fraction: float, journal: Journal, measure: Callable[[], float]
    ) -> tuple[float, float]:
        """What ``measure`` gives without the squeeze (beside its control, where there is one), and under it."""
        regulator = self._regulator()
        if regulator is None:
            with self._antagonists("placebo", subject, fraction):
                free = measure()
            with self._antagonists(self.name, subject, fraction):
                return free, measure()
        free = measure()
        # Threads that this one starts are born into its group; it falls back to the default one on release.
        with hold_part(regulator, fraction, lambda: [threading.get_native_id()], journal):
            return free, measure()
