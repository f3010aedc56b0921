"""A run directory, opened: its tables as frames, what was found, and what to doubt."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl

from rackscope.analysis.comparison import Comparison, compare
from rackscope.analysis.findings import Characterisation, Finding
from rackscope.api.server import server_watts
from rackscope.errors import RunDirectoryError
from rackscope.models.modelled_power import ServerWatts
from rackscope.report import write_report
from rackscope.report.energy import RunPower, assess
from rackscope.runs.directory import REPORT, RunDirectory
from rackscope.runs.energy import results_with_energy
from rackscope.runs.facts import comparison_settings
from rackscope.runs.manifest import Manifest

_SEVERITIES: dict[str, Literal["note", "warning", "serious"]] = {
    "note": "note",
    "doubt": "warning",
    "wrong": "serious",
}


@dataclass(frozen=True)
class RunWarning:
    """Something to know before the figures are believed; ``serious``: they are wrong."""

    code: str
    severity: Literal["note", "warning", "serious"]
    sentence: str
    advice: str = ""


class Run:
    """One run. Frames are Polars; times in seconds or nanoseconds as the column's name says.

    ``server`` (and ``share``, the part of it that a guest has) is what power is modelled from where none was metered.
    """

    def __init__(self, directory: RunDirectory, server: ServerWatts | None = None, share: float | None = None) -> None:
        self._directory = directory
        self._server, self._share = server, share

    @classmethod
    def open(cls, folder: str | Path, server: str | None = None, share: float | None = None) -> Run:
        """Read a run directory; ``server`` (``FILE``, ``FILE:NAME``) has its watts in TOML. Raises RackscopeError."""
        watts = server_watts(server, share)
        return cls(RunDirectory.open(Path(folder)), watts, share)

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._directory.path

    @property
    def manifest(self) -> Manifest:
        """What ran, where and how."""
        return self._directory.manifest

    @property
    def samples(self) -> pl.DataFrame:
        """Time series: ``timestamp_ns`` and one column a metric; counters are cumulative."""
        return self._directory.samples()

    @property
    def latency(self) -> pl.DataFrame:
        """H2 histograms in nanoseconds: one row per phase, repetition, operation and kind."""
        return self._directory.latency()

    @cached_property
    def results(self) -> pl.DataFrame:
        """One row per phase and repetition, with watts and joules where power was metered."""
        return results_with_energy(self._directory)[0]

    @property
    def stacks(self) -> pl.DataFrame:
        """Sampled stacks; empty where none were taken."""
        return self._directory.stacks()

    @property
    def reports(self) -> pl.DataFrame:
        """What a job reported of itself; empty where it reported nothing."""
        return self._directory.reports()

    @property
    def remarks(self) -> tuple[str, ...]:
        """How the run ended, where not well, and what of it cannot be shown."""
        return self._directory.remarks

    @property
    def damage(self) -> tuple[str, ...]:
        """What is not as rackscope wrote it; everything else can be read."""
        return self._directory.damage

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What holds the workload back, the most important first; each has ``sentence``, ``advice`` and evidence."""
        return self.characterisation.findings

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        """What to know before believing the figures: of the run's conditions, and of what was sampled."""
        conditions = (RunWarning(one.code, one.severity, one.text) for one in self.manifest.warnings)
        sampled = (
            RunWarning(one.code, _SEVERITIES[one.severity], one.sentence, one.advice)
            for one in self.characterisation.warnings
        )
        return (*conditions, *sampled)

    @property
    def characterisation(self) -> Characterisation:
        """Findings, warnings and every resource of every phase."""
        return self._assessment[0]

    @property
    def power(self) -> RunPower:
        """Watts and joules: metered, modelled, or not known."""
        return self._assessment[1]

    @cached_property
    def _assessment(self) -> tuple[Characterisation, RunPower]:
        return assess(self._directory, self._server, self._share)

    def compare(self, other: Run) -> Comparison:
        """``other`` against this run: the ratio of each metric with its interval. Raises RunDirectoryError."""
        for run in (self, other):
            run._require_results()
        (results_a, power_a), (results_b, power_b) = (results_with_energy(run._directory) for run in (self, other))
        return compare(
            results_a,
            results_b,
            power_a=power_a,
            power_b=power_b,
            settings_a=comparison_settings(self.manifest),
            settings_b=comparison_settings(other.manifest),
        )

    def _require_results(self) -> None:
        if (self._directory.results()["kind"] == "measure").any():
            return
        why = self.damage or self.remarks or ("no measured phase was completed",)
        raise RunDirectoryError(
            f"{self.path} has nothing to compare: {why[0]}", "Name a run whose measured phase was completed."
        )

    def write_report(self, out: str | Path | None = None) -> Path:
        """Write the HTML report, into the run directory by default; where it is. Raises RunDirectoryError."""
        return write_report(self._directory, None if out is None else Path(out), self._server, self._share)

    @property
    def report(self) -> Path | None:
        """The HTML report in the run directory, where there is one."""
        page = self.path / REPORT
        return page if page.is_file() else None

    def to_dict(self) -> dict[str, Any]:
        """What ``rackscope run --json`` and ``rackscope report --json`` print."""
        manifest = self.manifest
        return {
            "status": manifest.status,
            "status_reason": manifest.status_reason,
            "run_directory": str(self.path),
            "report": None if self.report is None else str(self.report),
            "system": manifest.system.model_dump(),
            "workload": manifest.workload.model_dump(),
            "client": manifest.client.model_dump(),
            "repetition": manifest.repetition.model_dump(),
            "results": self.results.to_dicts(),
            "characterisation": self.characterisation.to_dict(),
            "energy": self.power.to_dict(),
            "overhead": manifest.overhead.model_dump(),
            "warnings": [asdict(warning) for warning in self.warnings],
            "remarks": list(self.remarks),
            "damage": list(self.damage),
        }

    def __repr__(self) -> str:
        """The findings in words: what a notebook shows."""
        manifest = self.manifest
        head = f"Run of {manifest.system.name} under {manifest.workload.name}, {manifest.status}: {self.path}"
        return "\n".join([head, *(f"- {finding.sentence}" for finding in self.findings[:5])])
