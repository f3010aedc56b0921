"""Which tests run, how often and from which seeds: the short suite (``make test``) and parts of the long one.

Marks: ``long`` is for what only the long suite runs. ``servers`` is set here for tests that start the command or real
servers, so that ``-m servers --repeat 50`` repeats them. ``alone`` is for those that need the host for themselves: a
study that waits while other processes use it, or that is judged by what it measures.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest
import skips

IS_LONG = os.environ.get("RACKSCOPE_SUITE") == "long"
#: Tests with one of these start processes that listen, measure or are killed.
PROCESS_FIXTURES = {"rackscope", "finished_run", "cache_endpoint", "squeezable"}
#: Where tests that run alone are: ``make test`` collects these files alone.
STUDIES = ("test_studies_", "test_end_to_end_studies")

# The short suite draws the same examples each time; the long one draws anew and prints how to get a failure again.
hypothesis.settings.register_profile("short", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("long", max_examples=1000, database=None, deadline=None, print_blob=True)
hypothesis.settings.load_profile("long" if IS_LONG else "short")


class Trials:
    """How many trials a simulation makes, and its generator: few from a fixed seed, or many from a new one."""

    def __init__(self) -> None:
        self.is_long = IS_LONG
        self.drawn = int(os.environ.get("RACKSCOPE_SEED", "0")) if IS_LONG else 0

    def count(self, short: int, long: int) -> int:
        """How many."""
        return long if self.is_long else short

    def generator(self, seed: int) -> np.random.Generator:
        """Random numbers: from ``seed`` alone in the short suite."""
        return np.random.default_rng([seed, self.drawn] if self.drawn else seed)

    def seeds(self, count: int) -> range:
        """So many seeds, one a trial."""
        return range(self.drawn, self.drawn + count)


@pytest.fixture(scope="session")
def trials() -> Trials:
    """What simulations ask how long they may be."""
    return Trials()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rackscope")
    group.addoption("--repeat", type=int, default=1, help="run each test so many times, in rounds")
    group.addoption("--for-seconds", type=float, help="begin no further test after so many seconds")
    group.addoption("--start", default="", help="a word or a hash: begin at the place that it gives")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_began] = time.monotonic()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("repeat")
    if times > 1:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(times))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if PROCESS_FIXTURES.intersection(getattr(item, "fixturenames", ())) or item.path.stem.endswith("_real"):
            item.add_marker(pytest.mark.servers)
        if item.get_closest_marker("alone") and not item.path.stem.startswith(STUDIES):
            raise pytest.UsageError(f"{item.nodeid} is to run alone, and is in none of the files of studies")
    word = config.getoption("start")
    if word:
        first = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % max(1, len(items))
        items[:] = items[first:] + items[:first]
    if config.getoption("repeat") > 1:
        items.sort(key=lambda item: item.callspec.params["repetition"])


def pytest_runtest_setup(item: pytest.Item) -> None:
    seconds = item.config.getoption("for_seconds")
    if seconds is not None and time.monotonic() - item.config.stash[_began] > seconds:
        pytest.skip(OVER)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """In CI, a skip that the machine need not make fails."""
    result = yield
    report = result.get_result()
    if report.skipped and skips.is_strict() and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[-1]).removeprefix("Skipped: ")
        if reason != OVER and not skips.is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was skipped, which CI need not do (tools/skips.py): {reason}"


OVER = "the time of this part is over"
_began = pytest.StashKey[float]()
