"""The charts of ``study access``: over writes, over cores, over skew, and each mode against EREW."""

from __future__ import annotations

from collections.abc import Sequence

from rackscope.analysis.intervals import ratio_of_means
from rackscope.runs.study import Chart, Series
from rackscope.studies.access.plan import ACCESS_MODES, Plan, Setting
from rackscope.studies.access.summary import Summary, typical_writes
from rackscope.studies.kit import axis, chart, counted, drawable, estimates, line, reference

_MEDIANS = "Medians over rounds, with their 95 % intervals."


def make_charts(plan: Plan, summary: Summary) -> list[Chart]:
    """Those for which there is something to draw."""
    if not summary.cells:
        return []
    charts = [_over_writes(plan, summary, theta) for theta in plan.thetas]
    charts += [_over_cores(plan, summary, theta) for theta in plan.thetas]
    charts += [_over_skew(plan, summary), _against(plan, summary)]
    return [one for one in charts if one is not None and any(series.x for series in one.series)]


def _over_writes(plan: Plan, summary: Summary, theta: float | None) -> Chart | None:
    if len(plan.writes) < 2:
        return None
    cores = max(plan.cores)
    settings = [Setting(cores, theta, writes) for writes in plan.writes]
    return chart(
        f"writes-{_word(theta)}",
        f"Over the percentage of writes: {settings[0].keys} keys, {counted(cores, 'core')}",
        axis("writes", categories=[f"{writes} %" for writes in plan.writes]),
        axis("throughput", "operations/s"),
        _lines(summary, settings, [float(at) for at in range(len(settings))]),
        caption=_MEDIANS,
    )


def _over_cores(plan: Plan, summary: Summary, theta: float | None) -> Chart | None:
    if len(plan.cores) < 2:
        return None
    settings = [Setting(cores, theta, typical_writes(plan)) for cores in plan.cores]
    return chart(
        f"cores-{_word(theta)}",
        f"Over cores: {settings[0].mix}",
        axis("cores", "count", logarithmic=True),
        axis("throughput", "operations/s"),
        _lines(summary, settings, [float(cores) for cores in plan.cores]),
        caption=_MEDIANS,
    )


def _lines(summary: Summary, settings: Sequence[Setting], positions: Sequence[float]) -> list[Series]:
    """A line for each access mode."""
    series = []
    for access in ACCESS_MODES:
        cells = [summary.cells.get((access, setting)) for setting in settings]
        known = [(at, drawable(cell.median)) for at, cell in zip(positions, cells, strict=True) if cell is not None]
        series.append(estimates(access, known, "line"))
    return series


def _over_skew(plan: Plan, summary: Summary) -> Chart | None:
    """What skew does to each mode, at every percentage of writes."""
    cores, (even, skewed) = max(plan.cores), (plan.thetas[0], plan.thetas[-1])
    if even == skewed:
        return None
    series = []
    for access in ACCESS_MODES:
        pairs = [
            tuple(summary.cells.get((access, Setting(cores, theta, writes))) for theta in (skewed, even))
            for writes in plan.writes
        ]
        known = [
            (float(at), drawable(ratio_of_means(after.rates, before.rates)))
            for at, (after, before) in enumerate(pairs)
            if after is not None and before is not None
        ]
        series.append(estimates(access, known))
    name = Setting(cores, skewed, 0).keys
    return chart(
        "skew",
        f"Effect of skew: {name} keys against uniform ones, {counted(cores, 'core')}",
        axis("writes", categories=[f"{writes} %" for writes in plan.writes]),
        axis(f"throughput with {name} keys / with uniform keys", logarithmic=True),
        series,
        caption="Ratio of mean throughputs, with its 95 % interval.",
        references=[reference("the same", 1.0)],
    )


def _against(plan: Plan, summary: Summary) -> Chart | None:
    """The other modes over EREW, in every mix."""
    cores = max(plan.cores)
    settings = summary.settings(cores)
    if not settings:
        return None
    positions = [float(at) for at in range(len(settings))]
    # Drawn too, so that a mode has the same colour in every picture.
    series = [line("EREW", positions, [1.0] * len(positions), "points")]
    for access in ACCESS_MODES[1:]:
        ratios = [drawable(summary.ratio(setting, access, "EREW").ratio) for setting in settings]
        series.append(estimates(access, zip(positions, ratios, strict=True)))
    return chart(
        "against-erew",
        f"CREW and CRCW against EREW, {counted(cores, 'core')}",
        axis("keys, writes", categories=[f"{one.keys.split()[0]} {one.writes_percent}%" for one in settings]),
        axis("throughput / throughput of EREW", logarithmic=True),
        series,
        caption="Ratio of mean throughputs, with an interval that holds for all comparisons of the study together.",
        references=[reference("as EREW", 1.0)],
    )


def _word(theta: float | None) -> str:
    return "uniform" if theta is None else "zipf"
