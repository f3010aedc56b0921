"""A system on the bench: started where it can be squeezed, asked for windows of load under one condition each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rackscope.analysis.windows import FREE, Window, parse_condition
from rackscope.errors import SqueezeError
from rackscope.runs.options import Loop, Progress, ProgressCallback
from rackscope.runs.prepare import Prepared
from rackscope.runs.session import Session
from rackscope.squeezes import find_squeezes
from rackscope.squeezes.base import Achieved, Capacity, Isolation, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.provision import Limits, provision
from rackscope.studies.bench.core_meters import CoreSpeeds
from rackscope.studies.bench.interference import Interference, Judge
from rackscope.workloads import PhasePlan

_CONTROL = "control:"
#: How often a squeeze is tried before it is said to have no effect here.
_TRIALS = 3
#: Load that goes before each window: longer than any token bucket takes to lose the credit of a pause.
RAMP_SECONDS = 0.15


@dataclass
class Squeezable:
    """A squeeze that works here, with what it was measured to leave at each fraction asked for."""

    squeeze: Squeeze
    capacity: Capacity
    verified: dict[float, Achieved] = field(default_factory=dict)

    def conditions(self, fractions: Sequence[float]) -> list[str]:
        """Names of the conditions of these fractions, and of their controls, floor respected."""
        names = []
        for fraction in fractions:
            if fraction >= self.capacity.floor:
                names.append(f"{self.squeeze.name}@{fraction:g}")
                if self.squeeze.has_control:
                    names.append(f"{_CONTROL}{names[-1]}")
        return names


@dataclass
class Bench:
    """One session's system with its squeezes; ``window`` measures it under one condition."""

    session: Session
    subject: Subject
    journal: Journal
    speeds: CoreSpeeds | None = None
    squeezables: dict[str, Squeezable] = field(default_factory=dict)
    refused: dict[str, tuple[Squeeze, NotSqueezable]] = field(default_factory=dict)
    interference: Interference = field(default_factory=Interference)
    windows: int = 0
    ramp_seconds: float = RAMP_SECONDS

    @property
    def resources(self) -> dict[str, str]:
        squeezes = [one.squeeze for one in self.squeezables.values()]
        squeezes += [squeeze for squeeze, _ in self.refused.values()]
        return {squeeze.name: squeeze.resource for squeeze in squeezes}

    def find(self, squeezes: Sequence[Squeeze]) -> None:
        """Sort the squeezes into those that can be used here and those that cannot, with the reason."""
        for squeeze in squeezes:
            found = squeeze.capacity(self.subject)
            if isinstance(found, NotSqueezable):
                self.refused[squeeze.name] = (squeeze, found)
            else:
                self.squeezables[squeeze.name] = Squeezable(squeeze, found)

    def verify(self, name: str, fractions: Sequence[float]) -> None:
        """Measure what each squeeze leaves; the system must be idle. One that has no effect is refused from then on."""
        one = self.squeezables[name]
        for fraction in fractions:
            if fraction < one.capacity.floor or fraction in one.verified:
                continue
            try:
                achieved = self._achieve(one, fraction)
            except SqueezeError as error:
                self._refuse(name, NotSqueezable(error.what, error.advice))
                return
            if not achieved.effective:
                self._refuse(name, NotSqueezable(achieved.sentence))
                return
            one.verified[fraction] = achieved

    def _achieve(self, one: Squeezable, fraction: float) -> Achieved:
        """A trial of the squeeze; again when it failed, as whatever else runs on the host can make it fail."""
        for _ in range(_TRIALS - 1):
            achieved = one.squeeze.verify(self.subject, fraction, self.journal)
            if achieved.effective:
                return achieved
        return one.squeeze.verify(self.subject, fraction, self.journal)

    def _refuse(self, name: str, why: NotSqueezable) -> None:
        self.refused[name] = (self.squeezables.pop(name).squeeze, why)

    def window(self, plan: PhasePlan, loop: Loop, seconds: float, condition: str, block: int) -> Window:
        """Hold ``condition`` for ``seconds`` of load; after interference again, and then the last counts."""
        shown = plan if condition == FREE else replace(plan, name=f"{plan.name} under {condition}", kind="squeezed")
        activity = f"{plan.name}: {'free' if condition == FREE else condition.replace('@', ' at ')}"
        squeeze = self._squeeze_of(condition)
        speeds: tuple[float, ...] = ()

        def once(begin: Callable[[], Judge]) -> dict[str, Any]:
            nonlocal speeds
            self.windows += 1
            self.session.ramp(shown, loop, self.ramp_seconds)
            self.ramp_seconds = RAMP_SECONDS
            before = self.speeds.read() if self.speeds is not None else []
            try:
                return self.session.phase(shown, loop, seconds, self.windows, activity=activity, discard=begin())
            finally:
                speeds = self.speeds.since(before) if self.speeds is not None else ()

        with self._held(condition):
            row = self.interference.measure(once)
        return Window(
            block=block,
            condition=condition,
            throughput=row["throughput_operations_per_second"] or 0.0,
            p99_seconds=row.get("response_p99_seconds"),
            achieved_fraction=self._achieved(condition),
            core_speeds=() if squeeze is not None and squeeze.changes_core_speed else speeds,
        )

    @contextlib.contextmanager
    def _held(self, condition: str) -> Iterator[None]:
        """Hold the condition; what it takes to settle, before and after, is added to the next ramps."""
        squeeze = self._squeeze_of(condition)
        if squeeze is None:
            yield
            return
        parsed = parse_condition(condition.removeprefix(_CONTROL))
        assert parsed is not None
        apply = squeeze.apply_control if condition.startswith(_CONTROL) else squeeze.apply
        with apply(self.subject, parsed[1], self.journal):
            self.ramp_seconds = max(self.ramp_seconds, squeeze.settle_seconds)
            yield
        self.ramp_seconds = max(self.ramp_seconds, squeeze.settle_seconds)

    def _squeeze_of(self, condition: str) -> Squeeze | None:
        parsed = parse_condition(condition.removeprefix(_CONTROL))
        return None if parsed is None else self.squeezables[parsed[0]].squeeze

    def _achieved(self, condition: str) -> float | None:
        parsed = parse_condition(condition)
        if parsed is None:
            return None
        name, fraction = parsed
        verified = self.squeezables[name].verified.get(fraction)
        return verified.fraction if verified is not None else None


