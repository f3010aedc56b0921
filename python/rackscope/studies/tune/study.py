"""``study tune``: which knobs make a system faster under a workload, and what each change is worth.

``StudyRecord.result`` is described in ``studies/tune/record.py``.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rackscope.errors import StudyError, UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.runs.options import RunOptions
    from rackscope.runs.prepare import Prepared
    from rackscope.runs.session import Session
    from rackscope.studies.bench.bounds import Bound
    from rackscope.studies.tune.knob_space import KnobSpace

_LEAST_BUDGET_SECONDS = 30.0
_LEAST_SLO_BUDGET_SECONDS = 60.0
_WARM_UP_SECONDS = 0.5
#: How long one measurement is: its share of the budget, between a shortest and a longest. A search for a rate takes
#: several windows.
_WINDOW_SHARE, _WINDOW_SECONDS = 1 / 200, (0.5, 2.0)
_RATE_SEARCH_SHARE, _RATE_SEARCH_SECONDS = 1 / 60, (2.5, 8.0)
#: Reads that miss are faster: a configuration that loses this much of the hits is not a faster one.
_HIT_RATIO_TOLERANCE = 0.005


class Trials:
    """Measures one configuration after the other, each in a session (and a run directory) of its own."""

    def __init__(self, conduct: Conduct, bound: Bound | None) -> None:
        assert conduct.request.run is not None
        self._conduct = conduct
        self._options: RunOptions = conduct.request.run
        self._bound = bound
        share, (shortest, longest) = (
            (_WINDOW_SHARE, _WINDOW_SECONDS) if bound is None else (_RATE_SEARCH_SHARE, _RATE_SEARCH_SECONDS)
        )
        self._seconds = min(max(conduct.request.values["budget"] * share, shortest), longest)
        self._number = 0
        self._hit_ratio: float | None = None

    def prepared(self, configuration: Mapping[str, str]) -> Prepared:
        """The run with these knobs. Raises RackscopeError when it cannot be."""
        from rackscope.runs.prepare import prepare

        settings = {**self._options.settings, **configuration}
        return prepare(replace(self._options, settings=settings), self._conduct.progress)

    def measure(self, configuration: Mapping[str, str], purpose: str) -> float:
        """Operations a second from a fresh start: of a closed loop, or the rate under the bound. Raises RackscopeError.

        Several stages count alike: the value is their geometric mean.
        """
        from rackscope.runs.session import Session

        self._number += 1
        prepared = self.prepared(configuration)
        shown = ", ".join(f"{name}={value}" for name, value in configuration.items())
        folder = self._conduct.member(f"trial-{self._number:04d}", f"{purpose}: {shown}")
        values: list[float] = []

        def work(session: Session) -> None:
            session.preload()
            session.warm_up(prepared.options.loop)
            values.extend(self._values(session, purpose))

        try:
            Session(prepared, self._conduct.progress, folder).run(work)
        except BaseException as error:
            self._conduct.record.members[-1].discarded = str(error) or type(error).__name__
            raise
        if not values or min(values) <= 0:
            return 0.0
        return math.exp(math.fsum(math.log(value) for value in values) / len(values))

    def _values(self, session: Session, purpose: str) -> list[float]:
        from rackscope.studies.bench.quiet import behind_the_generator
        from rackscope.studies.bench.windows import SessionLoad
        from rackscope.studies.slo.capacity import quick_rate

        stages = session.prepared.plan.stages
        values = []
        hits = reads = 0
        for stage in stages:
            if self._bound is not None:
                values.append(quick_rate(SessionLoad(session, stage), self._bound, self._seconds / len(stages)))
                continue
            with behind_the_generator(session):
                row = session.phase(
                    stage, session.prepared.options.loop, self._seconds / len(stages), 1, activity=purpose
                )
            _refuse_errors(row)
            hits += row["hits"] or 0
            reads += (row["hits"] or 0) + (row["misses"] or 0)
            values.append(row["throughput_operations_per_second"] or 0.0)
        if reads:
            self._compare_hits(hits / reads)
        return values

    def _compare_hits(self, ratio: float) -> None:
        """The first configuration (the default) sets what is to be found."""
        if self._hit_ratio is None:
            self._hit_ratio = ratio
        elif ratio < self._hit_ratio - _HIT_RATIO_TOLERANCE:
            raise StudyError(
                f"{100 * ratio:.1f} % of reads found their key, and {100 * self._hit_ratio:.1f} % with the defaults"
            )


def _refuse_errors(row: Mapping[str, float | None]) -> None:
    from rackscope.analysis.thresholds import packaged_thresholds

    errors, operations = row["errors"] or 0, row["operations"] or 0
    if errors > packaged_thresholds().limit("errors.ratio") * max(operations, 1):
        raise StudyError(f"{errors:.0f} of {operations + errors:.0f} operations failed")


def _space(prepared: Prepared, named: tuple[str, ...]) -> tuple[KnobSpace, list[dict[str, str]]]:
    """What is searched, and the configurations to try first: the papers' tuned values, together and one by one."""
    from rackscope.studies.tune.knob_space import knob_space
    from rackscope.systems import resolve_knobs

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


