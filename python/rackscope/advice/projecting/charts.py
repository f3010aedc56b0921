"""Charts of projections: what was measured, the curve of the model, and the band in which 90 % would lie.

Each function gives a chart as data (``runs.study.Chart``); ``report.svg.write_chart_svg`` draws it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rackscope.advice.projecting.response import fit_mean, fit_p99, loads_of, stretched
from rackscope.advice.projecting.throughput import at_top_clock
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, Prediction
from rackscope.models.execution_time import fit_execution_time
from rackscope.models.power_over_frequency import fit_power_over_frequency
from rackscope.runs.study import Axis, Chart, Series

if TYPE_CHECKING:
    from rackscope.advice.measured_runs import Measurements
    from rackscope.advice.projecting.project import Projection
    from rackscope.advice.projecting.throughput import Throughput
    from rackscope.models.rated_power import RatedPowerModel

#: Enough for a smooth curve, and for it to be drawn without a dot at every point.
_STEPS = 90
#: More servers than this in one chart are not told apart.
_MOST_SERVERS = 6


def charts_of(projection: Projection) -> list[Chart]:
    """All that the runs and the servers allow."""
    found: list[Chart | None] = [throughput_chart(projection)]
    models = projection.models
    if models and models[0].core_scaling is not None:
        found.append(core_scaling_chart(projection.measured, models[0]))
    if models and models[0].execution_time is not None:
        found.append(frequency_chart(projection.measured, models[0]))
    found += [response_chart(projection), power_chart(projection), efficiency_over_load_chart(projection)]
    found.append(efficiency_over_frequency_chart(projection.measured))
    return [one for one in found if one is not None and any(series.x for series in one.series)]


def throughput_chart(projection: Projection) -> Chart:
    """Each server beside what was measured here."""
    points = at_top_clock(projection.measured.closed)
    most = max(one.cores for one in points)
    values = [value for one in points if one.cores == most for value in one.throughputs]
    cores = f"{most} core{'' if most == 1 else 's'}"
    names = [f"here, {cores}", *(f"{one.server.name}, {one.cores}" for one in projection.servers)]
    bars = Series(label="throughput", kind="bars", x=[], y=[], low=[], high=[], level=LEVEL)
    _add(bars, 0.0, Prediction(sum(values) / len(values), min(values), max(values), "", "", False))
    for at, one in enumerate(projection.servers, 1):
        answer = one.answer("throughput")
        if answer is not None and answer.prediction is not None:
            _add(bars, float(at), answer.prediction)
    return Chart(
        identifier="throughput",
        title="Throughput on each server",
        caption="Modelled, with the interval that 90 % of runs there would lie in; here, the range of repetitions. "
        "Beside each, its cores.",
        x=Axis(label="", scale="category", categories=names),
        y=Axis(label="throughput", unit="operations/s"),
        series=[bars],
    )


def core_scaling_chart(measured: Measurements, found: Throughput) -> Chart | None:
    """Throughput over cores: points, the law's curve as far as it may be followed, its band."""
    model = found.core_scaling
    if model is None:
        return None
    line = Series(label="scalability law, modelled", x=[], y=[], low=[], high=[], level=LEVEL)
    for count in range(1, 2 * max(model.most_cores, found.cores) + 1):
        try:
            _add(line, float(count), model.predict(count))
        except RackscopeError:
            break
    points = Series(label="measured", kind="points", x=[], y=[])
    for one in at_top_clock(measured.closed):
        points.x += [float(one.cores)] * len(one.throughputs)
        points.y += list(one.throughputs)
    return Chart(
        identifier="cores",
        title="Throughput over cores",
        caption="The curve ends where the model refuses to extrapolate; the band holds 90 % of further measurements.",
        x=Axis(label="cores", unit="count"),
        y=Axis(label="throughput", unit="operations/s"),
        series=[line, points],
    )


def frequency_chart(measured: Measurements, found: Throughput) -> Chart | None:
    """Core time of an operation over frequency."""
    model = found.execution_time
    if model is None:
        return None
    line = _curve("core time, modelled", model.predict, model.lowest_hertz / 1.2, model.highest_hertz * 1.2)
    points = Series(label="measured", kind="points", x=[], y=[])
    for one in measured.closed:
        if one.frequency_hertz is not None:
            points.x += [one.frequency_hertz] * len(one.throughputs)
            points.y += [one.cores / value for value in one.throughputs]
    return Chart(
        identifier="frequency",
        title="Core time of an operation over frequency",
        caption="Cycles that the clock drives, and time for memory that it does not; the band holds 90 %.",
        x=Axis(label="core frequency", unit="hertz"),
        y=Axis(label="core time", unit="seconds"),
        series=[line, points],
    )


