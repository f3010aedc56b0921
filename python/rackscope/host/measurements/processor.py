"""Instructions per second, and the clock that they were executed at."""

from __future__ import annotations

from rackscope.host.ceilings import Ceiling
from rackscope.host.measurements.setting import Setting


def measure_instructions(setting: Setting) -> list[Ceiling]:
    """All cores at once; beside it one core alone and its clock."""
    seconds = setting.seconds(0.4, 3.0)
    first = setting.cores[0]
    clock = setting.kernels.measure_core_clock(seconds / 2, first)
    alone = setting.kernels.measure_instruction_rate(seconds / 2, [first])
    together = setting.kernels.measure_instruction_rate(seconds, list(setting.cores))
    detail = {
        "cores": list(setting.cores),
        "one_core_instructions_per_second": alone["instructions_per_second"],
        "instructions_per_second_and_core": together["instructions_per_second"] / len(setting.cores),
    }
    if clock is not None:
        detail["core_clock_hertz"] = clock["hertz"]
        detail["instructions_per_cycle"] = alone["instructions_per_second"] / clock["hertz"]
    return [
        Ceiling.of(
            "instructions_per_second",
            together["rates_per_second"],
            "instructions/s",
            method=f"a loop of independent additions and cached loads, on {_cores(len(setting.cores))} at once",
            distrust=None if together["exact"] else "the instructions of this architecture's kernel are only estimated",
            detail=detail,
        )
    ]


def _cores(count: int) -> str:
    return f"{count} core{'' if count == 1 else 's'}"
