"""The charts of ``study access``: over writes, over cores, over skew, and each mode against EREW."""

from __future__ import annotations

from collections.abc import Mapping

from rackscope.analysis.intervals import Interval, ratio_of_means
from rackscope.analysis.wording import listing
from rackscope.runs.study import Axis, Chart
from rackscope.studies.access.plan import Plan, Setting
from rackscope.studies.access.summary import Summary, typical_writes
from rackscope.studies.kit import axis, chart, counted, drawable, estimates_by, line, reference


def make_charts(plan: Plan, summary: Summary) -> list[Chart]:
    """Those for which there is something to draw."""
    if not summary.cells:
        return []
    charts = [*_over_writes(plan, summary), *_over_cores(plan, summary), _over_skew(plan, summary)]
    charts.append(_against(plan, summary))
    return [one for one in charts if one is not None and any(series.x for series in one.series)]


def _over_writes(plan: Plan, summary: Summary) -> list[Chart]:
    cores, x = max(plan.cores), axis("writes", categories=[f"{writes} %" for writes in plan.writes])
    charts = []
    for theta in plan.thetas if len(plan.writes) > 1 else ():
        settings = {Setting(cores, theta, writes): float(at) for at, writes in enumerate(plan.writes)}
        title = f"Over the percentage of writes: {Setting(cores, theta, 0).keys} keys, {counted(cores, 'core')}"
        charts.append(_lines(f"writes-{_word(theta)}", title, x, plan, summary, settings))
    return charts


def _over_cores(plan: Plan, summary: Summary) -> list[Chart]:
    writes, x = typical_writes(plan), axis("cores", "count", logarithmic=True)
    charts = []
    for theta in plan.thetas if len(plan.cores) > 1 else ():
        settings = {Setting(cores, theta, writes): float(cores) for cores in plan.cores}
        title = f"Over cores: {next(iter(settings)).mix}"
        charts.append(_lines(f"cores-{_word(theta)}", title, x, plan, summary, settings))
    return charts


def _lines(
    identifier: str, title: str, x: Axis, plan: Plan, summary: Summary, settings: Mapping[Setting, float]
) -> Chart:
    """A line for each structure, over the positions of the settings."""

    def median(access: str, setting: Setting) -> Interval | None:
        cell = summary.cells.get((access, setting))
        return None if cell is None else drawable(cell.median)

    y, series = axis("throughput", "operations/s"), estimates_by(plan.structures, settings, median, "line")
    return chart(identifier, title, x, y, series, caption="Medians over rounds, with their 95 % intervals.")


def _over_skew(plan: Plan, summary: Summary) -> Chart | None:
    """What skew does to each structure, at every percentage of writes."""
    cores, (even, skewed) = max(plan.cores), (plan.thetas[0], plan.thetas[-1])
    if even == skewed:
        return None

    def ratio(access: str, writes: int) -> Interval | None:
        after, before = (summary.cells.get((access, Setting(cores, theta, writes))) for theta in (skewed, even))
        return drawable(ratio_of_means(after.rates, before.rates)) if after and before else None

    name = Setting(cores, skewed, 0).keys
    return chart(
        "skew",
        f"Effect of skew: {name} keys against uniform ones, {counted(cores, 'core')}",
        axis("writes", categories=[f"{writes} %" for writes in plan.writes]),
        axis(f"throughput with {name} keys / with uniform keys", logarithmic=True),
        estimates_by(plan.structures, plan.writes, ratio),
        caption="Ratio of mean throughputs, with its 95 % interval.",
        references=[reference("the same", 1.0)],
    )


def _against(plan: Plan, summary: Summary) -> Chart | None:
    """The others over EREW, in every mix."""
    cores = max(plan.cores)
    settings = summary.settings(cores)
    if not settings:
        return None

    def ratio(access: str, setting: Setting) -> Interval | None:
        known = (setting, access, "EREW") in summary.comparisons
        return drawable(summary.ratio(setting, access, "EREW").ratio) if known else None

    positions = [float(at) for at in range(len(settings))]
    # Drawn too, so that a mode has the same colour in every picture.
    series = [line("EREW", positions, [1.0] * len(positions), "points")]
    series += estimates_by(plan.structures[1:], settings, ratio)
    return chart(
        "against-erew",
        f"{listing(plan.structures[1:])} against EREW, {counted(cores, 'core')}",
        axis("keys, writes", categories=[f"{one.keys.split()[0]} {one.writes_percent}%" for one in settings]),
        axis("throughput / throughput of EREW", logarithmic=True),
        series,
        caption="Ratio of mean throughputs, with an interval that holds for all comparisons of the study together.",
        references=[reference("as EREW", 1.0)],
    )


def _word(theta: float | None) -> str:
    return "uniform" if theta is None else "zipf"
