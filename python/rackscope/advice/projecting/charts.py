"""Charts of projections, as data: what was measured, the model's curve, and the band in which 90 % would lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from rackscope.advice.measured_runs import Measurements
from rackscope.advice.projecting.answers import ServerProjection
from rackscope.advice.projecting.project import Projection
from rackscope.advice.projecting.response import fit_mean, fit_p99, loads_of, stretched
from rackscope.advice.projecting.throughput import Throughput, at_top_clock
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, Prediction, from_draws
from rackscope.models.execution_time import fit_execution_time
from rackscope.models.power_over_frequency import fit_power_over_frequency
from rackscope.models.rated_power import RatedPowerModel
from rackscope.runs.study import Axis, Chart, Series

#: Enough for a smooth curve, and for it to be drawn without a dot at every point.
_STEPS = 90
#: More servers than this in one chart are not told apart.
_MOST_SERVERS = 6


def charts_of(projection: Projection) -> list[Chart]:
    """All that the runs and the servers allow."""
    measured, first = projection.measured, projection.models[0] if projection.models else None
    found = [
        throughput_chart(projection),
        core_scaling_chart(measured, first) if first is not None else None,
        frequency_chart(measured, first) if first is not None else None,
        response_chart(projection),
        power_chart(projection),
        efficiency_over_load_chart(projection),
        efficiency_over_frequency_chart(measured),
    ]
    return [one for one in found if one is not None and any(series.x for series in one.series)]


def throughput_chart(projection: Projection) -> Chart:
    """Each server beside what was measured here."""
    points = at_top_clock(projection.measured.closed)
    most = max(one.cores for one in points)
    values = [value for one in points if one.cores == most for value in one.throughputs]
    cores = f"{most} core{'' if most == 1 else 's'}"
    names = [f"here, {cores}", *(f"{one.server.name}, {one.cores}" for one in projection.servers)]
    known = [(0.0, Prediction(sum(values) / len(values), min(values), max(values), "", "", False))]
    for at, one in enumerate(projection.servers, 1):
        answer = one.answer("throughput")
        if answer is not None and answer.prediction is not None:
            known.append((float(at), answer.prediction))
    return Chart(
        identifier="throughput",
        title="Throughput on each server",
        caption="Modelled, with the interval that 90 % of runs there would lie in; here, the range of repetitions. "
        "Beside each, its cores.",
        x=Axis(label="", scale="category", categories=names),
        y=Axis(label="throughput", unit="operations/s"),
        series=[_predicted("throughput", known, kind="bars")],
    )


def core_scaling_chart(measured: Measurements, found: Throughput) -> Chart | None:
    """Throughput over cores: points, the law's curve as far as it may be followed, its band."""
    model = found.core_scaling
    if model is None:
        return None
    counts = [float(count) for count in range(1, 2 * max(model.most_cores, found.cores) + 1)]
    points = [(one.cores, value) for one in at_top_clock(measured.closed) for value in one.throughputs]
    return Chart(
        identifier="cores",
        title="Throughput over cores",
        caption="The curve ends where the model refuses to extrapolate; the band holds 90 % of further measurements.",
        x=Axis(label="cores", unit="count"),
        y=Axis(label="throughput", unit="operations/s"),
        series=[
            _curve("scalability law, modelled", lambda count: model.predict(int(count)), counts),
            _measured(points),
        ],
    )


