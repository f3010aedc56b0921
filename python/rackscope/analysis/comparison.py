"""Two runs side by side: the ratio and the difference of each metric, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from rackscope.analysis import wording
from rackscope.analysis.energy import ENERGY_COLUMNS
from rackscope.analysis.findings import plain_fields
from rackscope.analysis.intervals import Interval, difference_of_means, mean_interval, ratio_of_means
from rackscope.analysis.thresholds import packaged_thresholds

Difference = Literal["higher", "lower", "no difference seen", "too few repetitions"]
Better = Literal["higher", "lower", "neither"]

#: Settings that say what is compared; when others differ, the comparison may mislead.
_SUBJECTS = ("system", "system version", "knob ")
_ALWAYS = (
    "The runs were made one after the other: the intervals show how repetitions within a run differ, not how the host "
    "differs from one time to another."
)


@dataclass(frozen=True)
class ComparisonRow:
    """One metric of run B against run A: ``ratio`` is B / A, ``difference`` B - A; intervals are of 95 %."""

    phase: str
    metric: str
    label: str
    unit: str
    a: Interval
    b: Interval
    ratio: Interval | None
    difference: Interval | None
    #: B against A.
    verdict: Difference
    better: Better
    #: ``True`` when B is better, ``False`` when worse, ``None`` when nothing was seen or neither is better.
    b_is_better: bool | None
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """All metrics of two runs, and why the comparison may mislead."""

    rows: tuple[ComparisonRow, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


@dataclass(frozen=True)
class _Metric:
    """A column of the results; where ``below`` is given, the quotient of the columns ``above`` over those."""

    name: str
    label: str
    unit: str
    better: Better
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    def of(self, row: Mapping[str, Any]) -> float | None:
        known = {name: row.get(name) for name in (*(self.above or (self.name,)), *self.below)}
        if any(value is None for value in known.values()):
            return None
        if not self.below:
            return float(row[self.name])
        whole = sum(float(row[name]) for name in self.below)
        return sum(float(row[name]) for name in self.above) / whole if whole else None


_OPERATIONS = ("operations",)
_METRICS = (
    _Metric("throughput_operations_per_second", "throughput", "operations/s", "higher"),
    _Metric("response_p50_seconds", "response, median", "seconds", "lower"),
    _Metric("response_p90_seconds", "response, 90 %", "seconds", "lower"),
    _Metric("response_p99_seconds", "response, 99 %", "seconds", "lower"),
    _Metric("response_p999_seconds", "response, 99.9 %", "seconds", "lower"),
    _Metric("response_mean_seconds", "response, mean", "seconds", "lower"),
    _Metric("service_p50_seconds", "service, median", "seconds", "lower"),
    _Metric("service_p99_seconds", "service, 99 %", "seconds", "lower"),
    _Metric("cpu_seconds_per_operation", "CPU time of an operation", "seconds", "lower",
            ("system_cpu_seconds",), _OPERATIONS),
    _Metric("system_resident_bytes", "resident memory", "bytes", "lower"),
    _Metric("hit_ratio", "hit ratio", "ratio", "higher", ("hits",), ("hits", "misses")),
    _Metric("error_ratio", "failed operations", "ratio", "lower", ("errors",), _OPERATIONS),
    _Metric("bytes_per_operation", "bytes of an operation", "bytes", "neither",
            ("bytes_sent", "bytes_received"), _OPERATIONS),
    _Metric("mean_watts", "mean power, metered", "watts", "neither"),
    _Metric("energy_joules_per_operation", "energy of an operation", "joules", "lower"),
    _Metric("operations_per_joule", "operations a joule", "operations/joule", "higher"),
    _Metric("generator_idle_ratio", "generator idle", "ratio", "neither"),
)  # fmt: skip


def compare(
    results_a: pl.DataFrame,
    results_b: pl.DataFrame,
    *,
    settings_a: Mapping[str, Any] | None = None,
    settings_b: Mapping[str, Any] | None = None,
    sequential: bool = True,
    power_a: str | None = None,
    power_b: str | None = None,
) -> Comparison:
    """Compare the measured phases of two results frames.

    ``power_*`` say what the watts of each run are of (``HostScope.label``); watts of different things are not
    compared. The columns are those of ``energy.results_with_energy``.

    ``settings_*`` are flat plain mappings from the two manifests (host, system, version, workload, client settings,
    knobs): what differs between them becomes a warning where it makes the comparison mislead. ``sequential`` when the
    repetitions of some run were decided by their results, which widens the intervals as honesty asks.
    """
    warnings = [] if settings_a is None or settings_b is None else _setting_warnings(settings_a, settings_b)
    if power_a is not None and power_b is not None and power_a != power_b:
        warnings.append(f"Power is that of {power_a} in A and of {power_b} in B: it is not compared.")
        results_a, results_b = (frame.drop(ENERGY_COLUMNS, strict=False) for frame in (results_a, results_b))
    elif (power_a is None) != (power_b is None):
        warnings.append(f"Power was metered in {'A' if power_b is None else 'B'} only: it is not compared.")
    of_a, of_b = _measured(results_a), _measured(results_b)
    pairs = [(name, name) for name in of_a if name in of_b]
    if not pairs and len(of_a) == len(of_b) == 1:
        pairs = [(next(iter(of_a)), next(iter(of_b)))]
        warnings.append(f"The measured phases have different names: '{pairs[0][0]}' is compared with '{pairs[0][1]}'.")
    elif not pairs:
        names = " and ".join(wording.listing([f"'{name}'" for name in of]) or "none" for of in (of_a, of_b))
        warnings.append(f"The runs have no measured phase in common: {names}.")
    else:
        alone = [name for name in (*of_a, *of_b) if name not in of_a or name not in of_b]
        if alone:
            warnings.append(f"Measured in one run only: {wording.listing([f'{name!r}' for name in alone])}.")
    rows = [
        row
        for name_a, name_b in pairs
        for metric in _METRICS
        if (row := _row(name_a, metric, of_a[name_a], of_b[name_b], sequential)) is not None
    ]
    if rows:
        warnings.append(_ALWAYS)
    return Comparison(tuple(rows), tuple(warnings))


def _measured(results: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Rows of measured phases that were not discarded, by phase in the order of the frame."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in results.to_dicts():
        if row.get("kind") == "measure" and not row.get("discarded"):
            found.setdefault(str(row.get("phase")), []).append(row)
    return found


def _row(
    phase: str,
    metric: _Metric,
    rows_a: Sequence[Mapping[str, Any]],
    rows_b: Sequence[Mapping[str, Any]],
    sequential: bool,
) -> ComparisonRow | None:
    values_a = [value for row in rows_a if (value := metric.of(row)) is not None]
    values_b = [value for row in rows_b if (value := metric.of(row)) is not None]
    if not values_a or not values_b:
        return None
    if metric.unit == "ratio" and not any((*values_a, *values_b)):
        # No errors on either side is nothing to compare.
        return None
    ratio = ratio_of_means(values_b, values_a, sequential=sequential)
    difference = difference_of_means(values_b, values_a, sequential=sequential)
    verdict = _verdict(ratio, difference)
    seen = verdict in ("higher", "lower") and metric.better != "neither"
    return ComparisonRow(
        phase=phase,
        metric=metric.name,
        label=metric.label,
        unit=metric.unit,
        a=mean_interval(values_a, sequential=sequential, at_least=0.0),
        b=mean_interval(values_b, sequential=sequential, at_least=0.0),
        ratio=ratio if ratio.estimate == ratio.estimate else None,
        difference=difference,
        verdict=verdict,
        better=metric.better,
        b_is_better=verdict == metric.better if seen else None,
        sentence=_sentence(metric, verdict, ratio, difference),
    )


def _verdict(ratio: Interval, difference: Interval) -> Difference:
    if not ratio.is_known and not difference.is_known:
        return "too few repetitions"
    if ratio.is_known and abs(ratio.estimate - 1) < packaged_thresholds().limit("comparison.smallest_ratio"):
        return "no difference seen"
    interval, same = (ratio, 1.0) if ratio.is_known else (difference, 0.0)
    if interval.contains(same):
        return "no difference seen"
    return "higher" if interval.estimate > same else "lower"


def _sentence(metric: _Metric, verdict: Difference, ratio: Interval, difference: Interval) -> str:
    name = wording.capital(metric.label)
    if verdict == "too few repetitions":
        observed = "" if ratio.estimate != ratio.estimate else f" (B is {_times(ratio.estimate)} of A)"
        return f"{name}: too few repetitions{observed}."
    if ratio.low is None or ratio.high is None:
        low, high = difference.low or 0.0, difference.high or 0.0
        bounds = f"{wording.quantity(low, metric.unit)} to {wording.quantity(high, metric.unit)}"
        return f"{name}: {verdict}, by {bounds}."
    bounds = f"95 % interval {_change(ratio.low)} to {_change(ratio.high)}"
    if verdict == "no difference seen":
        small = not ratio.contains(1.0)
        why = ", less than two runs of the same thing may differ by" if small else ""
        return f"{name}: no difference seen ({_change(ratio.estimate)}, {bounds}{why})."
    word = "" if metric.better == "neither" else ", better" if verdict == metric.better else ", worse"
    return f"{name}: B is {_change(ratio.estimate)}{word} ({bounds})."


def _change(ratio: float) -> str:
    """``+12.3 %``, ``-4.0 %``; factors from three on, where percent stop helping."""
    if ratio >= 3:
        return _times(ratio)
    return f"{(ratio - 1) * 100:+.1f} %"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.1f} times"


def _setting_warnings(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    differing = [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]
    subjects = [name for name in differing if name in _SUBJECTS or name.startswith(_SUBJECTS[-1])]
    warnings = [
        f"Not the same {name}: {_shown(a.get(name))} and {_shown(b.get(name))}."
        for name in differing
        if name not in subjects and not (name == "protocol" and "system" in subjects)
    ]
    if warnings:
        warnings.append(
            "What differs between the runs may come from any of these, and not from what was to be compared."
        )
    if "system" not in subjects and len(subjects) > 1:
        warnings.append(f"Several things differ at once: {wording.listing(subjects)}.")
    return warnings


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)
