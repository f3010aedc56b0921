"""What the comparison of ways says, each sentence with what it stands on and what would change it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rackscope.advice.cost import Advice
from rackscope.advice.job_ways import Known
from rackscope.advice.scale_types import Change, Job, Priced, ScaleRow, ServerWall
from rackscope.models.cost import CONFIDENCE, Amount
from rackscope.models.estimates import Prediction
from rackscope.models.job_time import next_job
from rackscope.units import format_bytes, format_duration

#: A crossing in fewer of the draws is not worth a sentence, and one in more of them is sure.
_FEW, _MOST = 0.05, 0.95
_EVEN = 0.5
#: Mean times known within 1 % (one deviation) are not worth another job.
_WIDE = 0.01
_INTERVAL = f"{100 * CONFIDENCE:.0f} %"


def money(amount: Amount, currency: str) -> str:
    """``1,234 USD (90 % of the draws: 1,100 to 1,400)``."""
    value, low, high = (figure(one) for one in (amount.value, amount.low, amount.high))
    return f"{value} {currency} ({_INTERVAL} of the draws: {low} to {high})"


def figure(value: float) -> str:
    """Three digits of small numbers, all of large ones."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def time_words(seconds: Prediction) -> str:
    """``12.0 s (90 %: 11.0 s to 13.0 s)``."""
    value, low, high = (spell(one) for one in (seconds.value, seconds.low, seconds.high))
    return f"{value} ({_INTERVAL}: {low} to {high})"


def draws_share(share: float) -> str:
    """``in 97.3 % of the draws``."""
    return "in all draws" if share == 1 else f"in {100 * share:.1f} % of the draws"


def spell(seconds: float) -> str:
    """Hours and minutes where seconds would be too many to read."""
    factor, unit = _unit(seconds)
    return f"{seconds / factor:.3g} {unit}" if unit else format_duration(seconds)


def spell_between(value: float, low: float, high: float) -> str:
    """``4.1 to 4.3``, in the unit in which ``spell`` writes ``value``."""
    factor, unit = _unit(value)
    if unit or value >= 1:
        return f"{low / (factor or 1):.3g} to {high / (factor or 1):.3g}"
    return f"{format_duration(low)} to {format_duration(high)}"


def _unit(seconds: float) -> tuple[float, str]:
    for unit, factor in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * factor:
            return factor, unit
    return 0.0, ""


def sentences(
    currency: str,
    job: Job,
    shown: Sequence[Priced],
    rows: Sequence[ScaleRow],
    walls: Sequence[ServerWall],
    changes: Sequence[Change],
    servers: Sequence[Known],
) -> tuple[Advice, ...]:
    """The cheapest, the fastest, the walls, and what would make the first surer."""
    found = []
    if rows[0].cost is not None:
        found.append(_cheapest(currency, job, shown, rows, changes))
    if not found or len(rows) > 1:
        found.append(_fastest(job, rows, changes))
    found += [_wall(one, servers) for one in walls]
    found += _to_measure(job, shown)
    return tuple(found)


def _cheapest(
    currency: str, job: Job, shown: Sequence[Priced], rows: Sequence[ScaleRow], changes: Sequence[Change]
) -> Advice:
    best = rows[0]
    assert best.cost is not None
    price = f"{money(best.cost, currency)} {_per(job)}"
    rival = _rival(rows, shown, best)
    against, stands_on, tie = "", best.stands_on, ""
    if rival is not None and rival.cost is not None:
        sure = _cheaper_share(shown, rows, best, rival)
        against = (
            f" {rival.name} costs {figure(rival.cost.value)} {currency}: {best.name} is cheaper {draws_share(sure)}."
        )
        stands_on = _joined(best, rival)
        if best.cost.value > 0:
            tie = (
                f" They cost the same when a year of {best.server} costs {rival.cost.value / best.cost.value:.2f} "
                "times what it does."
            )
    takes = f"a job takes {time_words(best.seconds)}"
    return Advice(
        f"{best.name}{_how(best)} is the cheapest that is known for {format_bytes(job.data_bytes)}{_by(job)}: {price}; "
        f"{takes}.{against}",
        stands_on,
        _changes("cost", "cheaper", job, rows, best, changes) + tie,
    )


def _fastest(job: Job, rows: Sequence[ScaleRow], changes: Sequence[Change]) -> Advice:
    best = min(rows, key=lambda one: one.seconds.value)
    second = min((one for one in rows if one is not best), key=lambda one: one.seconds.value, default=None)
    share = draws_share(best.fastest)
    against = "."
    if second is not None:
        against = f", {share} the fastest; {second.name} takes {time_words(second.seconds)}."
    return Advice(
        f"{best.name}{_how(best)} is the fastest that is known for {format_bytes(job.data_bytes)}: "
        f"{time_words(best.seconds)}{against}",
        best.stands_on if second is None else _joined(best, second),
        _changes("time", "faster", job, rows, best, changes),
    )


