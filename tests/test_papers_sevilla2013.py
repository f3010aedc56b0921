"""Sevilla 2013: what its text says follows, or is said not to."""

from __future__ import annotations

import pytest

from rackscope.papers.sevilla2013.page import amdahl, reproduce


def test_what_does_not_follow_is_named() -> None:
    unlike = {(section.identifier, one.item) for section, one in reproduce().not_following()}
    assert unlike == {("systems", "server: hardware contexts"), ("figure-1", "M1: memory to cores")}


def test_the_bounds_of_its_conclusions() -> None:
    """64,000 of 9,000 dollars, and Amdahl with 1 % sequential on 128 and 32 cores."""
    assert amdahl(128, 0.01) / amdahl(32, 0.01) == pytest.approx(1.31 / 32 * 128 / 2.27, rel=1e-9)
    said = {one.identifier: one.text for one in reproduce().remarks}
    assert "7.11 times" in said["cheaper"]
    assert "2.31" in said["faster"]
    assert "figures 2, 4 and 7" in said["not-reproduced"]
