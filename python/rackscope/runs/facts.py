"""What a manifest says, in the form in which the analysis wants to be told it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackscope.analysis.characterisation import characterise
from rackscope.analysis.context import Run
from rackscope.analysis.facts import PhaseWindow, ProbeReport, RunFacts, SamplerCost
from rackscope.analysis.findings import Characterisation
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.directory import RunDirectory
from rackscope.runs.manifest import Manifest, OverheadPart


def run_facts(manifest: Manifest) -> RunFacts:
    """The facts of a run. A phase without an end (the run was killed in it) is left out."""
    unix = manifest.system.endpoint.startswith("unix:")
    return RunFacts(
        phases=tuple(
            PhaseWindow(phase.name, phase.kind, phase.repetition, phase.start_ns, phase.end_ns)
            for phase in manifest.phases
            if phase.end_ns is not None
        ),
        host_cores=int(_number(manifest.host, "online_cores") or 1),
        system_cores=tuple(manifest.system.cores),
        client_cores=tuple(manifest.client.cores),
        memory_total_bytes=_number(manifest.host, "memory_total_bytes"),
        ceilings={
            name: value for name, value in manifest.ceilings.values.items() if name not in manifest.ceilings.untrusted
        },
        distrusted=dict(manifest.ceilings.untrusted),
        probes=tuple(
            ProbeReport(
                probe.name,
                "ok" if probe.status == "ok" else "untrusted" if probe.status == "untrusted" else "missing",
                probe.reason,
                probe.needs,
                tuple(probe.columns),
            )
            for probe in manifest.probes
        ),
        loop=manifest.client.loop,
        offered_operations_per_second=manifest.client.rate_per_second,
        connections=manifest.client.connections,
        pipeline=manifest.client.pipeline,
        multiget=manifest.client.multiget,
        system=manifest.system.name,
        interface=None if unix else manifest.system.interface or "lo",
        sampler=_sampler_cost(manifest.overhead),
        wanted_half_width=manifest.repetition.target_relative_half_width,
        first_errors={phase.name: phase.first_error for phase in reversed(manifest.phases) if phase.first_error},
        expects_hits=_expects_hits(manifest),
        sequential=manifest.repetition.maximum is None,
        power_asked=bool(manifest.named_meters) or "--meter" in manifest.command_line,
    )


def analysed_run(run: RunDirectory) -> Run:
    """A run directory as the rules of the analysis see it."""
    return Run.of(run_facts(run.manifest), run.samples(), run.results(), run.latency(), packaged_thresholds())


def characterise_run(run: RunDirectory) -> Characterisation:
    return characterise(run_facts(run.manifest), run.samples(), run.results(), run.latency())


def comparison_settings(manifest: Manifest) -> dict[str, Any]:
    """What must be equal, or known to differ, for two runs to be compared; flat."""
    host, client = manifest.host, manifest.client
    settings: dict[str, Any] = {
        "host": host.get("identity"),
        "kernel": host.get("kernel"),
        "system": manifest.system.name,
        "system version": manifest.system.version,
        "system cores": manifest.system.cores,
        "rackscope version": manifest.rackscope_version,
        "workload": manifest.workload.name,
        "client cores": client.cores,
        "protocol": client.protocol,
        "connections": client.connections,
        "loop": client.loop,
        "rate": client.rate_per_second,
        "seed": client.seed,
    }
    settings |= {f"workload {name}": value for name, value in manifest.workload.parameters.items()}
    settings |= {f"knob {name}": knob.value for name, knob in manifest.system.knobs.items()}
    return settings


def _number(host: Mapping[str, Any], name: str) -> float | None:
    """A fact of the inventory, which the manifest does not check: what is no plausible number is not known."""
    value = host.get(name)
    return value if isinstance(value, int | float) and 0 < value < 1e24 else None


def _sampler_cost(overhead: OverheadPart) -> SamplerCost | None:
    if overhead.sampler_ticks is None or overhead.sampler_interval_seconds is None:
        return None
    return SamplerCost(
        interval_seconds=overhead.sampler_interval_seconds,
        ticks=overhead.sampler_ticks,
        missed_ticks=overhead.sampler_missed_ticks or 0,
        cpu_seconds=overhead.sampler_cpu_seconds or 0.0,
        wall_seconds=overhead.sampler_wall_seconds or 0.0,
        worst_lateness_seconds=overhead.sampler_worst_lateness_seconds or 0.0,
    )


def _expects_hits(manifest: Manifest) -> bool:
    # Without a preload (Redis' stages) an empty answer is part of the workload.
    # Nor does it mean that an item was evicted where it can have expired.
    loads = [phase.start_ns for phase in manifest.phases if phase.kind == "load"]
    ends = [phase.end_ns for phase in manifest.phases if phase.end_ns is not None]
    seconds = int(manifest.workload.parameters.get("expire_seconds", "0"))
    expires = seconds > 0 and max(ends, default=0) - min(loads, default=0) > seconds * 1e9
    return bool(loads) and not expires
