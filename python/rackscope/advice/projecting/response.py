"""Response times on a server that is not here, at a load that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

from rackscope.advice.measured_runs import Measurements, Point
from rackscope.advice.projecting.answers import Answer
from rackscope.advice.projecting.throughput import Throughput, at_top_clock
from rackscope.errors import RackscopeError
from rackscope.models.estimates import EXTRAPOLATED, Prediction, from_draws
from rackscope.models.gates import ProjectionRefused
from rackscope.models.mean_latency import MeanLatencyModel, fit_mean_latency
from rackscope.models.monotone import MonotoneModel, fit_latency_percentile
from rackscope.units import format_count

_STRETCHED = (
    "; on the server the load axis is stretched by the throughput's factor and the time axis by that of one core, both "
    "with their intervals"
)


def closed_loop_answer(measured: Measurements, found: Throughput) -> Answer:
    """Mean response time with as many requests outstanding as here: by Little's law that number over the rate."""
    outstanding = max(one.outstanding for one in measured.closed)
    drawn = outstanding / found.drawn
    return Answer(
        "mean_response_closed_loop_seconds",
        f"mean response, {outstanding} outstanding",
        from_draws(drawn, "seconds", f"Little's law (1961) on the throughput: {found.basis}", extrapolated=True),
        f"throughput, and {outstanding} requests outstanding as here",
        "It changes as throughput does, and with the number of connections.",
    )


def response_answers(measured: Measurements, found: Throughput, rate: float) -> list[Answer]:
    """Mean and 99th percentile at ``rate`` operations a second on the server, each refused in a line of its own."""
    answers = []
    for name, what, model in (
        ("mean_response_seconds", "mean response", fit_mean),
        ("p99_response_seconds", "p99 response", fit_p99),
    ):
        label = f"{what} at {format_count(rate)}/s"
        try:
            fitted = model(measured)
            prediction = stretched(fitted.predict, measured, found, rate)
            loads = loads_of(measured)
            runs = ", ".join(dict.fromkeys(one.run for one in loads))
            kind = "mean_latency" if name.startswith("mean") else "latency_percentile"
            answers.append(
                Answer(
                    name,
                    label,
                    prediction,
                    f"{runs} ({len(loads)} loads); model: {kind}",
                    "It changes with the burstiness of arrivals, and nearer to capacity the fastest.",
                )
            )
        except RackscopeError as error:
            answers.append(Answer(name, label, None, refused=str(error)))
    return answers


def loads_of(measured: Measurements) -> list[Point]:
    """Loads on as many cores as most of them had: curves are of one number of cores."""
    counts = [one.cores for one in measured.loads]
    most = max(set(counts), key=lambda count: (counts.count(count), count), default=0)
    return [one for one in measured.loads if one.cores == most]


def fit_mean(measured: Measurements) -> MeanLatencyModel:
    """Over the loads that were served. Raises RackscopeError for too few."""
    points = [one for one in loads_of(measured) if one.mean_seconds is not None]
    servers = points[0].cores if points else 1
    return fit_mean_latency(
        [one.throughput for one in points], [one.mean_seconds or 0.0 for one in points], servers=servers
    )


def fit_p99(measured: Measurements) -> MonotoneModel:
    """Over the loads that were served. Raises RackscopeError for too few."""
    points = [one for one in loads_of(measured) if one.p99_seconds is not None]
    return fit_latency_percentile([one.throughput for one in points], [one.p99_seconds or 0.0 for one in points])


def stretched(
    predict: Callable[[float], Prediction], measured: Measurements, found: Throughput, rate: float
) -> Prediction:
    """What ``predict`` says of loads here, for a server whose factors are uncertain. Raises ProjectionRefused."""
    cores = loads_of(measured)[0].cores
    if found.unchanged and found.cores == cores:
        return predict(rate)
    here = [one.throughput for one in at_top_clock(measured.closed) if one.cores == cores]
    if not here:
        raise ProjectionRefused(
            f"loads were offered on {cores} cores, and the most that those do is not known",
            f"Add a run without --rate on {cores} cores.",
        )
    least = found.ends[0]
    slow, middle, fast = (one / (math.fsum(here) / len(here)) for one in found.ends)
    if rate >= least:
        raise ProjectionRefused(
            f"{format_count(rate)}/s may be beyond what the server does, which may be {format_count(least)}/s: a queue "
            "that grows has no response time",
            "Ask for a lower --rate.",
        )
    # A slower server is slower twice: it is nearer to its capacity, and every request takes longer.
    central = predict(rate / middle)
    worst, best = predict(rate / slow), predict(rate / fast)
    up = math.log(worst.value / central.value * max(middle / slow, 1.0))
    down = math.log(central.value / best.value * max(fast / middle, 1.0))
    noise_up, noise_down = math.log(central.high / central.value), math.log(central.value / central.low)
    value = central.value / found.pace
    return Prediction(
        value,
        value * math.exp(-math.hypot(max(down, 0.0), noise_down)),
        value * math.exp(math.hypot(max(up, 0.0), noise_up)),
        "seconds",
        central.basis.removesuffix(EXTRAPOLATED) + _STRETCHED,
        True,
    )