def _changes(
    what: str, word: str, job: Job, rows: Sequence[ScaleRow], best: ScaleRow, changes: Sequence[Change]
) -> str:
    change = next((one for one in changes if one.what == what), None)
    if change is None:
        several = {one.machines > 1 for one in rows}
        if len(several) > 1:
            return f"Other sizes, at which both kinds were measured, may change which is {word}."
        missing = "jobs on one server alone" if several == {True} else "jobs on clusters"
        return f"It changes if another way is {word}: {missing} were not measured, or not near to this size."
    span = f"between {format_bytes(change.from_bytes)} and {format_bytes(change.to_bytes)}"
    kinds = (f"1 x {change.one} is", f"clusters of {change.cluster} are")
    if change.one_at_first < _EVEN:
        kinds = kinds[::-1]
    at = change.at
    if at is None or at.share < _FEW:
        text = f"No size {span} changes it: {kinds[0]} {word}."
    else:
        likely = "" if at.share >= _MOST else f", if at all (it does in {100 * at.share:.0f} % of the draws)"
        text = (
            f"It changes at {format_bytes(at.value)} of data ({_INTERVAL}: {format_bytes(at.low)} to "
            f"{format_bytes(at.high)}){likely}: below, {kinds[0]} {word}, above, {kinds[1]} (compared {span})."
        )
    if job.data_bytes > change.to_bytes * (1 + 1e-9):
        alone = best.machines == 1 and best.server == change.one
        here = f"1 x {change.one} is" if alone else f"clusters of {change.cluster} are"
        return (
            f"Past {format_bytes(change.to_bytes)} only {here} known to do the job. Before: {text[0].lower()}{text[1:]}"
        )
    return text


def _wall(one: ServerWall, servers: Sequence[Known]) -> Advice:
    wall = one.wall
    shared = ""
    cluster = next((known for known in servers if known.server == one.server and len(known.ways) > 1), None)
    if cluster is not None:
        shared = " Each machine of a cluster has that wall for its part of the data."
    return Advice(
        f"The wall of {one.server} is at {format_bytes(wall.bytes)} of data ({_INTERVAL} of the draws: "
        f"{format_bytes(wall.low_bytes)} to {format_bytes(wall.high_bytes)}), where its "
        f"{format_bytes(wall.memory_bytes)} of memory are full.{shared}",
        one.stands_on,
        "It moves in proportion with memory, and with how much of it a byte of data takes.",
    )


def _to_measure(job: Job, shown: Sequence[Priced]) -> list[Advice]:
    """One more job on that of the ways that are shown whose mean time is known least."""

    def width(one: Priced) -> float:
        return float(np.std(np.log(one.mean)))

    worst = max(shown, key=width)
    place = next_job(worst.way, job.data_bytes)
    if place is None or width(worst) < _WIDE:
        return []
    machines, size, left = place
    return [
        Advice(
            f"Of one more job, {machines} x {worst.way.server} over {format_bytes(size)} would narrow the interval of "
            f"{worst.name}'s mean time the most: to {100 * left:.0f} % of its width.",
            worst.known.stands_on,
            "It assumes that the model's form holds, and that jobs scatter as they did.",
        )
    ]


def _rival(rows: Sequence[ScaleRow], shown: Sequence[Priced], best: ScaleRow) -> ScaleRow | None:
    """The cheapest of the other kind; else the next of another server."""
    kind = type(shown[rows.index(best)].way)
    others = [row for row, one in zip(rows, shown, strict=True) if type(one.way) is not kind]
    return next(iter(others or [row for row in rows if row.server != best.server]), None)


def _cheaper_share(shown: Sequence[Priced], rows: Sequence[ScaleRow], best: ScaleRow, rival: ScaleRow) -> float:
    first, second = shown[rows.index(best)].cost, shown[rows.index(rival)].cost
    assert first is not None
    assert second is not None
    return float((first < second).mean())


def _joined(first: ScaleRow, second: ScaleRow) -> str:
    return f"{first.name}: {first.stands_on}. {second.name}: {second.stands_on}"


def _how(row: ScaleRow) -> str:
    groups = f" in {row.groups} groups of {row.machines}" if row.groups > 1 and row.machines > 1 else ""
    beyond = " (outside of what was measured: the model's form is assumed to hold)" if row.seconds.extrapolated else ""
    return groups + beyond


def _per(job: Job) -> str:
    return "a job" if job.jobs_per_day is None else f"a year for {figure(job.jobs_per_day)} jobs a day"


def _by(job: Job) -> str:
    return "" if job.deadline_seconds is None else f" within {spell(job.deadline_seconds)}"
