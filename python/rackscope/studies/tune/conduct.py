"""From what is asked of ``study tune`` to what is measured and said."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.errors import StudyError, UsageError
from rackscope.runs.options import RunOptions
from rackscope.runs.prepare import Prepared, prepare
from rackscope.runs.session import Session
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.bounds import Bound, parse_bound
from rackscope.studies.bench.loading import check_budget, refuse_errors
from rackscope.studies.bench.quiet import behind_the_generator
from rackscope.studies.bench.windows import SessionLoad
from rackscope.studies.slo.capacity import quick_rate
from rackscope.studies.tune.knob_space import KnobSpace, knob_space
from rackscope.studies.tune.record import Aim, fill
from rackscope.studies.tune.search import Budget, Tuning
from rackscope.systems import resolve_knobs

_LEAST_BUDGET_SECONDS = 30.0
_LEAST_SLO_BUDGET_SECONDS = 60.0
#: How long one measurement is: its share of the budget, between a shortest and a longest. A search for a rate takes
#: several windows.
_WINDOW = 1 / 200, 0.5, 2.0
_RATE_SEARCH = 1 / 60, 2.5, 8.0
#: Reads that miss are faster: a configuration that loses this much of the hits is not a faster one.
_HIT_RATIO_TOLERANCE = 0.005


@dataclass
class Trials:
    """Measures one configuration after the other, each in a session (and a run directory) of its own."""

    conduct: Conduct
    bound: Bound | None
    number: int = 0
    hit_ratio: float | None = None

    def __post_init__(self) -> None:
        self.options = self.conduct.request.asked
        share, shortest, longest = _WINDOW if self.bound is None else _RATE_SEARCH
        self.seconds = min(max(self.conduct.request.values["budget"] * share, shortest), longest)

    def prepared(self, configuration: Mapping[str, str]) -> Prepared:
        """The run with these knobs. Raises RackscopeError when it cannot be."""
        settings = {**self.options.settings, **configuration}
        return prepare(replace(self.options, settings=settings), self.conduct.progress)

    def measure(self, configuration: Mapping[str, str], purpose: str) -> float:
        """Operations a second from a fresh start: of a closed loop, or the rate under the bound. Raises RackscopeError.

        Several stages count alike: the value is their geometric mean.
        """
        self.number += 1
        prepared = self.prepared(configuration)
        shown = ", ".join(f"{name}={value}" for name, value in configuration.items())
        folder = self.conduct.member(f"trial-{self.number:04d}", f"{purpose}: {shown}")
        values: list[float] = []

        def work(session: Session) -> None:
            session.preload()
            session.warm_up(prepared.options.loop)
            values.extend(self._values(session, purpose))

        try:
            Session(prepared, self.conduct.progress, folder).run(work)
        except BaseException as error:
            self.conduct.record.members[-1].discarded = str(error) or type(error).__name__
            raise
        if not values or min(values) <= 0:
            return 0.0
        return math.exp(math.fsum(math.log(value) for value in values) / len(values))

    def _values(self, session: Session, purpose: str) -> list[float]:
        loop, stages = session.prepared.options.loop, session.prepared.plan.stages
        seconds = self.seconds / len(stages)
        if self.bound is not None:
            return [quick_rate(SessionLoad(session, stage), self.bound, seconds) for stage in stages]
        with behind_the_generator(session):
            rows = [session.phase(stage, loop, seconds, 1, activity=purpose) for stage in stages]
        for row in rows:
            refuse_errors(row, packaged_thresholds().limit("errors.ratio"))
        hits, misses = (sum(row[name] or 0 for row in rows) for name in ("hits", "misses"))
        if hits + misses:
            self._compare_hits(hits / (hits + misses))
        return [row["throughput_operations_per_second"] or 0.0 for row in rows]

    def _compare_hits(self, ratio: float) -> None:
        """The first configuration (the default) sets what is to be found."""
        if self.hit_ratio is None:
            self.hit_ratio = ratio
        elif ratio < self.hit_ratio - _HIT_RATIO_TOLERANCE:
            raise StudyError(
                f"{100 * ratio:.1f} % of reads found their key, and {100 * self.hit_ratio:.1f} % with the defaults"
            )


def _space(prepared: Prepared, named: tuple[str, ...]) -> tuple[KnobSpace, list[dict[str, str]]]:
    """What is searched, and the configurations to try first: the papers' tuned values, together and one by one."""
    system, cores = prepared.system, prepared.placement.system
    all_tuned = resolve_knobs(system, {}, tuned=True, cores=cores).values
    tuned = {knob.name: all_tuned[knob.name] for knob in system.knobs if knob.tuned is not None}
    pinned = [name for name, source in prepared.knobs.sources.items() if source == "set"]
    space = knob_space(system.knobs, prepared.knobs.values, tuned, cores=len(cores), pinned=pinned, named=named)
    changed = {name: tuned[name] for name in space.default if name in tuned and tuned[name] != space.default[name]}
    first = [{**space.default, **changed}]
    if len(changed) > 1:
        first += [{**space.default, name: value} for name, value in changed.items()]
    return space, first


def _names(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def check(request: Request) -> None:
    if importlib.util.find_spec("optuna") is None:
        raise UsageError("study tune needs optuna", "Install rackscope[tune].")
    if request.values["slo"] is not None:
        parse_bound(request.values["slo"])
    least = _LEAST_BUDGET_SECONDS if request.values["slo"] is None else _LEAST_SLO_BUDGET_SECONDS
    check_budget(request.values["budget"], least, "tuning")


def conduct(conduct: Conduct) -> None:
    request = conduct.request
    budget = Budget(request.values["budget"])
    bound = parse_bound(request.values["slo"]) if request.values["slo"] is not None else None
    trials = Trials(conduct, bound)
    prepared = trials.prepared({})
    space, first = _space(prepared, _names(request.values["knobs"]))
    aim = Aim(
        system=prepared.system.name,
        workload=prepared.plan.workload,
        base=_base_command(request.asked),
        measure="throughput" if bound is None else f"the rate with {bound.describe()}",
        start_is_tuned=request.asked.tuned,
    )

    tuning = Tuning(space, trials.measure, budget, first=first, seed=request.asked.seed)
    with conduct.described(lambda: fill(conduct.record, tuning.found, aim)) as tuning.on_change:
        tuning.run()


def _base_command(options: RunOptions) -> tuple[str, ...]:
    """The run that is tuned, as a user would start it."""
    command = ["rackscope", "run", options.system, options.workload]
    if options.tuned:
        command.append("--tuned")
    if options.connections != 50:
        command += ["--connections", str(options.connections)]
    for flag, cores in (("--cores", options.cores), ("--client-cores", options.client_cores)):
        if cores is not None:
            command += [flag, ",".join(map(str, cores))]
    if options.endpoint_kind != "tcp":
        command += ["--endpoint", options.endpoint_kind]
    for name, value in options.settings.items():
        command += ["--set", f"{name}={value}"]
    return tuple(command)


def title(request: Request) -> str:
    return f"{request.asked.system} under {request.asked.workload}: which knobs matter"
