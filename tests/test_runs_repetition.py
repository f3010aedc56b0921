"""How often a run measures: repetitions are numbered from 1, and end when they were as many as asked for, or enough."""

from __future__ import annotations

import pytest

from rackscope.runs.manifest import RepetitionPart
from rackscope.runs.options import RunOptions
from rackscope.runs.repetition import Repetition


def repeated(options: RunOptions, throughputs: list[float], seconds: float = 1.0) -> tuple[list[int], RepetitionPart]:
    """The numbers that repetitions had until it was over, and what is written of them."""
    repetition, numbers = Repetition(options), []
    for throughput in throughputs:
        numbers.append(repetition.begin())
        repetition.add("measure", throughput, seconds)
        if repetition.is_over():
            break
    part = RepetitionPart(duration_seconds=seconds, minimum=Repetition.minimum(options))
    repetition.describe(part)
    return numbers, part


@pytest.mark.parametrize("asked", [1, 2, 5])
def test_as_many_as_were_asked_for_are_made(asked: int) -> None:
    numbers, part = repeated(RunOptions("cache", "ycsb-b", repetitions=asked), [1e5, 2e5] * 5)
    assert numbers == list(range(1, asked + 1))
    assert (part.minimum, part.achieved) == (asked, asked)
    assert part.stopping_reason == f"{asked} repetitions were asked for"


def test_three_alike_are_enough() -> None:
    numbers, part = repeated(RunOptions("cache", "ycsb-b"), [1e5, 1.0001e5, 0.9999e5, 1e5])
    assert numbers == [1, 2, 3]
    assert part.relative_half_width is not None and part.relative_half_width < 0.02


def test_what_varies_is_repeated_until_the_budget_is_spent() -> None:
    numbers, part = repeated(RunOptions("cache", "ycsb-b", budget_seconds=6.0), [1e5, 2e5] * 10)
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert part.stopping_reason == "the budget of 6 s of measuring was spent"
