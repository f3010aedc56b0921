"""Are this host's counters to be believed? Each is checked against a kernel that does a known amount."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rackscope.host.ceilings import CounterCheck
from rackscope.host.measurements.memory import stream_buffer
from rackscope.host.measurements.setting import Setting
from rackscope.units import now_text

DRAM_FILLS = 'perf_dram_fills_total{scope="host"}'
INSTRUCTIONS = 'perf_instructions_total{scope="host"}'
#: A counter that is further from the known amount than this is not believed.
TOLERANCE = 0.05
_INTERVAL_SECONDS = 0.05
_QUIET_SECONDS = 0.5
_CACHE_LINE_BYTES = 64


def check_counters(setting: Setting, pause: Callable[[float], None] = time.sleep) -> list[CounterCheck]:
    """Check DRAM fills and instructions, each while its kernel runs."""
    seconds = setting.seconds(1.0, 3.0)
    cores = list(setting.cores)

    def stream() -> dict[str, Any]:
        size, _ = stream_buffer(setting)
        moved = setting.kernels.measure_dram_bandwidth("read", len(cores), size // len(cores), seconds, cores)
        return {**moved, "amount": moved["bytes_moved"]}

    def execute() -> dict[str, Any]:
        done = setting.kernels.measure_instruction_rate(seconds, cores)
        return {**done, "amount": done["instructions"]}

    return [
        check_counter(setting, DRAM_FILLS, line_bytes(setting), stream, pause),
        check_counter(setting, INSTRUCTIONS, 1, execute, pause),
    ]


def line_bytes(setting: Setting) -> int:
    """Bytes that one fill brings in."""
    lines = [cache.line_bytes for cache in setting.inventory.processor.caches if cache.line_bytes]
    return max(lines, default=_CACHE_LINE_BYTES)


def check_counter(
    setting: Setting,
    column: str,
    units_per_count: int,
    run_kernel: Callable[[], Mapping[str, Any]],
    pause: Callable[[float], None] = time.sleep,
) -> CounterCheck:
    """Compare the rate of ``column`` while the kernel runs, less its rate before, with what the kernel did.

    The kernel's answer has ``amount`` (in units, over all of its rounds), ``start_ns`` and ``end_ns``.
    """
    sampler = setting.kernels.Sampler(root="/", interval_seconds=_INTERVAL_SECONDS, perf=True, local_meters=False)
    columns, probes = list(sampler.columns), list(sampler.probes)
    if column not in columns:
        return CounterCheck(column, "missing", why_missing(column, probes), None, now_text())
    sampler.start()
    try:
        pause(_QUIET_SECONDS)
        known = run_kernel()
        # One more tick, so that a row lies at the kernel's end.
        pause(2 * _INTERVAL_SECONDS)
    finally:
        sampler.stop()
    stamps, values = _series(sampler.drain(), columns.index(column), len(columns))
    return judge(column, stamps, values, units_per_count, known)


def judge(
    column: str, stamps: Sequence[int], values: Sequence[float], units_per_count: int, known: Mapping[str, Any]
) -> CounterCheck:
    """Pure: whether the counter's rate inside the kernel's window is the kernel's, within the tolerance."""
    start, end = int(known["start_ns"]), int(known["end_ns"])
    # A row that could not be read is NaN, the only value that differs from itself.
    rows = [(stamp, value) for stamp, value in zip(stamps, values, strict=True) if not math.isnan(value)]
    during = _rate([row for row in rows if start <= row[0] <= end])
    before = _rate([row for row in rows if row[0] < start])
    if during is None or before is None:
        return CounterCheck(column, "missing", "the counter could not be read while the kernel ran", None, now_text())
    expected = float(known["amount"]) / ((end - start) / 1e9)
    error = (during - before) * units_per_count / expected - 1.0
    if abs(error) <= TOLERANCE:
        reason = f"within {TOLERANCE:.0%} of what a known kernel did ({error:+.1%})"
        return CounterCheck(column, "trusted", reason, error, now_text())
    reason = f"{error:+.0%} away from what a known kernel did; at most {TOLERANCE:.0%} is believed"
    return CounterCheck(column, "untrusted", reason, error, now_text())


def why_missing(column: str, probes: Sequence[Mapping[str, Any]]) -> str:
    """What the probes say about a column that they do not offer."""
    family = column.partition("{")[0]
    perf = [probe for probe in probes if "perf" in str(probe.get("name", "")) and probe.get("reason")]
    named = [probe for probe in perf if family.removeprefix("perf_").removesuffix("_total") in str(probe["name"])]
    for probe in named or perf:
        return str(probe["reason"])
    return "no probe of this host offers the counter"


def _rate(rows: Sequence[tuple[int, float]]) -> float | None:
    """Counts a second from the first row to the last; ``None`` with fewer than two."""
    if len(rows) < 2 or rows[-1][0] <= rows[0][0]:
        return None
    return (rows[-1][1] - rows[0][1]) / ((rows[-1][0] - rows[0][0]) / 1e9)


def _series(blocks: tuple[bytes, bytes], column: int, width: int) -> tuple[list[int], list[float]]:
    stamps, values = array("q"), array("d")
    stamps.frombytes(blocks[0])
    values.frombytes(blocks[1])
    return list(stamps), list(values[column::width])
