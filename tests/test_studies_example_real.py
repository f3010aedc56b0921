"""The study of the docs on the built-in cache engine, as a user runs a file of their own."""

from __future__ import annotations

import json
import shutil

import pytest

from conftest import REPOSITORY, Rackscope


@pytest.mark.alone
def test_a_study_in_a_file_of_the_users_own_is_conducted(rackscope: Rackscope) -> None:
    shutil.copy(REPOSITORY / "docs/examples/headroom.py", rackscope.folder / "mine.py")
    done = rackscope(
        *("study", "./mine.py", "cache", "ycsb-b", "--window", "100ms", "--rounds", "2"),
        *("--set", "keys=1000", "--out", "study", "--json"),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kind"] == "headroom"
    assert told["parameters"]["rounds"] == "2"
    assert all(one["estimate"] > 0 for one in told["result"]["p99_seconds"].values())
    assert (rackscope.folder / "study/report.html").is_file()
    assert "--rounds N" in rackscope("study", "./mine.py", "--help").stdout
