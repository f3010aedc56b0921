"""Several systems at once: all started, then measured by turns, in rounds that fit into a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rackscope.analysis.multiple import interleave
from rackscope.errors import RackscopeError
from rackscope.host.cpu_time import process_cpu_seconds
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.prepare import Prepared, prepare
from rackscope.studies.bench.interference import Judge

_Item = TypeVar("_Item")
#: Starts a system, does what it is given while the system is up and ready, and stops it. Raises RackscopeError.
Start = Callable[[str, Prepared, Callable[[], None]], None]


def prepare_all(wanted: Mapping[str, RunOptions], failures: dict[str, str]) -> dict[str, Prepared]:
    """Those that can be, by name; why others cannot is in ``failures``.

    Before any is started: from then on this process keeps off the systems' cores.
    """
    prepared = {}
    for name, options in wanted.items():
        try:
            prepared[name] = prepare(options, lambda _: None)
        except RackscopeError as error:
            failures[name] = error.what
    return prepared


def side_by_side(
    waiting: Mapping[str, Prepared], start: Start, work: Callable[[], None], failures: dict[str, str]
) -> None:
    """Start all that wait, one within the other, and do ``work`` while they are up.

    One that cannot be started is in ``failures`` with the reason, and the rest goes on without it.
    """
    if not waiting:
        work()
        return
    (name, prepared), *others = waiting.items()
    rest = dict(others)
    is_up = False

    def inside() -> None:
        nonlocal is_up
        is_up = True
        side_by_side(rest, start, work, failures)

    try:
        start(name, prepared, inside)
    except RackscopeError as error:
        if is_up:
            raise
        failures[name] = error.what
        side_by_side(rest, start, work, failures)


def rounds_of(items: Sequence[_Item], repetitions: int, seed: int) -> list[list[_Item]]:
    """Rounds that hold every item once: of two the first is shuffled and the second is the first backwards, so that
    steady drift falls on all items alike."""
    order = [items[int(label)] for label in interleave([*map(str, range(len(items)))], repetitions, seed)]
    return [order[at : at + len(items)] for at in range(0, len(order), len(items))]


def paced(rounds: Sequence[_Item], until: float, clock: Callable[[], float], fewest: int = 2) -> Iterator[_Item]:
    """The rounds that end before ``until`` as far as those before them tell; ``fewest`` are made in any case."""
    begun = clock()
    for number, one in enumerate(rounds):
        if number >= fewest:
            now = clock()
            if now + (now - begun) / number > until:
                return
        yield one


def by_turns(
    rounds: Sequence[Sequence[_Item]],
    until: float,
    clock: Callable[[], float],
    measure: Callable[[_Item, int, float], None],
    failed: Callable[[_Item, str], None],
    after_round: Callable[[], None] = lambda: None,
) -> int:
    """Measure the items of every round that fits into the time; how many rounds did. One that fails is left out then.

    ``measure`` gets an item, how many rounds were made before, and the part of this one that is done.
    """
    gone: set[_Item] = set()
    made = 0
    for order in paced(rounds, until, clock):
        for at, item in enumerate(order):
            if item in gone:
                continue
            try:
                measure(item, made, at / len(order))
            except RackscopeError as error:
                gone.add(item)
                failed(item, error.what)
        made += 1
        after_round()
    return made


class Steps:
    """Progress of a whole study, whatever a system tells of itself meanwhile."""

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress
        self.fraction = 0.0
        #: What is being done; what the system tells where it is empty.
        self.words = ""

    def __call__(self, step: Progress) -> None:
        self._progress(replace(step, activity=self.words or step.activity, fraction=self.fraction))


class SystemUse:
    """CPU time of a system during a window. The sampler's ticks are too far apart for a short one."""

    def __init__(self, pid: int, judge: Judge) -> None:
        self._pid = pid
        self._judge = judge
        self._before = process_cpu_seconds(pid)
        #: Known when the window has ended.
        self.cpu_seconds: float | None = None

    def discard(self, row: Mapping[str, Any]) -> str:
        """Why the window should not count, judged with this CPU time; empty when it should."""
        after = process_cpu_seconds(self._pid)
        known = self._before is not None and after is not None
        self.cpu_seconds = after - self._before if known else row["system_cpu_seconds"]  # type: ignore[operator]
        return self._judge({**row, "system_cpu_seconds": self.cpu_seconds})
