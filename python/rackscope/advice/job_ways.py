"""From what was measured and a catalogue to the ways to do a job: models fitted, walls placed, years priced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rackscope.advice.job_evidence import CoreCurve, JobEvidence
from rackscope.errors import RackscopeError, UsageError
from rackscope.models import job_time
from rackscope.models.catalogue import Catalogue, CatalogueError, Server
from rackscope.models.core_scaling import fit_core_scaling
from rackscope.models.cost import Candidate, draw_costs
from rackscope.models.job_points import JobPoint
from rackscope.models.scale_choice import MachineYear, machine_year
from rackscope.models.uncertain import Uncertain


@dataclass(frozen=True)
class Known:
    """One server alone, or clusters of it (one way for each number of machines), and what is known of them.

    ``year`` is ``None`` where ``no_cost`` says what is missing; ``wall`` where ``memory_stands_on`` is empty.
    """

    server: str
    ways: tuple[job_time.Way, ...]
    wall: job_time.MemoryWall | None
    memory_stands_on: str
    year: MachineYear | None
    no_cost: str
    stands_on: str

    def said(self, machines: int) -> str:
        """``1 x big``, ``up to 64 x small``."""
        return f"{'up to ' if len(self.ways) > 1 else ''}{machines} x {self.server}"


@dataclass(frozen=True)
class JobWays:
    """What ways are made of. ``workload`` is that whose watts are taken, ``None`` for those of a full server."""

    evidence: JobEvidence
    catalogue: Catalogue
    workload: str | None
    draws: int
    seed: int

    def known(self, like: Mapping[str, str], most_machines: int | None) -> tuple[list[Known], list[str]]:
        """All ways, and a sentence for each server that no model fits. Raises CatalogueError and UsageError."""
        measured = list(dict.fromkeys(one.server for one in self.evidence.points))
        if not measured:
            raise UsageError(
                "no server has a measured time for this job",
                "Give a file of measured jobs (server,machines,data_bytes,seconds), or SERVER=DIR of 'study wall'.",
            )
        found: list[Known] = []
        refused: list[str] = []
        for name in measured:
            base = self._base(self.catalogue.server(name))
            points = [one for one in self.evidence.points if one.server == name]
            alone = [one for one in points if one.machines == 1]
            several = len({one.machines for one in points}) > 1
            # A few jobs on one machine beside those on more are the cluster's, and no try at measuring one.
            if alone and (not several or len({one.data_bytes for one in alone}) >= 5):
                models = f"time over data (data_size) of {len(alone)} jobs in {_sources(points)}"
                try:
                    found.append(_standing(base, (job_time.one_server(name, points, base.wall),), models))
                except RackscopeError as error:
                    refused.append(f"1 x {name}: {error.what}")
            if several:
                models = f"time over machines (cluster_size) of {len(points)} jobs in {_sources(points)}"
                try:
                    found.append(
                        _standing(base, tuple(job_time.clusters(name, points, base.wall, most_machines)), models)
                    )
                except RackscopeError as error:
                    refused.append(f"clusters of {name}: {error.what}")
        for name, other in like.items():
            try:
                found.append(self._projected(name, other))
            except (UsageError, CatalogueError):
                raise
            except RackscopeError as error:
                refused.append(f"1 x {name}: {error.what}")
        return found, refused

    def _projected(self, name: str, other: str) -> Known:
        big, small = self.catalogue.server(name), self.catalogue.server(other)
        points = [one for one in self.evidence.points if one.server == other and one.machines == 1]
        if not points or any(one.server == name for one in self.evidence.points):
            said = f"{name} was measured itself" if points else f"{other} was not measured alone"
            raise UsageError(f"--like {name}={other}: {said}", "Write NEW=MEASURED.")
        if big.cores is None or small.cores is None:
            lacking = f'{self.catalogue.file}: server "{name if big.cores is None else other}"'
            raise UsageError(f"{lacking}.cores is missing", "A projection over cores needs it.")
        curve = next((one for one in self.evidence.curves if one.server == other), None)
        if curve is None:
            cores, throughput = job_time.core_scaling_points(points)
            curve = CoreCurve(other, tuple(cores), tuple(throughput), _sources(points))
        scaling = fit_core_scaling(curve.cores, curve.throughput)
        base = self._base(big)
        way = job_time.more_of_the_same(name, big.cores, other, points, scaling, small.cores, base.wall)
        time = f"time over data (data_size) of {other} in {_sources(points)}"
        return _standing(base, (way,), f"{time}, projected over cores (core_scaling) from {curve.source}")

    def _base(self, server: Server) -> Known:
        need = self.evidence.memory_of(server.name)
        wall, on = None, ""
        if need is not None and server.memory_bytes is not None:
            wall = job_time.memory_wall(server.memory_bytes, need.per_data_byte, seed=self.seed)
            memory = f"memory: {self.catalogue.file}, {server.source}"
            on = f"{need.source}; {memory}; 90 to 100 % of it for the job (assumed)"
        year, no_cost, source = self._year(server)
        return Known(server.name, (), wall, on, year, no_cost, source)

    def _year(self, server: Server) -> tuple[MachineYear | None, str, str]:
        place = f'{self.catalogue.file}: server "{server.name}"'
        measured = next((one for one in server.measured if one.workload == self.workload), None)
        busy = server.full_watts if measured is None else measured.watts
        if server.price is None:
            return None, f"{place}.price is missing: there is no cost", ""
        if busy is None:
            hint = "" if self.workload is None else f" and nothing measured under '{self.workload}'"
            return None, f"{place} has no full_watts{hint}: there is no cost", ""
        at_work, resting = (
            draw_costs(
                [Candidate(server.name, server.price, watts, Uncertain.certain(1.0), "jobs", server.source)],
                self.catalogue.site,
                draws=self.draws,
                seed=self.seed,
            )[0]
            for watts in (busy, server.idle_watts or busy)
        )
        words = "" if server.idle_watts else " (idle watts not known: those at work)"
        source = server.source if measured is None else f"{server.source}, watts: {measured.source}"
        return machine_year(at_work, resting), "", f"price: {source}{words}; {self.catalogue.file} [site]"


def _standing(base: Known, ways: tuple[job_time.Way, ...], models: str) -> Known:
    wall = base.wall
    if isinstance(ways[0], job_time.OneServer) and ways[0].model.wall is not None and ways[0].like is None:
        # Its jobs show where it is: what memory would allow is beside the point.
        wall = None
    parts = [models, base.memory_stands_on if wall is not None else "", base.stands_on]
    return replace(base, ways=ways, wall=wall, stands_on="; ".join(part for part in parts if part))


def _sources(points: Sequence[JobPoint]) -> str:
    return ", ".join(sorted({one.source for one in points}))
