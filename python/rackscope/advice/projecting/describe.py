"""Servers as catalogue entries: the host that runs were measured on, and servers that were projected to."""

from __future__ import annotations

from dataclasses import replace

from rackscope.advice.measured_runs import Measurements
from rackscope.advice.projecting.power import around
from rackscope.advice.projecting.project import Projection
from rackscope.models.catalogue import CEILINGS, Measured, Server, ServerFile
from rackscope.models.catalogue_text import catalogue_text
from rackscope.models.uncertain import Uncertain

_PRICED = "Add prices and watts: price, idle_watts, full_watts, and a [site] for costs."


def describe_source(measured: Measurements) -> str:
    """The host of the runs as a file to project to: for its twin, or to check that it projects to itself."""
    source = measured.source
    ceilings = {name.partition("{")[0]: value for name, value in sorted(source.ceilings.items(), reverse=True)}
    calibrated = f"calibrated {source.calibrated_at}" if source.calibrated_at else "never calibrated"
    server = Server(
        name=source.identity,
        processor=source.processor,
        source=f"rackscope, of the host of {measured.names[0]}, {calibrated}",
        cores=source.physical_cores or source.cores,
        threads=source.cores,
        memory_bytes=None if source.memory_bytes is None else int(source.memory_bytes),
        last_level_cache_bytes=None if source.last_level_cache_bytes is None else int(source.last_level_cache_bytes),
        ceilings={name: Uncertain.certain(value) for name, value in ceilings.items() if name in CEILINGS},
    )
    return catalogue_text(ServerFile("", "", None, (server,)), (_PRICED,))


def projected_catalogue(projection: Projection, servers: ServerFile) -> tuple[str, tuple[str, ...]]:
    """The servers with what they were projected to do, in place of the same workload's; why some are left out."""
    workload = projection.measured.workload
    entries, left_out = [], list(projection.refused)
    for one in projection.servers:
        if one.drawn.watts is None:
            answer = one.answer("watts")
            left_out.append(f"{one.server.name}: {answer.refused if answer else 'its power is not known'}")
            continue
        rate, watts = around(one.drawn.throughput), around(one.drawn.watts)
        measured = Measured(
            workload,
            watts,
            f"modelled: rackscope project from {', '.join(projection.measured.names)} ({projection.measured.system} on "
            f"{one.cores} of {one.threads} threads)",
            operations_per_second=rate,
        )
        kept = tuple(old for old in one.server.measured if old.workload != workload)
        entries.append(replace(one.server, measured=(*kept, measured)))
    remarks = (f"{projection.measured.system} under {workload}, projected: modelled, not measured.",)
    text = catalogue_text(replace(servers, servers=tuple(entries)), remarks) if entries else ""
    return text, tuple(left_out)
