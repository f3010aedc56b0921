"""The pictures of ``study access``: over the share of writes, over cores, over skew, and each mode against EREW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.studies.access.plan import ACCESS_MODES, Setting, cores_words
from rackscope.studies.access.summary import is_useful, typical_writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rackscope.analysis.intervals import Interval
    from rackscope.runs.study import Chart, Series
    from rackscope.studies.access.plan import Plan
    from rackscope.studies.access.summary import Summary

_MEDIANS = "Medians over rounds, with their 95 % intervals."


def make_charts(plan: Plan, summary: Summary) -> list[Chart]:
    """Those for which there is something to draw."""
    if not summary.cells:
        return []
    charts = [_over_writes(plan, summary, theta) for theta in plan.thetas]
    charts += [_over_cores(plan, summary, theta) for theta in plan.thetas]
    charts += [_over_skew(plan, summary), _against(plan, summary)]
    return [chart for chart in charts if chart is not None and any(series.x for series in chart.series)]


def _over_writes(plan: Plan, summary: Summary, theta: float | None) -> Chart | None:
    from rackscope.runs.study import Axis, Chart

    if len(plan.writes) < 2:
        return None
    cores = max(plan.cores)
    settings = [Setting(cores, theta, writes) for writes in plan.writes]
    return Chart(
        identifier=f"writes-{_word(theta)}",
        title=f"Over the share of writes: {settings[0].keys} keys, {cores_words(cores)}",
        caption=_MEDIANS,
        x=Axis(label="writes", scale="category", categories=[f"{writes} %" for writes in plan.writes]),
        y=Axis(label="throughput", unit="operations/s"),
        series=_lines(summary, settings, [float(place) for place in range(len(settings))]),
    )


def _over_cores(plan: Plan, summary: Summary, theta: float | None) -> Chart | None:
    from rackscope.runs.study import Axis, Chart

    if len(plan.cores) < 2:
        return None
    settings = [Setting(cores, theta, typical_writes(plan)) for cores in plan.cores]
    return Chart(
        identifier=f"cores-{_word(theta)}",
        title=f"Over cores: {settings[0].mix}",
        caption=_MEDIANS,
        x=Axis(label="cores", unit="count", scale="logarithmic"),
        y=Axis(label="throughput", unit="operations/s"),
        series=_lines(summary, settings, [float(cores) for cores in plan.cores]),
    )


def _lines(summary: Summary, settings: Sequence[Setting], places: Sequence[float]) -> list[Series]:
    """A line for each access mode."""
    return [
        _series(
            access,
            [
                (place, summary.cells[access, setting].median)
                for place, setting in zip(places, settings, strict=True)
                if (access, setting) in summary.cells
            ],
            "line",
        )
        for access in ACCESS_MODES
    ]


def _over_skew(plan: Plan, summary: Summary) -> Chart | None:
    """What skew does to each mode, at every share of writes."""
    from rackscope.analysis.intervals import ratio_of_means
    from rackscope.runs.study import Axis, Chart, Reference

    cores, (even, skewed) = max(plan.cores), (plan.thetas[0], plan.thetas[-1])
    if even == skewed:
        return None
    series = []
    for access in ACCESS_MODES:
        known = [
            (float(place), ratio_of_means(summary.cells[access, after].rates, summary.cells[access, before].rates))
            for place, writes in enumerate(plan.writes)
            if (access, after := Setting(cores, skewed, writes)) in summary.cells
            and (access, before := Setting(cores, even, writes)) in summary.cells
        ]
        series.append(_series(access, known, "points"))
    name = Setting(cores, skewed, 0).keys
    return Chart(
        identifier="skew",
        title=f"What skew does: {name} keys against uniform ones, {cores_words(cores)}",
        caption="Ratio of mean throughputs, with its 95 % interval.",
        x=Axis(label="writes", scale="category", categories=[f"{writes} %" for writes in plan.writes]),
        y=Axis(label=f"throughput with {name} over uniform keys", scale="logarithmic"),
        series=series,
        references=[Reference(label="the same", value=1.0)],
    )


def _against(plan: Plan, summary: Summary) -> Chart | None:
    """The other modes over EREW, in every mix."""
    from rackscope.runs.study import Axis, Chart, Reference, Series

    cores = max(plan.cores)
    settings = summary.settings(cores)
    if not settings:
        return None
    series = [
        _series(
            access,
            [(float(place), summary.ratio(setting, access, "EREW").ratio) for place, setting in enumerate(settings)],
            "points",
        )
        for access in ACCESS_MODES[1:]
    ]
    # Drawn too, so that a mode has the same colour in every picture.
    places = [float(place) for place in range(len(settings))]
    itself = Series(label="EREW", x=places, y=[1.0] * len(places), kind="points")
    return Chart(
        identifier="against-erew",
        title=f"CREW and CRCW against EREW, {cores_words(cores)}",
        caption="Ratio of mean throughputs, with an interval that holds for all comparisons of the study together.",
        x=Axis(
            label="keys, writes",
            scale="category",
            categories=[f"{setting.keys.split()[0]} {setting.writes_percent}%" for setting in settings],
        ),
        y=Axis(label="throughput over that of EREW", scale="logarithmic"),
        series=[itself, *series],
        references=[Reference(label="as EREW", value=1.0)],
    )


def _series(label: str, known: Sequence[tuple[float, Interval]], kind: str) -> Series:
    from rackscope.runs.study import Series

    return Series.model_validate(
        {
            "label": label,
            "x": [place for place, _ in known],
            "y": [interval.estimate for _, interval in known],
            "low": [interval.low if is_useful(interval) else None for _, interval in known],
            "high": [interval.high if is_useful(interval) else None for _, interval in known],
            "kind": kind,
        }
    )


def _word(theta: float | None) -> str:
    return "uniform" if theta is None else "zipf"