def _check(request: Request) -> None:

    from rackscope.studies.bench.bounds import parse_bound

    if importlib.util.find_spec("optuna") is None:
        raise UsageError("study tune needs optuna", "Install rackscope[tune].")
    if request.values["slo"] is not None:
        parse_bound(request.values["slo"])
    least = _LEAST_BUDGET_SECONDS if request.values["slo"] is None else _LEAST_SLO_BUDGET_SECONDS
    if request.values["budget"] < least:
        raise UsageError(
            f"{request.values['budget']:g} s is too short for tuning", f"Choose a --budget of {least:g}s or more."
        )


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.bench.bounds import parse_bound
    from rackscope.studies.tune.record import Aim, fill
    from rackscope.studies.tune.search import Budget, Tuning

    request = conduct.request
    assert request.run is not None
    budget = Budget(request.values["budget"])
    bound = parse_bound(request.values["slo"]) if request.values["slo"] is not None else None
    trials = Trials(conduct, bound)
    prepared = trials.prepared({})
    space, first = _space(prepared, _names(request.values["knobs"]))
    aim = Aim(
        system=prepared.system.name,
        workload=prepared.plan.workload,
        base=_base_command(request.run),
        measure="throughput" if bound is None else f"the rate with {bound.describe()}",
        start_is_tuned=request.run.tuned,
    )

    def on_change() -> None:
        fill(conduct.record, tuning.found, aim)
        conduct.save()

    tuning = Tuning(space, trials.measure, budget, first=first, seed=request.run.seed, on_change=on_change)
    try:
        tuning.run()
    finally:
        fill(conduct.record, tuning.found, aim)


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


def _title(request: Request) -> str:
    assert request.run is not None
    return f"{request.run.system} under {request.run.workload}: which knobs matter"


STUDY = Study(
    name="tune",
    help="search the knobs of a system for the best configuration",
    description="""Search the knobs of a system for the best configuration: the highest throughput of a closed loop, or
with --slo the highest rate within a latency bound.

The best configuration is measured again in turns with the defaults. Then one change at a time is reverted, to measure
what it contributes. Changes that make no difference are left out of the recommendation.

Examples:
  rackscope study tune memcached ycsb-b --budget 10m
  rackscope study tune redis ycsb-a --slo 'p99<1ms' --knobs io_threads,io_threads_read""",
    conduct=_conduct,
    options=(
        Option("slo", "text", "tune for the highest rate under this bound, instead of throughput", metavar="'p99<1ms'"),
        Option("budget", "duration", "total time", "10m"),
        Option("knobs", "text", "search only these knobs", repeated=True, metavar="NAME,..."),
    ),
    run_defaults={"sample_interval_seconds": 0.5, "warm_up_seconds": _WARM_UP_SECONDS},
    title=_title,
    check=_check,
)
