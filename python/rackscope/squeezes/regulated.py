"""Resources that the processor itself may regulate (resctrl), and that threads on spare cores take away elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from rackscope.errors import SqueezeError
from rackscope.squeezes.antagonists import HeldAntagonist, no_spare_core, start_threads
from rackscope.squeezes.base import Applied, Capacity, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.groups import require
from rackscope.squeezes.resctrl import ROOT, Regulator, find_regulator, hold_part, threads_of

if TYPE_CHECKING:
    from rackscope.squeezes.journal import Journal

#: What antagonists may leave at least: below, their duty is all of the time anyhow.
_FLOOR = 0.05


class Regulated(Squeeze):
    """The regulator for the system's tasks, or antagonists for ``1 - fraction`` of the time, with a placebo as control.

    The antagonist of a squeeze has its name.
    """

    #: Resource of resctrl, what the kernel calls its regulator, and what is taken away, in words.
    resctrl_name: ClassVar[Literal["MB", "L3"]]
    regulator_title: ClassVar[str]
    taken: ClassVar[str]

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    @property
    def has_control(self) -> bool:
        """Only antagonists disturb in more ways than the one meant."""
        return self._regulator() is None

    @abstractmethod
    def amount(self, subject: Subject) -> tuple[float, str, str] | NotSqueezable:
        """How much there is, its unit, and where that figure comes from. Raises SqueezeError."""

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """See ``amount``; not squeezable without a regulator and without a core to spare."""
        regulator = self._regulator()
        if regulator is None and not subject.spare_cores:
            return no_spare_core(self.taken)
        found = self.amount(subject)
        if isinstance(found, NotSqueezable):
            return found
        value, unit, source = found
        by = (
            f"resctrl {self.regulator_title}" if regulator else f"antagonists on {len(subject.spare_cores)} spare cores"
        )
        return Capacity(value, unit, f"{source}; taken by {by}", regulator.floor() if regulator else _FLOOR)

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        """See the base class."""
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
        if not subject.spare_cores:
            require(no_spare_core(self.taken), self.name)
        return start_threads(self.name, kind, subject, fraction)
