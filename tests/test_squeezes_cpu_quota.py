"""CPU quotas as the kernel writes them in both versions, and what is written to set one and to have it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from host_trees import write_tree
from rackscope.squeezes.cpu_quota import Quota, quota_changes, read_quota, tightest_quota_cores
from rackscope.squeezes.held import Change

Words = list[tuple[str, str, str]]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("150000 100000\n", Quota(150_000, 100_000)),
        ("max 100000\n", Quota(None, 100_000)),
        ("max\n", None),
        ("max 0\n", None),
        ("max none\n", None),
        ("10000 max\n", None),
        ("10000 100000 1\n", None),
        ("\n", None),
    ],
)
def test_a_quota_of_version_2_is_two_words_or_not_known(tmp_path: Path, written: str, found: Quota | None) -> None:
    (tmp_path / "cpu.max").write_text(written)
    assert read_quota(tmp_path, 2) == found


@pytest.mark.parametrize(
    ("quota", "period", "found"),
    [
        ("50000\n", "100000\n", Quota(50_000, 100_000)),
        ("0\n", "100000\n", Quota(0, 100_000)),
        ("-1\n", "100000\n", Quota(None, 100_000)),
        ("50000\n", "0\n", None),
        ("50000\n", None, None),
        (None, "100000\n", None),
    ],
)
def test_a_quota_of_version_1_is_two_files_or_not_known(
    tmp_path: Path, quota: str | None, period: str | None, found: Quota | None
) -> None:
    written = {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": period}
    write_tree(tmp_path, {name: text for name, text in written.items() if text is not None})
    assert read_quota(tmp_path, 1) == found


def test_the_tightest_of_a_group_and_those_above_it_counts(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n", "a/b/c/cpu.max": "1 2 3\n"})
    assert tightest_quota_cores(tmp_path / "a/b/c", 2) == 1.5
    write_tree(tmp_path, {"a/b/cpu.max": "5000 10000\n"})
    assert tightest_quota_cores(tmp_path / "a/b/c", 2) == 0.5


def words(changes: list[Change]) -> Words:
    return [(change.path.name, change.content, change.restore) for change in changes]


@pytest.mark.parametrize(
    ("quota", "period", "changes"),
    [
        # Without a quota the period becomes a short one, before the quota; where it is that one it is left alone.
        ("-1", "100000", [("cpu.cfs_period_us", "10000", "100000"), ("cpu.cfs_quota_us", "20000", "-1")]),
        ("-1", "10000", [("cpu.cfs_quota_us", "20000", "-1")]),
        # With one it stays, whatever it is.
        ("300000", "100000", [("cpu.cfs_quota_us", "200000", "300000")]),
        ("9000", "5000", [("cpu.cfs_quota_us", "10000", "9000")]),
        # What cannot be read is taken to be as the kernel has it.
        (None, None, [("cpu.cfs_period_us", "10000", "100000"), ("cpu.cfs_quota_us", "20000", "-1")]),
    ],
)
def test_a_period_is_changed_only_where_it_must_be(
    tmp_path: Path, quota: str | None, period: str | None, changes: Words
) -> None:
    written = {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": period}
    write_tree(tmp_path, {name: text for name, text in written.items() if text is not None})
    assert words(quota_changes(tmp_path, 1, 2.0)) == changes


def test_version_2_takes_both_in_one_write(tmp_path: Path) -> None:
    assert words(quota_changes(tmp_path, 2, 0.5)) == [("cpu.max", "5000 10000", "max 100000")]
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert words(quota_changes(tmp_path, 2, 0.5)) == [("cpu.max", "50000 100000", "150000 100000")]


def test_the_smallest_quota_that_the_kernel_takes(tmp_path: Path) -> None:
    assert words(quota_changes(tmp_path, 2, 0.1)) == [("cpu.max", "1000 10000", "max 100000")]
    with pytest.raises(ValueError, match="999 µs in 10000 µs, and the kernel takes no less than 1000"):
        quota_changes(tmp_path, 2, 0.0999)
