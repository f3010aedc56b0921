"""The steps of a calibration, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from rackscope.host.ceilings import Ceiling, CounterCheck
from rackscope.host.measurements.counters import DRAM_FILLS, INSTRUCTIONS, check_counters
from rackscope.host.measurements.disk import measure_disk
from rackscope.host.measurements.memory import measure_bandwidth, measure_latency
from rackscope.host.measurements.network import measure_loopback_bytes, measure_loopback_requests, read_link_speeds
from rackscope.host.measurements.processor import measure_instructions
from rackscope.host.measurements.setting import Setting

#: What is being done now, and the share of the step that is over.
Say = Callable[[str, float], None]
#: Whatever is found, as soon as it is: what takes long is kept bit by bit.
Result = Iterable[Ceiling | CounterCheck]


@dataclass(frozen=True)
class Step:
    """One measurement: what it finds (and what is missing if it fails), and about how long it takes in full."""

    group: str
    activity: str
    names: tuple[str, ...]
    measure: Callable[[Setting, Say], Result]
    seconds: float
    quick: bool = True


def _silent(measure: Callable[[Setting], Result]) -> Callable[[Setting, Say], Result]:
    """A measurement that is over before it could say more than its name."""
    return lambda setting, _say: measure(setting)


STEPS = (
    Step("cpu", "instructions per second", ("instructions_per_second",), _silent(measure_instructions), 6),
    *(
        Step(
            "memory",
            f"DRAM {kind}",
            (f"dram_{kind}_bytes_per_second",),
            _silent(partial(measure_bandwidth, kind=kind)),
            5,
        )
        for kind in ("read", "write", "copy")
    ),
    Step("memory", "DRAM latency", ("dram_latency_seconds",), _silent(measure_latency), 10),
    Step("network", "loopback bandwidth", ("loopback_bytes_per_second",), _silent(measure_loopback_bytes), 6),
    Step("network", "loopback requests", ("loopback_requests_per_second",), _silent(measure_loopback_requests), 9),
    Step("network", "link speeds", ("network_bytes_per_second",), _silent(read_link_speeds), 0.1),
    Step(
        "counters",
        "counters against known kernels",
        (DRAM_FILLS, INSTRUCTIONS),
        _silent(check_counters),
        9,
        quick=False,
    ),
    Step(
        "disk",
        "disk",
        (
            "disk_sequential_read_bytes_per_second",
            "disk_sequential_write_bytes_per_second",
            "disk_random_read_operations_per_second",
            "disk_random_write_operations_per_second",
        ),
        measure_disk,
        55,
        quick=False,
    ),
)
