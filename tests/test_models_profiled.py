"""Fits with one unknown that is not linear: where the best candidate is the first, the last or between others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from rackscope.errors import RackscopeError
from rackscope.models.profiled import fit_profiled

PLACES = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]


def powers() -> Callable[[float], Sequence[Sequence[float]]]:
    """Terms of ``a + b * x ** unknown`` at the places."""
    return lambda unknown: [[1.0, place**unknown] for place in PLACES]


@pytest.mark.parametrize("candidates", [[0.5, 1.0, 1.5, 2.0], [0.5, 1.0, 1.25, 1.5, 2.0]])
@pytest.mark.parametrize("truth", [0.5, 0.8, 1.0, 1.7, 2.0])
def test_the_unknown_is_found_between_and_at_the_ends_of_the_candidates(truth: float, candidates: list[float]) -> None:
    values = [2.0 + 3.0 * place**truth for place in PLACES]
    found = fit_profiled(powers(), values, ("standing", "growing"), candidates)
    assert found.unknown == pytest.approx(truth, abs=2e-3)
    value, low, high = found.interval(lambda unknown: [1.0, 5.0**unknown])
    assert low <= value <= high
    assert value == pytest.approx(2.0 + 3.0 * 5.0**truth, rel=1e-3)


def test_too_few_measurements_leave_no_error() -> None:
    with pytest.raises(RackscopeError, match="3 measurements for 3 unknowns leave no residual"):
        fit_profiled(powers(), [1.0, 2.0, 3.0], ("standing", "growing"), [0.5, 1.0])
