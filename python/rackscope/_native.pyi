"""The door to Rust. Everything that blocks releases the GIL."""

from os import PathLike
from typing import Any

class Sampler:
    """Samples the host on a thread of its own, on absolute ticks.

    ``processes`` maps a label to the pid at the root of a process tree; ``cgroups`` maps a label to a cgroup path.
    ``local_meters`` are the power meters that this host has itself; ``meters_json`` names others, a list of::

        {"kind": "snmp", "address": "192.0.2.7", "port": 161, "community": "public", "interval_seconds": 1.0,
         "timeout_seconds": 1.0, "readings": [{"oid": "1.3.6.1...", "measured": MEASURED}]}
        {"kind": "file", "path": "/run/watts", "interval_seconds": 1.0, "measured": MEASURED}
        {"kind": "command", "arguments": ["meter", "--watch"], "interval_seconds": 1.0, "timeout_seconds": 1.0,
         "measured": MEASURED}

    with ``MEASURED = {"domain": "server", "quantity": "watts" | "joules", "scale": 1.0}``.
    """

    def __init__(
        self,
        *,
        root: str = "/",
        interval_seconds: float = 0.1,
        processes: dict[str, int] | None = None,
        cgroups: dict[str, str] | None = None,
        perf: bool = True,
        local_meters: bool = True,
        meters_json: str | None = None,
    ) -> None: ...
    @property
    def columns(self) -> list[str]:
        """Metric names, in the order of the values of a row; fixed from construction on."""
    @property
    def probes(self) -> list[dict[str, Any]]:
        """One dict a probe: name, status (``ok``, ``missing``, ``untrusted``), reason, needs, columns."""
    def start(self) -> None: ...
    def drain(self) -> tuple[bytes, bytes]:
        """Rows since the last call: int64 timestamps (ns) and float64 values, row-major, NaN where unreadable."""
    def stop(self) -> dict[str, float]:
        """``ticks``, ``missed_ticks``, ``cpu_seconds``, ``wall_seconds``, ``worst_lateness_seconds``."""

def list_probes(root: str = "/", meters_json: str | None = None) -> list[dict[str, Any]]:
    """What ``Sampler.probes`` would say, without starting one."""

