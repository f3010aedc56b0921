"""Everything about a run that can be settled and checked before something is started."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import rackscope
from rackscope.errors import UsageError, did_you_mean
from rackscope.host.ceilings import CalibrationError, load_ceilings
from rackscope.host.inventory import read_inventory
from rackscope.host.memory import read_memory
from rackscope.host.tree import Tree
from rackscope.process_identity import boot_id, process_start_ticks
from rackscope.runs import manifest
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.placement import Placement, place
from rackscope.runs.repetition import Repetition
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import Acquired, System
from rackscope.systems.knobs import ResolvedKnobs
from rackscope.systems.ports import require_free
from rackscope.units import format_bytes, now_text
from rackscope.workloads import WorkloadPlan, find_workload
from rackscope.workloads import plan as plan_workload

#: What the load generator keeps of each key to check values: its version, and how many writes are on their way.
_CLIENT_BYTES_PER_KEY = 16


@dataclass(frozen=True)
class Prepared:
    """A run that makes sense, before anything was started."""

    options: RunOptions
    system: System
    acquired: Acquired
    knobs: ResolvedKnobs
    plan: WorkloadPlan
    workload_description: str
    workload_source: str
    placement: Placement


def prepare(options: RunOptions, progress: ProgressCallback) -> Prepared:
    """Check everything that can be checked before something is started. Raises RackscopeError."""
    options.check()
    system = find_system(options.system)
    workload = find_workload(options.workload)
    placement = place(sorted(os.sched_getaffinity(0)), options.cores, options.client_cores)
    parameters = {parameter.name for parameter in workload.parameters}
    knob_names = {knob.name for knob in system.knobs}
    unknown = [name for name in options.settings if name not in parameters | knob_names]
    if unknown:
        raise UsageError(
            f"neither {system.name} nor {workload.name} has a setting '{unknown[0]}'",
            f"{did_you_mean(unknown[0], parameters | knob_names)}{system.name} has {', '.join(sorted(knob_names))}; "
            f"{workload.name} has {', '.join(sorted(parameters))}.",
        )
    settled = plan_workload(
        workload,
        {name: value for name, value in options.settings.items() if name in parameters},
        operations=system.operations,
        protocols=system.protocols,
        system=system.name,
    )
    if options.endpoint_kind not in system.endpoint_kinds:
        raise UsageError(f"{system.name} does not listen on {options.endpoint_kind}", "Leave --endpoint out.")
    knobs = resolve_knobs(
        system,
        {name: value for name, value in options.settings.items() if name in knob_names},
        tuned=options.tuned,
        cores=placement.system,
    )
    system.check_knobs(knobs.values)
    limit = system.connection_limit(knobs.values)
    if limit is not None and options.connections > limit:
        raise UsageError(
            f"{system.name} would serve {limit} connections, and the run asks for {options.connections}",
            f"Ask for at most --connections {limit}, or raise the limit with --set where the system has a knob for it.",
        )
    _check_memory(system, knobs.values, settled)
    if options.port is not None:
        require_free(options.port, system.name)
    _raise_file_limit(options.connections + 256)
    progress(Progress(f"finding {system.name}"))
    acquired = system.acquire(fetch=options.fetch, progress=lambda text: progress(Progress(text)))
    return Prepared(options, system, acquired, knobs, settled, workload.description, workload.source, placement)


def first_manifest(prepared: Prepared) -> manifest.Manifest:
    """The manifest as it stands before the first phase."""
    options, plan, acquired = prepared.options, prepared.plan, prepared.acquired
    inventory = read_inventory()
    ceilings, warnings = _ceilings_part(inventory.identity)
    return manifest.Manifest(
        rackscope_version=rackscope.__version__,
        command_line=list(options.command_line),
        rackscope_pid=os.getpid(),
        rackscope_pid_start_ticks=process_start_ticks(os.getpid()),
        boot_id=boot_id(),
        started_at=now_text(),
        system=manifest.SystemPart(
            name=prepared.system.name,
            version=acquired.version,
            program=str(acquired.program),
            origin=acquired.source,
            cores=list(prepared.placement.system),
            knobs={
                name: manifest.KnobValue(
                    value=value, default=prepared.knobs.defaults[name], source=prepared.knobs.sources[name]
                )
                for name, value in prepared.knobs.values.items()
            },
        ),
        workload=manifest.WorkloadPart(
            name=plan.workload,
            description=prepared.workload_description,
            source=prepared.workload_source,
            parameters=dict(plan.parameters),
            notes=[*plan.notes, *prepared.knobs.notes],
            keys=dict(plan.keys),
            values=dict(plan.values),
        ),
        client=manifest.ClientPart(
            protocol=plan.protocol,
            connections=options.connections,
            pipeline=plan.pipeline,
            multiget=plan.multiget,
            cores=list(prepared.placement.client),
            loop="closed" if options.rate_per_second is None else "open",
            arrivals=None if options.rate_per_second is None else options.arrivals,
            rate_per_second=options.rate_per_second,
            seed=options.seed,
            verify=options.verify,
        ),
        host=inventory.to_dict(),
        server=options.server,
        named_meters=[meter for meter in options.meters if meter != "none"],
        ceilings=ceilings,
        warnings=warnings,
        repetition=manifest.RepetitionPart(
            duration_seconds=options.duration_seconds,
            minimum=Repetition.minimum(options),
            maximum=options.repetitions,
            budget_seconds=None if options.repetitions else options.budget_seconds,
            target_relative_half_width=options.target_relative_half_width,
        ),
    )


def _ceilings_part(identity: str) -> tuple[manifest.CeilingsPart, list[manifest.WarningPart]]:
    """What ``rackscope calibrate`` measured (empty: never), and a warning when it cannot be read."""
    try:
        ceilings = load_ceilings(identity)
    except CalibrationError as error:
        return manifest.CeilingsPart(), [manifest.WarningPart(code="ceilings_unreadable", text=str(error))]
    if ceilings is None:
        return manifest.CeilingsPart(), []
    counters = {check.column: check.reason for check in ceilings.counters if check.status == "untrusted"}
    untrusted = {**ceilings.untrusted(), **counters}
    return manifest.CeilingsPart(measured_at=ceilings.measured_at, values=ceilings.values(), untrusted=untrusted), []


def _check_memory(system: System, knobs: Mapping[str, str], plan: WorkloadPlan) -> None:
    """Refuses a data set that would drive this host out of memory, which costs more than this run."""
    available = read_memory(Tree(Path("/"))).available_bytes
    if available is None:
        return
    count = int(plan.keys["count"])
    client = count * _CLIENT_BYTES_PER_KEY
    held = min(plan.data_bytes or 0, system.memory_limit(knobs) or sys.maxsize)
    if client + held <= available:
        return
    raise UsageError(
        f"{count} keys would take about {format_bytes(client + held)} of memory ({format_bytes(held)} in "
        f"{system.name}, {format_bytes(client)} in the load generator), and {format_bytes(available)} are available",
        "Ask for fewer (--set keys=100k) or smaller (--set value_size=100) ones.",
    )


def _raise_file_limit(needed: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard not in (resource.RLIM_INFINITY,) and hard < needed:
        raise UsageError(
            f"this shell may open {hard} files, and the run needs {needed}",
            "Raise the limit with 'ulimit -n' or ask for fewer --connections.",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
