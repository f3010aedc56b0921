"""What ``study slo`` found, as findings, tables, a chart and a result for programs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.crossing import FEWEST_BLOCKS
from rackscope.analysis.intervals import relative_half_width
from rackscope.analysis.latency_curve import CurvePoint, Knee, check_little, find_knee
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.study import Chart, Finding, StudyRecord, Table
from rackscope.studies.bench.bounds import FEWEST_BEYOND, QUANTILES
from rackscope.studies.bench.windows import Window
from rackscope.studies.kit import axis, chart, finding, line, note, picked, reference, table_of, warning, when
from rackscope.studies.slo.capacity import Capacity
from rackscope.units import format_duration

#: An interval this wide (half of it, of the rate) is worth a warning.
_WIDE = 0.05
#: Fraction of the rate around the crossing within which missed windows tell what the limit was.
_AROUND = 0.12


@dataclass(frozen=True)
class Subject:
    """What was measured, as sentences name it; ``connections`` with up to ``depth`` requests each."""

    system: str
    workload: str
    stage: str
    connections: int
    depth: int


@dataclass(frozen=True)
class Point:
    """One rate of the curve: medians over its windows."""

    offered: float
    windows: tuple[Window, ...]
    met: int
    little: str
    ratio: float | None = None

    def median(self, name: str) -> float | None:
        """Median of an attribute of the windows."""
        return _median([getattr(one, name) for one in self.windows])

    def quantile(self, name: str) -> float | None:
        """Median of a quantile of the response time."""
        return _median([one.response_seconds[name] for one in self.windows])


def fill(
    record: StudyRecord, found: Capacity, subject: Subject, service_means: Mapping[int, float] | None = None
) -> None:
    """Replace the record's findings, tables, chart, method and result by what is known now."""
    points = curve_points(found, subject, service_means or {})
    knee = _knee(found, points)
    record.findings = [*_results(found, subject, points, knee), *_doubts(found, subject, points)]
    record.tables = _table(found, points)
    record.charts = [_chart(found, points, knee)] if points else []
    record.method = _method(found, subject)
    record.result = _result(found, points, knee)


def curve_points(found: Capacity, subject: Subject, service_means: Mapping[int, float]) -> list[Point]:
    """The curve by rising rate; windows around the crossing are one point of it."""
    groups: dict[float, list[Window]] = {}
    for one in found.measured:
        rate = one.window.offered_per_second
        if rate is None:
            continue
        if one.purpose == "curve":
            groups.setdefault(rate, []).append(one.window)
        elif one.purpose == "near" and found.rate is not None and abs(rate / found.rate.estimate - 1) < _AROUND / 4:
            groups.setdefault(found.rate.estimate, []).append(one.window)
    points = []
    for rate, windows in sorted(groups.items()):
        ratio, verdict = _little(windows, subject, service_means)
        met = sum(found.met(window) for window in windows)
        points.append(Point(rate, tuple(windows), met, verdict, ratio))
    return points


def _little(
    windows: Sequence[Window], subject: Subject, service_means: Mapping[int, float]
) -> tuple[float | None, str]:
    """Little's law for an open loop: what is offered completes, and connections hold all outstanding requests.

    The number of outstanding requests is not measured there; throughput times mean service time cannot be more than
    what the connections carry.
    """
    most = subject.connections * subject.depth
    ratios = [
        window.achieved_per_second * service_means[window.number] / most
        for window in windows
        if window.number in service_means
    ]
    ratio = _median(ratios)
    if 2 * sum(window.offered_met for window in windows) < len(windows):
        return ratio, "not steady"
    if ratio is None:
        return None, "not checked"
    if ratio > 1 + packaged_thresholds().limit("little.tolerance"):
        return ratio, "broken: more requests in the system than its connections hold"
    return ratio, "holds"


def _knee(found: Capacity, points: Sequence[Point]) -> Knee | None:
    if found.outcome == "never met":
        # What is broken at every rate has no rate at which it breaks.
        return None
    return find_knee(
        [
            CurvePoint(
                achieved=point.median("achieved_per_second") or 0.0,
                latency_seconds=point.quantile(found.bound.quantile) or math.inf,
                offered=point.offered,
            )
            for point in points
        ]
    )


