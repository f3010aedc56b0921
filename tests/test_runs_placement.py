"""Cores for the system and the client."""

from __future__ import annotations

import pytest

from rackscope.errors import UsageError
from rackscope.runs.placement import place


@pytest.mark.parametrize(
    ("allowed", "system", "client"),
    [
        ([0, 1], (0,), (1,)),
        ([0, 1, 2, 3], (0, 1, 2), (3,)),
        (list(range(8)), tuple(range(6)), (6, 7)),
        ([2, 5], (2,), (5,)),
    ],
)
def test_client_gets_the_last_quarter(allowed: list[int], system: tuple[int, ...], client: tuple[int, ...]) -> None:
    placement = place(allowed)
    assert (placement.system, placement.client) == (system, client)
    assert not placement.shared


def test_one_core_is_shared_and_says_so() -> None:
    assert place([0]).shared


def test_wishes_win_and_the_other_side_keeps_clear() -> None:
    assert place([0, 1, 2, 3], system=(3,)).client == (2,)
    assert place([0, 1, 2, 3], client=(0,)).system == (1, 2, 3)
    assert place([0, 1], system=(0,), client=(0,)).shared


def test_a_core_that_is_not_there_is_named_with_what_is() -> None:
    with pytest.raises(UsageError, match=r"--cores names core 7.*Choose from 0-2,5"):
        place([0, 1, 2, 5], system=(7,))