def frequency_chart(measured: Measurements, found: Throughput) -> Chart | None:
    """Core time of an operation over frequency."""
    model = found.execution_time
    if model is None:
        return None
    points = [
        (one.frequency_hertz, one.cores / value)
        for one in measured.closed
        if one.frequency_hertz is not None
        for value in one.throughputs
    ]
    hertz = _steps(model.lowest_hertz / 1.2, model.highest_hertz * 1.2)
    return Chart(
        identifier="frequency",
        title="Core time of an operation over frequency",
        caption="Cycles that the clock drives, and time for memory that it does not; the band holds 90 %.",
        x=Axis(label="core frequency", unit="hertz"),
        y=Axis(label="core time", unit="seconds"),
        series=[_curve("core time, modelled", model.predict, hertz), _measured(points)],
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
        rates = [one.throughput for one in loads]
        series.append(Series(label=f"{label}, measured here", kind="points", x=rates, y=list(values)))
        for one, found in list(zip(projection.servers, projection.models, strict=True))[: _MOST_SERVERS // 2]:
            predict = partial(stretched, model.predict, measured, found)
            line = _curve(f"{label}, {one.server.name}", predict, _steps(rates[0], 1.5 * found.ends[1]))
            series += [line] if line.x else []
    return Chart(
        identifier="response",
        title="Response time over load",
        caption="Curves are modelled; their bands hold 90 % of further measurements.",
        x=Axis(label="operations a second", unit="operations/s"),
        y=Axis(label="response time", unit="seconds", scale="logarithmic"),
        series=series,
    )


def power_chart(projection: Projection) -> Chart:
    """Modelled watts over how busy the cores are."""
    rated = [(one.server.name, one.rated) for one in projection.servers[:_MOST_SERVERS] if one.rated is not None]
    return Chart(
        identifier="power",
        title="Power over load, modelled",
        caption="From rated watts and the forms of published curves; no meter was read.",
        x=Axis(label="busy hardware threads", unit="ratio"),
        y=Axis(label="watts (modelled)"),
        series=[_curve(name, partial(model.predict, draws=2_000), _steps(0.0, 1.0)) for name, model in rated],
    )


def efficiency_over_load_chart(projection: Projection) -> Chart:
    """Operations for each joule over load: what a server that is not full costs."""

    def of(one: ServerProjection, model: RatedPowerModel, load: float) -> Prediction:
        throughput = one.drawn.throughput[:4_000]
        busy = np.full(len(throughput), load * one.cores / one.threads)
        return from_draws(load * throughput / model.draw(busy), "", "", extrapolated=True)

    rated = [(one, one.rated) for one in projection.servers[:_MOST_SERVERS] if one.rated is not None]
    return Chart(
        identifier="efficiency-load",
        title="Performance per watt over load, modelled",
        caption="Operations for each joule; a server that idles half of the time pays for it.",
        x=Axis(label="load, as a fraction of its maximum", unit="ratio"),
        y=Axis(label="operations/J (modelled)"),
        series=[_curve(one.server.name, partial(of, one, model), _steps(0.05, 1.0)) for one, model in rated],
    )


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

    there = [(clock, one.throughput / (one.watts or 1.0)) for clock, one in zip(hertz, points, strict=True)]
    return Chart(
        identifier="efficiency-frequency",
        title="Performance per watt over frequency",
        caption="Operations per joule of what the meter covers; the band takes both models at their worst.",
        x=Axis(label="core frequency", unit="hertz"),
        y=Axis(label="operations/J"),
        series=[_curve("modelled", predict, _steps(min(hertz), max(hertz))), _measured(there, "metered")],
    )


def _steps(low: float, high: float) -> list[float]:
    return [float(one) for one in np.linspace(low, high, _STEPS)]


def _measured(points: Sequence[tuple[float, float]], label: str = "measured") -> Series:
    return Series(label=label, kind="points", x=[x for x, _ in points], y=[y for _, y in points])


def _curve(label: str, predict: Callable[[float], Prediction], places: Iterable[float]) -> Series:
    """Where the model answers."""
    known = []
    for at in places:
        try:
            known.append((at, predict(at)))
        except RackscopeError:
            continue
    return _predicted(label, known)


def _predicted(label: str, known: Sequence[tuple[float, Prediction]], kind: Literal["line", "bars"] = "line") -> Series:
    found = [prediction for _, prediction in known]
    return Series(
        label=label,
        kind=kind,
        x=[at for at, _ in known],
        y=[one.value for one in found],
        low=[one.low for one in found],
        high=[one.high for one in found],
        level=LEVEL,
    )