def _results(found: Capacity, subject: Subject, points: Sequence[Point], knee: Knee | None) -> list[Finding]:
    what = f"{subject.system}{f' ({subject.stage})' if subject.stage else ''}"
    if found.mostly_disturbed:
        return [_under_interference(found, what)]
    return [*_outcome(found, what, knee), *_knee_findings(found, points, knee)]


def _outcome(found: Capacity, what: str, knee: Knee | None) -> list[Finding]:
    bound = found.bound.describe()
    where = f"; its knee is at {_rate(knee.throughput)} operations/s" if knee else ""
    if found.outcome == "found" and found.rate is not None:
        span = _span(found.rate.low, found.rate.high)
        return [
            finding(
                f"{what} keeps {bound} up to {_rate(found.rate.estimate)} operations/s{span}{where}.", _evidence(found)
            ),
            *when(_top_is_the_limit(found), note(f"Above that rate {what} completes fewer requests than are offered.")),
        ]
    if found.outcome == "never met":
        lowest = min((one.window for one in found.measured if one.purpose == "search"), key=_offered, default=None)
        at = f"{_rate(_offered(lowest))} operations/s, the lowest rate tried" if lowest else "the lowest rate"
        value = found.value(lowest) if lowest else None
        seen = f": there it is {format_duration(value)}" if value is not None else ""
        return [warning(f"{what} does not keep {bound} even at {at}{seen}.")]
    if found.outcome == "met at the top":
        most = max(one.window.achieved_per_second for one in found.measured if one.purpose != "probe")
        return [
            finding(
                f"{what} keeps {bound} at every rate that could be offered, up to {_rate(most)} operations/s{where}: "
                "the bound is not what limits it."
            )
        ]
    return [finding(f"No rate was found yet at which {what} keeps {bound}.")]


def _knee_findings(found: Capacity, points: Sequence[Point], knee: Knee | None) -> list[Finding]:
    if knee is None:
        flat = points and found.outcome in ("found", "met at the top")
        return when(flat, note("The curve shows no knee between the rates that were measured."))
    return [
        note(
            f"The knee of the curve is at {_rate(knee.throughput)} operations/s with a {found.bound.shown_quantile} of "
            f"{format_duration(knee.latency_seconds)}: above it latency grows faster than throughput.",
            f"Kneedle (Satopaa 2011) on {len(points)} points.",
        )
    ]


def _under_interference(found: Capacity, what: str) -> Finding:
    """What was seen is true of the time it was seen in, and of nothing else."""
    seen = "at no rate"
    if found.rate is not None:
        seen = f"up to {_rate(found.rate.estimate)} operations/s{_span(found.rate.low, found.rate.high)}"
    elif found.outcome == "met at the top":
        seen = "at every rate that could be offered"
    return warning(
        f"Too much interference to say what {what} sustains: under it, {what} kept {found.bound.describe()} {seen}.",
        _evidence(found),
    )


def _evidence(found: Capacity) -> str:
    if found.rate is not None and found.rate.low is not None:
        interval = f"95 % interval over {found.blocks} blocks spread over the measurement"
    elif found.blocks < FEWEST_BLOCKS:
        interval = f"no interval: {found.blocks} of at least {FEWEST_BLOCKS} blocks were measured"
    else:
        interval = f"seen in all of {found.blocks} blocks spread over the measurement"
    if not found.attempts:
        return f"{interval}."
    low = found.rate.low if found.rate is not None and found.rate.low is not None else None
    at = f" at {_rate(low)} operations/s" if low is not None else ""
    return f"{interval}; the bound was met in {found.confirmations} of {found.attempts} further windows{at}."


def _top_is_the_limit(found: Capacity) -> bool:
    missed = _missed_near(found)
    return bool(missed) and 2 * sum(not one.offered_met for one in missed) > len(missed)


def _missed_near(found: Capacity) -> list[Window]:
    """Windows that missed the bound around the rate; of a bound that was never met, all."""
    missed = [
        one.window for one in found.measured if one.window.offered_per_second is not None and not found.met(one.window)
    ]
    if found.rate is None:
        return missed
    return [one for one in missed if abs(_offered(one) / found.rate.estimate - 1) <= _AROUND]


