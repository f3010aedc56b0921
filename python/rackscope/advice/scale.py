"""Scale up or out: what each way to do a job takes and costs, where walls are, at which size the answer changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rackscope.advice.job_evidence import JobEvidence
from rackscope.advice.job_ways import JobWays, Known
from rackscope.advice.scale_types import Change, Job, Priced, ScaleAdvice, ScaleRow, ServerWall
from rackscope.advice.scale_words import sentences
from rackscope.errors import RackscopeError
from rackscope.models import scale_choice
from rackscope.models.catalogue import Catalogue
from rackscope.models.cost import summarise
from rackscope.models.gates import ProjectionRefused
from rackscope.models.job_time import ClusterOf, OneServer, Way
from rackscope.models.uncertain import Array
from rackscope.units import format_bytes, format_duration

_SIZES = 60
#: Numbers of machines that are tried for where the answer changes: all of the small ones, then fewer.
_COUNTS = 40


class NoWayError(RackscopeError):
    """No way is known to do the job, or none does it in time."""


def advise_scale(
    evidence: JobEvidence,
    catalogue: Catalogue,
    job: Job,
    *,
    like: Mapping[str, str] | None = None,
    most_machines: int | None = None,
    workload: str | None = None,
    draws: int = 4000,
    seed: int = 1,
) -> ScaleAdvice:
    """Compare every way that is known to do ``job``.

    ``like`` has servers that were not measured, each with the measured one that it has more of. Raises NoWayError when
    no way is known or none is in time, CatalogueError for servers that are not in it, RackscopeError for what
    cannot be.
    """
    known, refused = JobWays(evidence, catalogue, workload, draws, seed).known(like or {}, most_machines)
    priced: list[Priced] = []
    for one in known:
        found, why_not = _priced(one, job, draws, seed)
        priced += found
        refused += why_not
    if not priced:
        raise NoWayError(
            f"no way is known to do {format_bytes(job.data_bytes)}: {'; '.join(refused)}",
            "Measure nearer to it, or more machines.",
        )
    able = [one for one in priced if one.in_time is None or one.in_time >= scale_choice.SURE]
    if not able:
        best = min(priced, key=lambda one: one.seconds.value)
        raise NoWayError(
            f"no way does {format_bytes(job.data_bytes)} within {format_duration(job.deadline_seconds or 0)} in "
            f"{scale_choice.SURE:.0%} of the draws: the fastest is {best.name}, in "
            f"{format_duration(best.seconds.value)} ({format_duration(best.seconds.low)} to "
            f"{format_duration(best.seconds.high)})",
            "Allow more time, or measure more machines.",
        )
    with_prices = all(one.cost is not None for one in able)
    shown = _shown(able, with_prices)
    changes = tuple(
        change
        for what in (("cost", "time") if with_prices else ("time",))
        if (change := _change(what, shown, known, job, draws, seed)) is not None
    )
    rows = _rows(shown, with_prices)
    walls = tuple(ServerWall(one.server, one.wall, one.memory_stands_on) for one in known if one.wall is not None)
    cost_is = "of a job" if job.jobs_per_day is None else "a year"
    left_out = tuple(dict.fromkeys(one.no_cost for one in known if one.no_cost))
    return ScaleAdvice(
        job,
        catalogue.currency,
        cost_is,
        rows,
        walls,
        changes,
        sentences(catalogue.currency, job, shown, rows, walls, changes, known),
        tuple(refused),
        left_out,
    )


def _priced(known: Known, job: Job, draws: int, seed: int) -> tuple[list[Priced], list[str]]:
    found: list[Priced] = []
    reasons: dict[str, int] = {}
    for way in known.ways:
        try:
            seconds = way.predict(job.data_bytes)
        except ProjectionRefused as refusal:
            reasons[refusal.what] = max(way.machines, reasons.get(refusal.what, 0))
            continue
        mean = scale_choice.draw_means(way, [job.data_bytes], draws, seed)[:, 0]
        in_time = None
        if job.deadline_seconds is not None:
            in_time = float((scale_choice.draw_jobs(way, job.data_bytes, draws, seed) <= job.deadline_seconds).mean())
        cost = None if known.year is None else amount_of(known.year, way, mean, job)
        groups = 1 if job.jobs_per_day is None else int(scale_choice.groups_for(mean, job.jobs_per_day))
        found.append(Priced(way, known, seconds, mean, cost, groups, in_time))
    if found or not reasons:
        return found, []
    most = max(reasons.values())
    return [], [f"{known.said(most)}: {next(why for why, count in reasons.items() if count == most)}"]


def amount_of(year: scale_choice.MachineYear, way: Way, seconds: Array, job: Job) -> Array:
    """Money of a job, or of a year of all of them, draw by draw."""
    if job.jobs_per_day is None:
        return scale_choice.cost_of_job(year, way.machines, seconds)
    return scale_choice.cost_of_year(year, way.machines, seconds, job.jobs_per_day)


def _shown(able: Sequence[Priced], with_prices: bool) -> list[Priced]:
    """Of each server alone and of each kind of cluster the best by cost and by time; the best of all first."""

    def by_time(one: Priced) -> tuple[float, int]:
        return one.seconds.value, one.way.machines

    def by_cost(one: Priced) -> tuple[float, int]:
        assert one.cost is not None
        return float(np.median(one.cost)), one.way.machines

    orders = (by_cost, by_time) if with_prices else (by_time,)
    found: list[Priced] = []
    for family in dict.fromkeys((one.way.family, one.way.server) for one in able):
        own = [one for one in able if (one.way.family, one.way.server) == family]
        # By identity: arrays are not compared.
        found += {id(best): best for best in (min(own, key=order) for order in orders)}.values()
    return sorted(found, key=orders[0])


def _rows(shown: Sequence[Priced], with_prices: bool) -> tuple[ScaleRow, ...]:
    def share_least(columns: Sequence[Array]) -> Array:
        least = np.stack(columns, axis=1).argmin(axis=1)
        return np.asarray(np.bincount(least, minlength=len(columns)) / len(least))

    fastest = share_least([one.mean for one in shown])
    cheapest = share_least([one.cost for one in shown if one.cost is not None]) if with_prices else None
    return tuple(
        ScaleRow(
            one.name,
            one.way.server,
            one.way.machines,
            one.groups,
            one.seconds,
            one.in_time,
            None if one.cost is None else summarise(one.cost),
            float(fastest[place]),
            None if cheapest is None else float(cheapest[place]),
            one.known.stands_on,
        )
        for place, one in enumerate(shown)
    )


def _change(
    what: str, shown: Sequence[Priced], servers: Sequence[Known], job: Job, draws: int, seed: int
) -> Change | None:
    """Where the best of one kind and of the other change places, over all sizes that both are known to do."""
    one, cluster = (_kind(what, shown, servers, kind) for kind in (OneServer, ClusterOf))
    if one is None or cluster is None:
        return None
    alone = one.ways[0]
    smallest = alone.model.smallest_bytes if isinstance(alone, OneServer) else job.data_bytes
    largest = min(max(way.largest_bytes for way in known.ways) for known in (one, cluster))
    if not smallest < largest:
        return None
    sizes = [float(size) for size in np.geomspace(smallest, largest, _SIZES)]
    curves = []
    for known in (one, cluster):
        year = known.year

        def amount(way: Way, seconds: Array, year: scale_choice.MachineYear | None = year) -> Array:
            if what == "time":
                return seconds
            assert year is not None
            return amount_of(year, way, seconds, job)

        def score(way: Way, size: float, year: scale_choice.MachineYear | None = year) -> float:
            seconds = way.factor.middle * way.fit.value(way.terms(size))
            if what == "time" or year is None:
                return seconds
            return float(np.median(amount_of(_typical(year), way, np.array([seconds]), job)))

        curves.append(scale_choice.chosen_curve(_thinned(known.ways), sizes, score, amount, draws, seed))
    both = np.asarray(np.isfinite(curves[0]).all(axis=0) & np.isfinite(curves[1]).all(axis=0))
    used = [size for size, known_by_both in zip(sizes, both, strict=True) if known_by_both]
    if len(used) < 2:
        return None
    at = scale_choice.crossing(
        used, curves[0][:, both], curves[1][:, both], min(max(job.data_bytes, used[0]), used[-1])
    )
    one_at_first = float((curves[0][:, both][:, 0] < curves[1][:, both][:, 0]).mean())
    return Change(what, one.server, cluster.server, used[0], used[-1], one_at_first, at)


def _kind(
    what: str, shown: Sequence[Priced], servers: Sequence[Known], kind: type[OneServer] | type[ClusterOf]
) -> Known | None:
    """The best that is shown of a kind; where its wall lets none of them do the job, that with the furthest wall."""
    own = [one for one in shown if isinstance(one.way, kind)]
    if what == "time":
        own.sort(key=lambda one: one.seconds.value)
    best = next((one.known for one in own), None)
    others = [one for one in servers if isinstance(one.ways[0], kind) and (what == "time" or one.year is not None)]
    return best or max(others, key=lambda one: one.ways[-1].largest_bytes, default=None)


def _typical(year: scale_choice.MachineYear) -> scale_choice.MachineYear:
    return scale_choice.MachineYear(
        *(np.array([np.median(part)]) for part in (year.standing, year.power_busy, year.power_idle))
    )


def _thinned(ways: Sequence[Way]) -> list[Way]:
    if len(ways) <= _COUNTS:
        return list(ways)
    few = _COUNTS // 2
    step = (ways[-1].machines / few) ** (1 / (_COUNTS - few))
    counts = {*range(1, few + 1), *(round(few * step**place) for place in range(_COUNTS - few + 1))}
    return [way for way in ways if way.machines in counts]
