"""Phases are found where levels change, not where there is noise, and are matched with those declared."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from rackscope.analysis.phases import DeclaredPhase, FoundPhase, find_phases, match_declared

ORIGIN = 1_700_000_000 * 10**9
SECOND = 10**9


def frame(series: NDArray[np.float64], hertz: int = 10) -> pl.DataFrame:
    times = ORIGIN + np.arange(series.shape[1], dtype=np.int64) * (SECOND // hertz)
    return pl.DataFrame({"timestamp_ns": times, **{f"series_{place}": row for place, row in enumerate(series)}})


def noise(kind: str, seed: int, width: int, rows: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    if kind == "heavy-tailed":
        return generator.standard_t(3, (width, rows))
    values = generator.standard_normal((width, rows))
    if kind == "correlated":
        for row in range(1, rows):
            values[:, row] = 0.5 * values[:, row - 1] + 0.75**0.5 * values[:, row]
    return values


def starts(phases: list[FoundPhase]) -> list[float]:
    return [(phase.start_ns - ORIGIN) / SECOND for phase in phases]


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "correlated"])
def test_noise_has_no_phases(kind: str) -> None:
    false = sum(len(find_phases(frame(noise(kind, seed, 3, 600)))) > 1 for seed in range(40))
    assert false <= 2


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "correlated"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_changes_of_level_are_found_whatever_the_unit(kind: str, scale: float) -> None:
    values = noise(kind, 4, 3, 1200)
    values[0, 300:600] += 5
    values[2, 900:] -= 4
    phases = find_phases(frame(values * scale))
    assert starts(phases) == pytest.approx([0, 30, 60, 90], abs=0.5)
    assert phases[1].means["series_0"] == pytest.approx(5 * scale, abs=0.5 * scale)
    for earlier, later in pairwise(phases):
        assert earlier.end_ns == later.start_ns


def test_three_minutes_at_a_hundred_hertz_are_averaged() -> None:
    values = noise("normal", 1, 8, 18_000)
    values[5, 9000:] += 3
    assert starts(find_phases(frame(values, 100))) == pytest.approx([0, 90], abs=0.5)


def test_a_burst_is_no_phase() -> None:
    values = noise("normal", 1, 2, 600)
    values[0, 300:302] += 100
    assert len(find_phases(frame(values))) == 1


def test_missing_values_and_series_that_say_nothing() -> None:
    values = noise("normal", 2, 4, 600)
    values[0, 300:] += 6
    values[0, 100:110] = np.nan
    values[1] = 7.0
    values[2] = np.nan
    phases = find_phases(frame(values))
    assert starts(phases) == pytest.approx([0, 30], abs=0.5)
    assert "series_2" not in phases[0].means
    assert phases[0].means["series_1"] == 7.0


def test_frames_too_small_for_phases() -> None:
    assert find_phases(frame(np.zeros((2, 0)))) == []
    assert len(find_phases(frame(np.zeros((2, 1))))) == 1
    assert len(find_phases(frame(np.arange(8.0).reshape(2, 4)))) == 1
    assert len(find_phases(frame(noise("normal", 1, 1, 50)).select("timestamp_ns"))) == 1


def test_only_the_columns_of_the_frame_count() -> None:
    values = noise("normal", 2, 2, 600)
    values[0, 300:] += 6
    assert len(find_phases(frame(values).drop("series_0"))) == 1
    assert len(find_phases(frame(values).drop("series_1"))) == 2


def found(*seconds: float) -> list[FoundPhase]:
    edges = [int(second * SECOND) for second in seconds]
    return [FoundPhase(start, end, {}) for start, end in pairwise(edges)]


def declared(**edges: tuple[float, float]) -> list[DeclaredPhase]:
    return [DeclaredPhase(name, int(start * SECOND), int(end * SECOND)) for name, (start, end) in edges.items()]


def test_declared_phases_are_matched_split_and_missed() -> None:
    match = match_declared(found(0, 10.2, 15, 20, 40), declared(load=(0, 10), measure=(10, 20), idle=(20, 22)))
    load, measure, idle = match.declared
    assert (load.found, load.parts) == (True, 1)
    assert load.overlap == pytest.approx(10 / 10.2)
    assert (measure.found, measure.parts) == (False, 2)
    assert not idle.found
    assert match.undeclared_boundaries_seconds == (15.0,)


def test_matching_nothing() -> None:
    assert match_declared([], declared(load=(0, 10))).declared[0].overlap == 0.0
    assert match_declared(found(0, 5, 9), []).undeclared_boundaries_seconds == (5.0,)