def response_chart(projection: Projection) -> Chart | None:
    """Response times over load: measured here, and the curves there."""
    measured = projection.measured
    loads = sorted(loads_of(measured), key=lambda one: one.throughput)
    series: list[Series] = []
    for label, values, fit in (
        ("mean", [one.mean_seconds for one in loads], fit_mean),
        ("p99", [one.p99_seconds for one in loads], fit_p99),
    ):
        try:
            model = fit(measured)
        except RackscopeError:
            continue
        here = Series(
            label=f"{label}, measured here", kind="points", x=[one.throughput for one in loads], y=list(values)
        )
        series.append(here)
        for one, found in list(zip(projection.servers, projection.models, strict=True))[: _MOST_SERVERS // 2]:
            predict = _stretched(model.predict, measured, found)
            line = _curve(f"{label}, {one.server.name}", predict, loads[0].throughput, 1.5 * found.ends[1])
            if line.x:
                series.append(line)
    if not series:
        return None
    return Chart(
        identifier="response",
        title="Response time over load",
        caption="Curves are modelled; their bands hold 90 % of further measurements.",
        x=Axis(label="operations a second", unit="operations/s"),
        y=Axis(label="response time", unit="seconds", scale="logarithmic"),
        series=series,
    )


def power_chart(projection: Projection) -> Chart | None:
    """Modelled watts over how busy the cores are."""
    series = []
    for one in projection.servers[:_MOST_SERVERS]:
        model = one.rated
        if model is not None:
            series.append(_curve(one.server.name, _rated(model), 0.0, 1.0))
    return None if not series else Chart(
        identifier="power",
        title="Power over load, modelled",
        caption="From rated watts and the forms of published curves; no meter was read.",
        x=Axis(label="busy hardware threads", unit="ratio"),
        y=Axis(label="watts (modelled)"),
        series=series,
    )  # fmt: skip


def efficiency_over_load_chart(projection: Projection) -> Chart | None:
    """Operations for each joule over load: what a server that is not full costs."""
    import numpy as np

    series = []
    for one in projection.servers[:_MOST_SERVERS]:
        model = one.rated
        if model is None:
            continue
        line = Series(label=one.server.name, x=[], y=[], low=[], high=[], level=LEVEL)
        throughput = one.drawn.throughput[:4_000]
        for load in np.linspace(0.05, 1.0, _STEPS):
            share = float(load) * one.cores / one.threads
            drawn = load * throughput / model.draw(np.full(len(throughput), share))
            low, value, high = (float(one) for one in np.quantile(drawn, (0.05, 0.5, 0.95)))
            _add(line, float(load), Prediction(value, low, high, "", "", True))
        series.append(line)
    return None if not series else Chart(
        identifier="efficiency-load",
        title="Performance per watt over load, modelled",
        caption="Operations for each joule; a server that idles half of the time pays for it.",
        x=Axis(label="load, as a fraction of its maximum", unit="ratio"),
        y=Axis(label="operations/J (modelled)"),
        series=series,
    )  # fmt: skip


def efficiency_over_frequency_chart(measured: Measurements) -> Chart | None:
    """Operations for each joule over frequency, from runs at several that were metered."""
    points = [one for one in measured.closed if one.frequency_hertz is not None and one.watts is not None]
    hertz = [one.frequency_hertz or 0.0 for one in points]
    try:
        power = fit_power_over_frequency(hertz, [one.watts or 0.0 for one in points])
        time = fit_execution_time(hertz, [1 / one.throughput for one in points])
    except RackscopeError:
        return None

    def predict(at: float) -> Prediction:
        watts, seconds = power.predict(at), time.predict(at)
        value = 1 / (watts.value * seconds.value)
        return Prediction(value, 1 / (watts.high * seconds.high), 1 / (watts.low * seconds.low), "", "", True)

    line = _curve("modelled", predict, min(hertz), max(hertz))
    there = Series(label="metered", kind="points", x=hertz, y=[one.throughput / (one.watts or 1.0) for one in points])
    return Chart(
        identifier="efficiency-frequency",
        title="Performance per watt over frequency",
        caption="Operations per joule of what the meter covers; the band takes both models at their worst.",
        x=Axis(label="core frequency", unit="hertz"),
        y=Axis(label="operations/J"),
        series=[line, there],
    )


def _rated(model: RatedPowerModel) -> Callable[[float], Prediction]:
    return lambda load: model.predict(load, draws=2_000)


def _stretched(
    predict: Callable[[float], Prediction], measured: Measurements, found: Throughput
) -> Callable[[float], Prediction]:
    return lambda rate: stretched(predict, measured, found, rate)


def _curve(label: str, predict: Callable[[float], Prediction], low: float, high: float) -> Series:
    """Where the model answers."""
    import numpy as np

    line = Series(label=label, x=[], y=[], low=[], high=[], level=LEVEL)
    for at in np.linspace(low, high, _STEPS):
        try:
            _add(line, float(at), predict(float(at)))
        except RackscopeError:
            continue
    return line


def _add(series: Series, x: float, prediction: Prediction) -> None:
    series.x.append(x)
    series.y.append(prediction.value)
    series.low.append(prediction.low)
    series.high.append(prediction.high)