class LoadClient:
    """A load generator with its connections and its memory of what it wrote.

    ``config_json``::

        {"target": {"kind": "tcp", "host": "127.0.0.1", "port": 11211} | {"kind": "unix", "path": "/..."},
         "protocol": "memcached_text" | "memcached_meta" | "resp",
         "connections": 50, "cores": [1],            # one worker thread a core, pinned; [] = one, not pinned
         "pipeline": 1,                              # requests outstanding a connection (closed loop)
         "multiget": 1,                              # keys a read request
         "seed": 42, "verify": true,
         "keys": {"count": 100000, "size": {"kind": "fixed", "bytes": 24} | {"kind": "etc"}},
         "values": {"kind": "fixed", "bytes": 1000} | {"kind": "etc"}}

    ``start_phase`` takes::

        {"name": "measure", "operations": {"read": 0.95, "update": 0.05},
         "distribution": {"kind": "uniform"} | {"kind": "zipfian", "theta": 0.99, "scrambled": true}
                       | {"kind": "latest", "theta": 0.99} | {"kind": "sequential"}
                       | {"kind": "hotspot", "hot_keys": 0.2, "hot_operations": 0.8},
         "loop": {"kind": "closed"} | {"kind": "open", "arrivals": "poisson" | "constant", "rate_per_second": 20000},
         "duration_seconds": 5.0 | null, "operation_count": null | 100000,
         "interval_seconds": 0.25, "record_latency": true}

    Operations: read, update, insert, read_modify_write (memcached and RESP); lpush, lpop, zadd, zrange, sadd (RESP).
    A preload is ``{"insert": 1.0}`` over ``sequential`` with ``operation_count`` = keys.count.
    """

    def __init__(self, config_json: str) -> None: ...
    def start_phase(self, phase_json: str) -> None: ...
    def poll(self) -> list[dict[str, float]]:
        """Intervals since the last call, keyed by the metric names of ARCHITECTURE.md plus ``timestamp_ns``."""
    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the phase ends; True when it has."""
    def stop_phase(self) -> None: ...
    def phase_result(self) -> dict[str, Any]:
        """After the phase ended::

        {"name", "start_ns", "end_ns", "duration_seconds", "operations", "errors", "hits", "misses",
         "wrong_values", "first_wrong" (str | None), "first_error" (str | None), "bytes_sent", "bytes_received",
         "offered_operations_per_second" (float | None), "unsent_operations",
         "generator_cpu_seconds", "generator_idle_ratio", "lag_p99_seconds",
         "failed" (str | None: why the phase ended early, such as "the server closed connection 3"),
         "per_operation": {"read": {"count", "errors", "hits", "misses"}},
         "histograms": [{"operation", "kind": "response" | "service" | "lag", "grouping_power",
                         "max_value_power", "index": list[int], "count": list[int], "mean_seconds", "max_seconds"}]}
        """
    def close(self) -> None: ...

class NullResponder:
    """Answers every request with canned bytes, as fast as one core can: what the generator is measured against."""

    def __init__(self, protocol: str, endpoint_json: str, core: int | None = None) -> None: ...
    @property
    def endpoint(self) -> str:
        """JSON of the endpoint it listens on (port 0 becomes the one it got)."""
    def stop(self) -> None: ...

# Every measurement by rounds also returns ``seconds`` (inside the rounds), ``start_ns`` and ``end_ns`` (since the
# epoch) and ``rates_per_second`` (one a round). Unprefixed rates are the best round's; ``median_`` is the median's.

class Speedometer:
    """Takes the speed of ``cores`` while others run on them, at under one percent of their time, until ``stop``."""

    def __init__(self, cores: list[int]) -> None: ...
    def read(self) -> list[tuple[int, float]]:
        """Instructions executed in bursts since the start and the CPU seconds that took, core by core."""
    def stop(self) -> None: ...

class StallMeter:
    """Watches how long ``cores`` stand still, with threads of real-time priority, until ``stop``.

    Raises OSError without the right to that priority.
    """

    def __init__(self, cores: list[int]) -> None: ...
    def read(self) -> list[tuple[float, float]]:
        """Seconds that each core stood still since the start, and those that it was watched."""
    def stop(self) -> None: ...

def measure_instruction_rate(seconds: float, cores: list[int]) -> dict[str, Any]:
    """``instructions_per_second`` of a kernel with a known number of instructions, all ``cores`` at once.

    Also ``median_instructions_per_second``, ``instructions``, ``exact`` (False: the number is only estimated).
    """

def measure_core_clock(seconds: float, core: int) -> dict[str, Any] | None:
    """``hertz`` and ``median_hertz`` of a core from dependent additions; None where there is no such kernel."""

def measure_dram_bandwidth(
    kind: str, threads: int, bytes_per_thread: int, seconds: float, cores: list[int] | None = None
) -> dict[str, Any]:
    """``kind`` is read, write or copy: ``bytes_per_second``, ``median_bytes_per_second``, ``bytes_moved``.

    Also ``buffer_bytes``, ``huge_page_bytes`` (None: unknown), ``instruction_set``, ``stores`` (``non-temporal``,
    ``ordinary``, or None for read). ``cores`` are where the threads are pinned; by default the first usable ones.
    """

def measure_dram_latency(working_set_bytes: int, seconds: float, core: int | None = None) -> dict[str, Any]:
    """A dependent chain over ``working_set_bytes``: ``seconds_per_load``, ``median_seconds_per_load``, ``loads``.

    Also ``working_set_bytes`` (whole nodes) and ``huge_page_bytes`` (None: unknown).
    """

def measure_loopback_bandwidth(seconds: float, sender_core: int, receiver_core: int) -> dict[str, float]:
    """One TCP connection over 127.0.0.1: ``bytes_per_second``, ``bytes_moved``, ``seconds``."""

def stay_awake(parent: int) -> None:
    """Spin, leaving the hardware thread beside it nearly all of the core, until ``parent`` is the parent no more."""

class Antagonist:
    """Threads pinned to ``cores`` that take a resource away from others by using it, from construction to ``stop``.

    ``kind`` is ``dram_bandwidth`` (reads buffers that no cache holds), ``last_level_cache`` (touches every line of
    buffers as large as the cache) or ``placebo`` (instructions only, for the same share of the same cores). Each thread
    is busy for ``duty`` (above 0, at most 1) of the time; ``bytes_per_second`` bounds what all of them move.
    ``buffer_bytes`` is the size of all buffers together, by default as the host's last-level cache wants it. ``nice``
    is 0 to 19. Raises ValueError, and OSError for a core or memory that cannot be had.
    """

    def __init__(
        self,
        kind: str,
        cores: list[int],
        *,
        duty: float = 1.0,
        bytes_per_second: float | None = None,
        buffer_bytes: int | None = None,
        nice: int = 0,
    ) -> None: ...
    @property
    def moved_bytes(self) -> int: ...
    @property
    def busy_seconds(self) -> float:
        """Of all threads together."""
    def stop(self) -> None:
        """End the threads. Idempotent; also done when the object goes."""

class RegulatedChannel:
    """The memory channel of known bandwidth of a running ``rackscope-synthetic``, by the path of its file.

    Raises OSError when it cannot be opened and ValueError when the file is none.
    """

    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def bytes_per_second(self) -> int:
        """When nothing is taken away."""
    @property
    def bytes_per_second_left(self) -> int: ...
    @property
    def carried_bytes(self) -> int:
        """Drawn by all since it was made."""
    def measure(self, seconds: float) -> float:
        """Bytes a second that a thread gets which draws as fast as it may, after using up what was kept."""
    def hold(self, fraction: float) -> ChannelHold:
        """Leave ``fraction`` of it; RuntimeError when somebody else holds a part."""

class ChannelHold:
    """A part of a channel that is taken away until ``stop``; half a second after this process was killed at most."""

    def stop(self) -> int:
        """Give it back; the bytes that were withheld. Idempotent; also done when the object goes."""

def last_level_cache_bytes(root: str | PathLike[str] = "/") -> int | None:
    """Size of the largest cache of the highest level; None where the kernel does not say."""
