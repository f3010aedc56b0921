"""From run directories and a file of servers to what each of those would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rackscope.advice.measured_runs import Measurements
from rackscope.advice.projecting.answers import Answer, ServerProjection
from rackscope.advice.projecting.power import modelled_watts, power_answers, rated_power
from rackscope.advice.projecting.response import closed_loop_answer, response_answers
from rackscope.advice.projecting.throughput import Throughput, is_same_processor, project_throughput, threads_of
from rackscope.advice.projecting.trained import Trained
from rackscope.errors import RackscopeError, named
from rackscope.models.catalogue import Server, ServerFile
from rackscope.models.estimates import from_draws


@dataclass(frozen=True)
class Projection:
    """What was measured, and each server with what it would do; ``refused`` says of the others why not."""

    measured: Measurements
    file: str
    currency: str
    rate_per_second: float | None
    servers: tuple[ServerProjection, ...]
    models: tuple[Throughput, ...]
    refused: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": self.measured.system,
            "workload": self.measured.workload,
            "phase": self.measured.phase,
            "runs": list(self.measured.names),
            "host": self.measured.source.identity,
            "servers_file": self.file,
            "rate_per_second": self.rate_per_second,
            "servers": [one.to_dict() for one in self.servers],
            "refused": list(self.refused),
            "remarks": list(self.measured.remarks),
        }


def project(
    measured: Measurements,
    servers: ServerFile,
    names: Sequence[str] = (),
    *,
    cores: int | None = None,
    rate_per_second: float | None = None,
    trained: Trained | None = None,
) -> Projection:
    """Project to every server of the file, or to those of ``names``; with ``trained``, also by models of its tables.

    Raises UsageError for a name it does not have, and what a server was refused for when no server is left.
    """
    found: list[ServerProjection] = []
    models: list[Throughput] = []
    refused: list[str] = []
    first: RackscopeError | None = None
    for server in named(names, servers.servers, f"{servers.file} has no server", "It has"):
        try:
            throughput = project_throughput(measured, server, cores, trained)
        except RackscopeError as error:
            first = first or error
            refused.append(f"{server.name}: {error}")
            continue
        models.append(throughput)
        found.append(_server(measured, servers, server, throughput, rate_per_second, trained))
    if not found and first is not None:
        raise first
    return Projection(
        measured, servers.file, servers.currency, rate_per_second, tuple(found), tuple(models), tuple(refused)
    )


def _server(
    measured: Measurements,
    servers: ServerFile,
    server: Server,
    found: Throughput,
    rate: float | None,
    trained: Trained | None,
) -> ServerProjection:
    threads, same = threads_of(server, measured), is_same_processor(measured, server)
    unit = "operations/s" if found.unchanged else "operations/s (modelled)"
    answers = [
        Answer(
            "throughput",
            "throughput" if found.unchanged else "throughput, modelled",
            from_draws(found.drawn, unit, found.basis, extrapolated=found.extrapolated),
            found.stands_on,
            found.changes_if,
        ),
        closed_loop_answer(measured, found),
    ]
    if rate is not None:
        answers += response_answers(measured, found, rate)
    modelled, not_modelled = modelled_watts(server, trained)
    powered, drawn = power_answers(measured, servers, server, found, rate, modelled, not_modelled)
    rated = rated_power(server) or (modelled.rated if modelled is not None and not same else None)
    return ServerProjection(server, found.cores, threads, same, (*answers, *powered), found.notes, drawn, rated)
