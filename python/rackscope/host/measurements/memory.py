"""DRAM: bandwidth over threads, latency over working sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rackscope.host.ceilings import CalibrationError, Ceiling
from rackscope.host.measurements.setting import Setting
from rackscope.units import format_bytes

_MEBIBYTE = 1 << 20
#: STREAM's rule: the arrays are at least four times the last-level cache.
_CACHES_OVER = 4
_SMALLEST_BUFFER_BYTES = 256 * _MEBIBYTE
#: Where the size of the caches is not to be had: four times the largest that servers usually have.
_BUFFER_WITHOUT_KNOWN_CACHE_BYTES = 1024 * _MEBIBYTE
#: The most of the free memory that is taken.
_SHARE_OF_MEMORY = 0.4
_LARGEST_CHASE_BYTES = 1024 * _MEBIBYTE
_SMALLEST_RUNG_BYTES = 16 << 10

_DOES = {"read": "summing", "write": "overwriting", "copy": "copying"}


def measure_bandwidth(setting: Setting, kind: str) -> list[Ceiling]:
    """One ``kind`` of traffic (read, write, copy) over 1, 2, 4, ... threads; the ceiling is the best of them."""
    buffer_bytes, distrust = stream_buffer(setting)
    by_threads: dict[int, dict[str, Any]] = {}
    for threads in thread_counts(len(setting.cores), quick=setting.quick):
        by_threads[threads] = setting.kernels.measure_dram_bandwidth(
            kind, threads, buffer_bytes // threads, setting.seconds(0.6, 1.5), list(setting.cores[:threads])
        )
    threads, best = max(by_threads.items(), key=lambda item: float(item[1]["bytes_per_second"]))
    stores = f", {best['stores']} stores" if best["stores"] else ""
    return [
        Ceiling.of(
            f"dram_{kind}_bytes_per_second",
            best["rates_per_second"],
            "bytes/s",
            method=f"{_DOES[kind]} {format_bytes(best['buffer_bytes'])} again and again with "
            f"{threads} pinned thread{'' if threads == 1 else 's'} ({best['instruction_set']}{stores})",
            distrust=distrust,
            detail={
                "threads": threads,
                "bytes_per_second_by_threads": {
                    str(count): one["bytes_per_second"] for count, one in by_threads.items()
                },
                "buffer_bytes": best["buffer_bytes"],
                "huge_page_bytes": best["huge_page_bytes"],
                "last_level_cache_bytes": setting.inventory.processor.last_level_cache_bytes(),
                "instruction_set": best["instruction_set"],
                "stores": best["stores"],
            },
        )
    ]


def measure_latency(setting: Setting) -> list[Ceiling]:
    """A dependent chain on one core, over working sets from the first cache to DRAM."""
    core = setting.cores[0]
    largest, distrust = chase_bytes(setting)
    ladder = {}
    for working_set in rungs(setting, largest):
        rung = setting.kernels.measure_dram_latency(working_set, setting.seconds(0.08, 0.4), core)
        ladder[str(rung["working_set_bytes"])] = rung["median_seconds_per_load"]
    found = setting.kernels.measure_dram_latency(largest, setting.seconds(0.8, 2.0), core)
    ladder[str(found["working_set_bytes"])] = found["median_seconds_per_load"]
    huge = found["huge_page_bytes"]
    pages = "huge pages" if huge and huge >= found["working_set_bytes"] // 2 else "small pages: page walks included"
    return [
        Ceiling.of(
            "dram_latency_seconds",
            [1.0 / rate for rate in found["rates_per_second"] if rate > 0],
            "seconds",
            method=f"dependent loads over a random cycle through {format_bytes(found['working_set_bytes'])} "
            f"on core {core} ({pages})",
            lower_is_better=True,
            distrust=distrust,
            detail={
                "seconds_per_load_by_working_set_bytes": ladder,
                "working_set_bytes": found["working_set_bytes"],
                "huge_page_bytes": huge,
            },
        )
    ]


def thread_counts(cores: int, *, quick: bool) -> list[int]:
    """1, 2, 4, ... and all; only one and all when quick."""
    counts = {1, cores}
    step = 2
    while not quick and step < cores:
        counts.add(step)
        step *= 2
    return sorted(counts)


def stream_buffer(setting: Setting) -> tuple[int, str | None]:
    """Bytes to stream over, and why the result should not be believed if they are too few."""
    cache = setting.inventory.processor.last_level_cache_bytes()
    wanted = max(_CACHES_OVER * cache, _SMALLEST_BUFFER_BYTES) if cache else _BUFFER_WITHOUT_KNOWN_CACHE_BYTES
    return _bounded(setting, wanted, cache)


def chase_bytes(setting: Setting) -> tuple[int, str | None]:
    """Bytes to chase through: one core reaches one instance of the last-level cache."""
    outermost = setting.inventory.processor.last_level_cache()
    cache = outermost.size_bytes if outermost else None
    wanted = max(_CACHES_OVER * cache, _SMALLEST_BUFFER_BYTES) if cache else _LARGEST_CHASE_BYTES
    return _bounded(setting, min(wanted, _LARGEST_CHASE_BYTES), cache, enough=2)


def _bounded(setting: Setting, wanted: int, cache: int | None, enough: int = _CACHES_OVER) -> tuple[int, str | None]:
    memory, group = setting.inventory.memory, setting.inventory.cgroup
    known = [size for size in (memory.available_bytes, group.memory_limit_bytes) if size is not None]
    allowed = int(min(known) * _SHARE_OF_MEMORY) if known else _SMALLEST_BUFFER_BYTES
    if allowed < _MEBIBYTE * len(setting.cores):
        raise CalibrationError(
            f"there is too little memory to measure it: {format_bytes(min(known))} are available",
            "End something first.",
        )
    size = min(wanted, allowed)
    if cache is None or size >= enough * cache:
        return size, None
    return size, (
        f"memory allowed buffers of {format_bytes(size)}, less than {enough} times the last-level cache of "
        f"{format_bytes(cache)}, which may have answered"
    )


def rungs(setting: Setting, largest: int) -> Iterator[int]:
    """Working sets below ``largest``: powers of two, or half of each cache when quick."""
    if setting.quick:
        sizes = {cache.size_bytes for cache in setting.inventory.processor.caches if cache.kind != "instruction"}
        yield from sorted(size // 2 for size in sizes if size and size // 2 < largest)
        return
    size = _SMALLEST_RUNG_BYTES
    while size < largest:
        yield size
        size *= 2