def _doubts(found: Capacity, subject: Subject, points: Sequence[Point]) -> list[Finding]:
    quantile = found.bound.shown_quantile
    half = (relative_half_width(found.rate) if found.rate is not None else None) or 0.0
    broken = [*_closed_checks(found, subject), *(point.little for point in points if point.little.startswith("broken"))]
    thin = [p for p in points if sum(s.operations for s in p.windows) * found.bound.beyond < FEWEST_BEYOND]
    return [
        *_generator_doubts(found, subject),
        *when(
            half > _WIDE,
            warning(
                f"The rate is only known to ± {wording.percent(half)}: blocks measured at different times differ. "
                "Use a quieter host or a longer --budget."
            ),
        ),
        *when(
            found.attempts and found.sustained is None and found.outcome == "found",
            warning(
                f"At the lower end of the interval only {found.confirmations} of {found.attempts} windows met the "
                "bound, so no rate is confirmed. Choose a longer --budget, or plan with a lower rate."
            ),
        ),
        *when(
            found.kept_disturbed,
            warning(
                f"{found.kept_disturbed} windows count in spite of interference, as there were too few without. Use a "
                "quieter host."
            ),
        ),
        *(warning(f"Little's law does not hold in the curve: {one}. Do not trust the curve.") for one in broken[:1]),
        *when(
            thin,
            warning(
                f"At {len(thin)} of {len(points)} rates fewer than {FEWEST_BEYOND} requests were beyond {quantile}, so "
                f"{quantile} rests on few requests there. Choose a longer --budget."
            ),
        ),
    ]


def _closed_checks(found: Capacity, subject: Subject) -> list[str]:
    """What Little's law says against the closed-loop probes, whose number of requests is known."""
    against = []
    for one in found.measured:
        if one.purpose == "probe" and one.window.mean_seconds:
            point = CurvePoint(
                achieved=one.window.achieved_per_second,
                latency_seconds=found.value(one.window) or 0.0,
                mean_response_seconds=one.window.mean_seconds,
                mean_outstanding=float(subject.connections * subject.depth),
                errors=one.window.errors,
                operations=one.window.operations,
            )
            check = check_little(point)
            if check.agrees is False:
                against.append(check.reason)
    # One probe may have been cut by a pause; two of three are a fault.
    return against if len(against) > 1 else []


def generator_limited(found: Capacity) -> bool:
    """Whether the generator, and not the system, was full in most of the windows that missed the bound."""
    missed = _missed_near(found)
    return bool(missed) and 2 * sum(one.generator_full and not one.system_full for one in missed) > len(missed)


def _generator_doubts(found: Capacity, subject: Subject) -> list[Finding]:
    missed = _missed_near(found)
    if found.outcome not in ("found", "never met"):
        return []
    full = [one for one in missed if one.generator_full and not one.system_full]
    late = [one for one in missed if one not in full and sent_late(one, found)]
    of = f"of the {len(missed)} windows around the rate that missed the bound"
    if found.outcome == "never met":
        of = f"of the {len(missed)} windows, which all missed the bound"
    say = warning if generator_limited(found) else note
    return [
        *when(
            full,
            say(
                f"In {len(full)} {of} the load generator was fully busy while {subject.system} was not: "
                f"{subject.system} may sustain more. Give the load generator more cores (--client-cores)."
            ),
        ),
        *when(
            2 * len(late) > len(missed),
            warning(
                f"In {len(late)} {of} requests were sent late, and their service time was within the bound: the "
                f"{subject.connections} connections were all in use for a moment, or the load generator was preempted. "
                "Try more --connections, a quieter host or other --client-cores."
            ),
        ),
    ]


def sent_late(window: Window, found: Capacity) -> bool:
    """Whether the bound was missed before requests were sent, while it was served in time."""
    lag, service = window.lag_p99_seconds, window.service_p99_seconds
    if lag is None or service is None:
        return False
    return window.offered_met and service <= found.bound.seconds and lag > found.bound.seconds / 2