def on_the_bench(
    prepared: Prepared,
    folder: Path,
    limits: Limits,
    work: Callable[[Bench], None],
    progress: ProgressCallback,
    squeezes: Sequence[Squeeze] | None = None,
    speeds: CoreSpeeds | None = None,
) -> Isolation:
    """Start the system isolated, find its squeezes, and do ``work``; nothing is left afterwards.

    ``speeds`` are taken where several systems are on benches on the same cores: they are looked at once.
    Returns the control group and the network namespace. Raises RackscopeError.
    """
    with contextlib.ExitStack() as stack:
        journal = stack.enter_context(Journal())
        progress(Progress("creating a control group and a network namespace"))
        wants_network = prepared.options.endpoint_kind == "tcp" and prepared.options.port is None
        isolation = stack.enter_context(make_isolation("study", journal, network=wants_network))
        stack.enter_context(provision(isolation, limits, journal, folder=folder.parent))
        session = Session(prepared, progress, folder, isolation)
        # Now, as rackscope keeps itself off the system's cores while that runs.
        usable = sorted(os.sched_getaffinity(0))

        def body(session: Session) -> None:
            placement = prepared.placement
            with (
                CoreSpeeds(placement.system, placement.client)
                if speeds is None
                else contextlib.nullcontext(speeds) as taken
            ):
                bench = Bench(session, _subject(session, isolation, limits, usable), journal, taken)
                bench.find(find_squeezes() if squeezes is None else squeezes)
                work(bench)

        session.run(body)
    return isolation


def _subject(session: Session, isolation: Isolation, limits: Limits, usable: Sequence[int]) -> Subject:
    placement = session.prepared.placement
    busy = set(placement.system) | set(placement.client)
    ceilings = dict(session.manifest.ceilings.values)
    if limits.network_bytes_per_second is not None:
        ceilings["network_link_bytes_per_second"] = limits.network_bytes_per_second
    return Subject(
        isolation=isolation,
        cores=tuple(placement.system),
        spare_cores=tuple(core for core in usable if core not in busy),
        pid=session.system.pid,
        folder=session.writer.logs,
        ceilings=ceilings,
    )
