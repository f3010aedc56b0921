"""The host sampler as frames, and what it says about the system at a phase's two ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rackscope.errors import ProbeError
from rackscope.host.meters import Meters
from rackscope.mounts import read_memberships

_SYSTEM_CPU = (
    'process_cpu_seconds_total{process="system",state="user"}',
    'process_cpu_seconds_total{process="system",state="system"}',
)
_SYSTEM_RESIDENT = 'process_resident_bytes{process="system"}'


class HostSampler:
    """``rackscope._native.Sampler`` with polars frames for blocks of rows."""

    def __init__(
        self,
        interval_seconds: float,
        processes: Mapping[str, int],
        cgroups: Mapping[str, str] | None = None,
        meters: Meters | None = None,
    ) -> None:
        from rackscope import _native

        meters = meters or Meters()

        self.interval_seconds = interval_seconds
        try:
            self._sampler = _native.Sampler(
                interval_seconds=interval_seconds,
                processes=dict(processes),
                cgroups=dict(cgroups or {}),
                local_meters=meters.local,
                meters_json=meters.to_json(),
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ProbeError(f"the host cannot be sampled: {error}", "Run 'rackscope doctor' to see why.") from error
        self._require(meters)
        self._columns = list(self._sampler.columns)
        self._system_columns = {
            name: self._columns.index(name) for name in (*_SYSTEM_CPU, _SYSTEM_RESIDENT) if name in self._columns
        }
        self._system_rows: list[tuple[int, float, float]] = []
        self._stopped: dict[str, float] | None = None

    @property
    def probes(self) -> list[dict[str, Any]]:
        """Each source of samples and whether it could be read."""
        return list(self._sampler.probes)

    def _require(self, meters: Meters) -> None:
        """What the user named is there, or the run would be without what it was made for."""
        kinds = {meter["kind"] for meter in meters.named}
        for probe in self.probes:
            name = str(probe["name"]).removeprefix("power:")
            if probe["status"] == "missing" and name != probe["name"] and name.partition(":")[0] in kinds:
                raise ProbeError(
                    f"the power meter {name} cannot be read: {probe['reason']}", "Correct it, or leave out its --meter."
                )

    def start(self) -> None:
        self._sampler.start()

    @property
    def meters_power(self) -> bool:
        return any(name.startswith(("power_watts", "energy_joules_total")) for name in self._columns)

    def drain(self) -> pl.DataFrame:
        """Rows since the last call."""
        times_raw, values_raw = self._sampler.drain()
        times = np.frombuffer(times_raw, dtype="<i8")
        values = np.frombuffer(values_raw, dtype="<f8").reshape(len(times), len(self._columns))
        self._remember(times.tolist(), values)
        # This runs beside the load generator: rows are turned once, and columns taken over as they lie.
        by_column = np.ascontiguousarray(values.T)
        columns = [pl.Series(name, row, nan_to_null=True) for name, row in zip(self._columns, by_column, strict=True)]
        return pl.DataFrame([pl.Series("timestamp_ns", times, dtype=pl.Int64), *columns])

    def _remember(self, times: list[int], values: Any) -> None:
        positions = self._system_columns
        if len(positions) < len(_SYSTEM_CPU) + 1:
            return
        cpu = values[:, [positions[name] for name in _SYSTEM_CPU]].sum(axis=1)
        resident = values[:, positions[_SYSTEM_RESIDENT]]
        self._system_rows.extend(zip(times, cpu.tolist(), resident.tolist(), strict=True))

    def system_use(self, start_ns: int, end_ns: int) -> tuple[float | None, float | None]:
        """CPU seconds between the two moments, and resident bytes at the end; forgets what is before ``start_ns``."""
        rows = [row for row in self._system_rows if row[1] == row[1]]
        self._system_rows = [row for row in self._system_rows if row[0] >= start_ns - 2_000_000_000]
        start, end = _interpolate(rows, start_ns), _interpolate(rows, end_ns)
        last = [row[2] for row in rows if start_ns <= row[0] <= end_ns]
        resident = last[-1] if last and last[-1] == last[-1] else None
        return (end - start if start is not None and end is not None else None), resident

    def stop(self) -> dict[str, float]:
        """End the thread; what it cost. Idempotent."""
        if self._stopped is None:
            self._stopped = dict(self._sampler.stop())
        return self._stopped


def _interpolate(rows: list[tuple[int, float, float]], moment_ns: int) -> float | None:
    before = [row for row in rows if row[0] <= moment_ns]
    after = [row for row in rows if row[0] > moment_ns]
    if not before or not after:
        nearest = before[-1] if before else (after[0] if after else None)
        # One tick beyond the ends is near enough; further away there is nothing to say.
        if nearest is None or abs(nearest[0] - moment_ns) > 1_000_000_000:
            return None
        return nearest[1]
    (t0, v0, _), (t1, v1, _) = before[-1], after[0]
    return v0 + (v1 - v0) * (moment_ns - t0) / (t1 - t0)


def cgroup_of(pid: int, root: Path = Path("/")) -> str | None:
    """The deepest control group that limits a process (cgroups(7)); ``None`` when it cannot be read."""
    try:
        memberships = read_memberships((root / "proc" / str(pid) / "cgroup").read_text())
    except OSError:
        return None
    paths = [memberships[controller] for controller in ("", "cpu", "memory") if controller in memberships]
    return max(paths, key=lambda path: path.rstrip("/").count("/"), default=None)