def _table(found: Capacity, points: Sequence[Point]) -> list[Table]:
    shown = [name for name in QUANTILES if name in ("p50", "p999", found.bound.quantile)]
    help_of_quantile = "response time from the intended start"
    return table_of(
        "curve",
        "Latency over throughput",
        points,
        [
            (("offered", "operations/s"), lambda one: one.offered),
            (("completed", "operations/s"), lambda one: one.median("achieved_per_second")),
            *(((name, "seconds", help_of_quantile), partial(Point.quantile, name=name)) for name in shown),
            (
                ("idle", "ratio", "fraction of its time for which the load generator waited"),
                lambda one: one.median("generator_idle_ratio"),
            ),
            (
                ("busy", "ratio", "fraction of its cores' time that the system used"),
                lambda one: one.median("system_busy_ratio"),
            ),
            (("met", "text", "windows that met the bound"), lambda one: f"{one.met} of {len(one.windows)}"),
            ("Little's law", lambda one: one.little),
        ],
        caption=f"Medians over windows; the bound is {found.bound.describe()}. Where the load is not steady, fewer "
        "requests completed than were offered.",
    )


def _chart(found: Capacity, points: Sequence[Point], knee: Knee | None) -> Chart:
    x = [point.median("achieved_per_second") or 0.0 for point in points]
    references = [reference(found.bound.describe(), found.bound.seconds)]
    if found.rate is not None:
        references.append(reference("met up to here", found.rate.estimate, "x"))
    if knee is not None:
        references.append(reference("knee", knee.throughput, "x"))
    return chart(
        "curve",
        "Latency over throughput",
        axis("completed", "operations/s", logarithmic=True),
        axis("response time", "seconds", logarithmic=True),
        [line(name, x, [point.quantile(name) for point in points]) for name in QUANTILES],
        caption="Response time from the intended start, medians over windows.",
        references=references,
    )


def _method(found: Capacity, subject: Subject) -> list[str]:
    lines = [
        f"One instance of {subject.system} under {subject.workload}, {subject.connections} connections. A closed loop "
        f"reached {_rate(found.top)} operations/s; then requests arrived open-loop (Poisson) at rates chosen by a "
        f"search, and in {found.blocks} blocks of rates around the result, mixed with the curve's in random order.",
        "The rate is where a window of load meets the bound half of the time, read from log latency over log rate; "
        "its interval is Student's t over blocks, with a slope common to all.",
    ]
    if found.discarded:
        reasons = wording.listing(sorted({one.interference for one in found.discarded}))
        total = len(found.discarded) + len(found.measured)
        lines.append(f"{len(found.discarded)} of {total} windows were discarded, whatever their result: {reasons}.")
    else:
        lines.append("No window was discarded.")
    return lines


def _result(found: Capacity, points: Sequence[Point], knee: Knee | None) -> dict[str, Any]:
    rate = found.rate if found.outcome == "found" else None
    medians = ("achieved_per_second", "mean_seconds", "lag_p99_seconds", "generator_idle_ratio", "system_busy_ratio")
    return {
        "bound": found.bound.describe(),
        "rate": rate and rate.estimate,
        "low": rate and rate.low,
        "high": rate and rate.high,
        "sustained_rate": found.sustained,
        "knee": knee and {"rate": knee.throughput, "latency_seconds": knee.latency_seconds},
        "discarded": len(found.discarded),
        "generator_limited": generator_limited(found),
        **picked(found, "outcome", "confirmations", "attempts", "top", "blocks", "kept_disturbed", "mostly_disturbed"),
        "curve": [
            {
                "offered_per_second": point.offered,
                **{name: point.median(name) for name in medians},
                **{name: point.quantile(name) for name in QUANTILES},
                "windows": len(point.windows),
                "met": point.met,
                "little": point.ratio,
                "little_verdict": point.little,
            }
            for point in points
        ],
    }


def _offered(window: Window) -> float:
    return window.offered_per_second or 0.0


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.median(known) if known else None


def _rate(value: float | None) -> str:
    """``61,200``: three significant digits; a fourth is noise."""
    if not value or not math.isfinite(value):
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if digits <= 0 else f"{rounded:g}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({_rate(low)} to {_rate(high)})"
