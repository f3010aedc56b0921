"""libmemcached's own examination of a server: every test of memccapable, text and binary."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from rackscope.systems.acquire import acquire_tool
from rackscope.systems.base import Endpoint
from systems_started import started

#: A line of the table that memccapable prints: the test, and what came of it.
_RESULT = re.compile(r"^(?P<test>(?:ascii|binary) [a-z ]+?)\s+\[(?P<result>\w+)\]$", re.MULTILINE)


def memccapable(endpoint: Endpoint, *options: str, answers: str = "") -> str:
    """What it prints about the server there."""
    tools = acquire_tool("libmemcached-tools", fetch=True)
    program = tools.program.with_name("memccapable")
    finished = subprocess.run(
        [program, "-h", endpoint.host, "-p", str(endpoint.port), *options],
        env={**os.environ, **tools.environment},
        input=answers,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return finished.stdout + finished.stderr


@pytest.mark.parametrize("threads", ["1", "2"])
def test_every_test_of_memccapable_passes(tmp_path: Path, threads: str):
    with started("cache", tmp_path, threads=threads) as running:
        # It has no list of its tests, but asks before each of them if it is told to.
        asked = memccapable(running.endpoint, "-P", answers="skip\n" * 1000)
        tests = re.findall(r"^Press <return> when you are ready\? (.+?)\s+\[skip\]$", asked, re.MULTILINE)
        assert len(tests) == len(set(tests)) >= 54, asked
        # With -v it says which assertion did not hold.
        said = memccapable(running.endpoint, "-v")
    assert _RESULT.findall(said) == [(test, "pass") for test in tests], said
    assert "All tests passed" in said
