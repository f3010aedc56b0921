"""Which skips of tests are no failure in CI: those that a plain two-core machine with root has to make.

``CI=true`` (or ``RACKSCOPE_SKIPS=fail``) makes every other skip a failure. Rust tests print ``skipped: REASON`` and
pass, which ``tools/rust_tests.py`` reads; Python tests skip by pytest, which ``tests/suites.py`` reads.
"""

from __future__ import annotations

import os
import re

ALLOWED = (
    # What the hardware or the hypervisor does not have.
    r"resctrl|resource control|cache monitoring|bandwidth allocation",
    r"perf events? (are|is) not|perf_event|no counters?\b|hardware counters",
    r"GPU|NVML|IPMI|RAPL|power meter|power strip",
    r"two cores|fewer than \d+ cores",
    r"too little memory",
    # What the kernel is not built or mounted with.
    r"native mode",
    r"no (memory|cpuset|io|blkio|cpu) controller|the kernel has no|not in this kernel",
    r"the temporary folder is on no disk|does not (take|do) direct",
    # Data that is published elsewhere; clients in languages that are not installed, or whose libraries cannot be had.
    r"set RACKSCOPE_DATA",
    r"it has no wheels",
    # Peers of the cache that no package of Debian 12 holds.
    r"^(pogocache|valkey|dragonfly|garnet|segcache) is not on this machine",
    r"(chromium|\bgo|node|npm|java|perl|php|ruby) is not|^(npm|go) ",
)


def is_strict() -> bool:
    """Whether a skip that is not allowed is a failure."""
    return os.environ.get("RACKSCOPE_SKIPS") == "fail" or os.environ.get("CI") == "true"


def is_allowed(reason: str) -> bool:
    """Whether a machine of CI may skip for this reason."""
    return any(re.search(pattern, reason, re.IGNORECASE) for pattern in ALLOWED)
