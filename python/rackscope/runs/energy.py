"""Power of run directories: each run's watts and joules, and performance per watt over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from rackscope.analysis import energy, proportionality
from rackscope.analysis.context import Run
from rackscope.analysis.energy import RunEnergy, measure_energy
from rackscope.analysis.proportionality import PerformancePoint
from rackscope.errors import RackscopeError
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import analysed_run
from rackscope.runs.study import Axis, Chart, Series

Over = Literal["frequency_hertz", "load_ratio"]


def energy_of(run: RunDirectory) -> RunEnergy | None:
    """Metered watts and joules of every phase; ``None`` when no meter was ever read."""
    return measure_energy(analysed_run(run))


def results_with_energy(run: RunDirectory) -> tuple[pl.DataFrame, str | None]:
    """The results with the host's watts and joules in each row, and what they are of (``None``: not metered)."""
    results, analysed = run.results(), analysed_run(run)
    with_energy = energy.results_with_energy(analysed, results)
    if "mean_watts" not in with_energy.columns or with_energy["mean_watts"].null_count() == with_energy.height:
        return results, None
    found = energy.measure_energy(analysed)
    return with_energy, found.scope.label if found and found.scope else None


def performance_per_watt(runs: Sequence[RunDirectory]) -> pl.DataFrame:
    """One row a measured phase of each run with metered power: see ``analysis.proportionality.performance_per_watt``.

    Runs at several clocks give performance per watt over frequency, runs at several rates over load. Raises
    RackscopeError when none of the runs has metered power, or when it was metered of different things.
    """
    points = [point for run in runs for point in performance_points(run)]
    if not points:
        raise RackscopeError(
            f"none of the {len(runs)} runs has metered power" if len(runs) != 1 else "the run has no metered power",
            "'rackscope doctor' says which meters work on this host and what the others need.",
        )
    return proportionality.performance_per_watt(points)


def performance_points(run: RunDirectory) -> list[PerformancePoint]:
    """The measured phases of a run whose operations for each joule are known."""
    energy, analysed = energy_of(run), analysed_run(run)
    points: list[PerformancePoint] = []
    if energy is None or energy.scope is None:
        return points
    throughput = {phase.name: phase.result("throughput_operations_per_second") for phase in analysed.phases()}
    for phase in energy.phases:
        rate = throughput.get(phase.phase)
        if phase.kind != "measure" or phase.host is None or phase.host.operations_per_joule is None or rate is None:
            continue
        clock = mean_frequency(analysed, phase.seconds)
        points.append(
            PerformancePoint(
                run.path.name,
                phase.phase,
                "metered",
                energy.scope.label,
                rate,
                phase.host.mean_watts,
                phase.host.operations_per_joule,
                clock,
                energy.idle.watts if energy.idle is not None and energy.idle.is_idle else None,
            )
        )
    return points


def performance_per_watt_chart(frame: pl.DataFrame, over: Over) -> Chart:
    """A chart of operations for each joule over ``over``, a series a phase, with intervals. Raises RackscopeError."""
    known = frame.filter(pl.col(over).is_not_null() & pl.col("operations_per_joule").is_not_null())
    if known.is_empty():
        lacks = "the clock was not sampled" if over == "frequency_hertz" else "no load is known"
        raise RackscopeError(f"no performance per watt to draw: {lacks}", "Take runs that have it.")
    series = []
    for phase in known["phase"].unique(maintain_order=True):
        rows = known.filter(pl.col("phase") == phase).sort(over)
        modelled = " (modelled)" if (rows["source"] == "modelled").any() else ""
        low, high = (
            rows.select(pl.coalesce(f"operations_per_joule_{end}", "operations_per_joule")).to_series().to_list()
            for end in ("low", "high")
        )
        x, y = rows[over].to_list(), rows["operations_per_joule"].to_list()
        series.append(Series(label=f"{phase}{modelled}", x=x, y=y, low=low, high=high))
    scope = known["power_scope"][0]
    axes = {
        "frequency_hertz": Axis(label="clock of the system's cores", unit="hertz"),
        "load_ratio": Axis(label="fraction of the highest throughput", unit="ratio"),
    }
    return Chart(
        identifier=f"performance-per-watt-over-{'frequency' if over == 'frequency_hertz' else 'load'}",
        title=f"Performance per watt over {'frequency' if over == 'frequency_hertz' else 'load'}",
        caption=f"operations for each joule of {scope}; bars: 95 % interval over repetitions",
        x=axes[over],
        y=Axis(label="operations / joule"),
        series=series,
    )


def mean_frequency(run: Run, windows: tuple[tuple[float, float], ...]) -> float | None:
    """Mean clock of the cores that the system had, of all where it was not pinned."""
    wanted = {str(core) for core in run.facts.system_cores}
    series = [one for one in run.samples.find_all("cpu_frequency_hertz") if not wanted or one.labels["core"] in wanted]
    values = [value for one in series if (value := one.over(windows).value) is not None]
    return sum(values) / len(values) if values else None
