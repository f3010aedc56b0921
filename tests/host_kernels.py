"""A native module that measures nothing: kernels with fixed answers, in place of ``rackscope._native``."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rackscope.host.inventory import Inventory
from rackscope.host.measurements.setting import FioProgram, Setting, choose_cores
from rackscope.host.tree import Tree

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS


def setting(
    inventory: Inventory,
    kernels: Any,
    root: Path,
    *,
    quick: bool = True,
    fio: FioProgram | None = None,
    folder: Path = Path("/"),
) -> Setting:
    return Setting(inventory, Tree(root), choose_cores(inventory, None), quick, kernels, folder, fio)


class FakeSampler:
    """Counts at a steady rate before the kernel, and at another while it runs."""

    def __init__(self, columns: list[str], before: float, during: float, probes: list[dict[str, Any]]) -> None:
        self.columns, self.probes = columns, probes
        self.before, self.during = before, during
        self.running = False
        self.was_started = False

    def start(self) -> None:
        self.running = self.was_started = True

    def stop(self) -> dict[str, float]:
        self.running = False
        return {}

    def drain(self) -> tuple[bytes, bytes]:
        stamps, values = array("q"), array("d")
        count = 0.0
        for tick in range(-10, 31):
            stamps.append(START_NS + tick * SECOND_NS // 10)
            values.extend([-1.0] * (len(self.columns) - 1) + [count])
            count += (self.before if tick < 0 else self.during if tick < 20 else self.before) / 10
        return stamps.tobytes(), values.tobytes()


class FakeKernels:
    """Two seconds of work from ``START_NS`` on, whatever was asked; ``calls`` remembers what was."""

    def __init__(self, sampler: FakeSampler | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.sampler = sampler or FakeSampler(["cpu"], 0, 0, [])
        self.fail: dict[str, BaseException] = {}
        self.closed: list[str] = []
        self.after: Callable[[str], None] = lambda _: None

    def _rounds(self, name: str, *arguments: Any) -> dict[str, Any]:
        self.calls.append((name, *arguments))
        if name in self.fail:
            raise self.fail[name]
        self.after(name)
        return {
            "seconds": 2.0,
            "start_ns": START_NS,
            "end_ns": START_NS + 2 * SECOND_NS,
            "rates_per_second": [8.0e9, 1.0e10, 9.0e9],
        }

    def measure_instruction_rate(self, seconds: float, cores: list[int]) -> dict[str, Any]:
        return {
            **self._rounds("instructions", seconds, tuple(cores)),
            "instructions_per_second": 1.0e10,
            "median_instructions_per_second": 9.0e9,
            "instructions": 20_000_000_000,
            "exact": True,
        }

    def measure_core_clock(self, seconds: float, core: int) -> dict[str, Any] | None:
        return {**self._rounds("clock", seconds, core), "hertz": 2.5e9, "median_hertz": 2.5e9}

    def measure_dram_bandwidth(
        self, kind: str, threads: int, bytes_per_thread: int, seconds: float, cores: list[int] | None = None
    ) -> dict[str, Any]:
        return {
            **self._rounds(kind, threads, bytes_per_thread, tuple(cores or ())),
            "bytes_per_second": 1.0e10 * threads,
            "median_bytes_per_second": 9.0e9 * threads,
            "bytes_moved": 20_000_000_000,
            "buffer_bytes": bytes_per_thread * threads,
            "huge_page_bytes": None,
            "instruction_set": "avx2",
            "stores": None if kind == "read" else "non-temporal",
        }

    def measure_dram_latency(self, working_set_bytes: int, seconds: float, core: int | None = None) -> dict[str, Any]:
        return {
            **self._rounds("latency", working_set_bytes, core),
            "seconds_per_load": 1e-10,
            "median_seconds_per_load": 1.2e-10,
            "loads": 1000,
            "working_set_bytes": working_set_bytes,
            "huge_page_bytes": working_set_bytes,
        }

    def measure_loopback_bandwidth(self, seconds: float, sender_core: int, receiver_core: int) -> dict[str, float]:
        self._rounds("loopback", sender_core, receiver_core)
        return {"bytes_per_second": 5.0e9, "bytes_moved": 5.0e9, "seconds": 1.0}

    def LoadClient(self, config: str) -> Any:  # noqa: N802
        self.calls.append(("client", json.loads(config)))
        return _Client(self)

    def NullResponder(self, protocol: str, endpoint: str, core: int | None) -> Any:  # noqa: N802
        self.calls.append(("responder", protocol, core))
        return _Responder(self)

    def Sampler(self, **options: Any) -> Any:  # noqa: N802
        self.calls.append(("sampler", options))
        return self.sampler


class _Responder:
    endpoint = '{"kind": "tcp", "host": "127.0.0.1", "port": 4711}'

    def __init__(self, kernels: FakeKernels) -> None:
        self.kernels = kernels

    def stop(self) -> None:
        self.kernels.closed.append("responder")


class _Client:
    def __init__(self, kernels: FakeKernels) -> None:
        self.kernels = kernels

    def start_phase(self, phase: str) -> None:
        self.kernels._rounds("phase", json.loads(phase)["operations"])

    def wait(self, timeout_seconds: float) -> bool:
        return True

    def stop_phase(self) -> None:
        self.kernels.closed.append("phase")

    def phase_result(self) -> dict[str, Any]:
        return {"operations": 100_000, "duration_seconds": 1.0, "failed": None}

    def close(self) -> None:
        self.kernels.closed.append("client")
