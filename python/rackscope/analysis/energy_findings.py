"""What metered power teaches, as findings, and what makes it less believable, as warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rackscope.analysis import wording
from rackscope.analysis.energy import PhaseEnergy, RunEnergy
from rackscope.analysis.findings import Evidence, Finding, TrustWarning
from rackscope.analysis.power_domains import HostScope
from rackscope.units import format_count, format_joules, format_watts


def energy_figures(phase: PhaseEnergy) -> dict[str, float]:
    """Named figures of the host in base units; what is not known is absent."""
    if phase.host is None:
        return {}
    intervals = {
        "mean_watts": phase.host.mean_watts,
        "energy_joules_per_operation": phase.host.energy_joules_per_operation,
        "operations_per_joule": phase.host.operations_per_joule,
        "dynamic_watts": phase.host.dynamic_watts,
    }
    return {
        name: interval.estimate
        for name, interval in intervals.items()
        if interval is not None and math.isfinite(interval.estimate)
    }


def energy_findings(energy: RunEnergy) -> list[Finding]:
    """One a measured phase whose energy for an operation is known."""
    found = []
    for phase in energy.phases:
        if phase.kind == "measure" and energy.scope is not None:
            finding = _cost(energy, energy.scope, phase)
            if finding is not None:
                found.append(finding)
    return found


def _cost(energy: RunEnergy, scope: HostScope, phase: PhaseEnergy) -> Finding | None:
    figures = energy_figures(phase)
    cost, watts = figures.get("energy_joules_per_operation"), figures.get("mean_watts")
    if cost is None or watts is None or cost <= 0:
        return None
    sentence = (
        f"An operation takes {format_joules(cost)} at {format_watts(watts)} ({scope.label}): "
        f"{format_count(1 / cost)} operations for each joule."
    )
    idle = energy.idle
    if idle is not None and 0 < idle.watts < watts:
        part = f"{wording.percent(idle.watts / watts)} of it"
        sentence += (
            f" {part} is what the host takes when idle ({format_watts(idle.watts)})."
            if idle.is_idle
            else f" At most {part} is what the host takes when idle, which it never was in this run."
        )
    evidence = Evidence(
        tuple(one.column for one in phase.domains if one.domain in scope.domains),
        phase.seconds,
        "energy_joules_per_operation",
        cost,
        "joules",
    )
    return Finding("insight", 57, phase.phase, f"{sentence} [{evidence.describe()}]", (evidence,))


def energy_warnings(energy: RunEnergy, *, asked: bool = False) -> Iterable[TrustWarning]:
    """Faults of meters, and phases without watts; that power is not known at all only where ``asked`` for."""
    for fault in energy.faults:
        yield TrustWarning(fault.code, "doubt", fault.sentence, fault.advice)
    known = {phase.phase for phase in energy.phases if "mean_watts" in energy_figures(phase)}
    for phase in energy.phases:
        if phase.kind != "measure" or phase.phase in known or not (known or asked):
            continue
        reasons = [domain.reason for domain in phase.domains if domain.reason]
        if phase.host is not None and phase.host.reason:
            reasons.insert(0, phase.host.reason)
        if reasons:
            yield TrustWarning(
                "power_not_known",
                "note",
                f"The host's power in '{phase.phase}' is not known: {reasons[0]}.",
                "'rackscope doctor' says what each meter needs.",
            )
    for phase in energy.phases:
        host = phase.host
        missing = [] if host is None else [one for one in host.repetitions if one.mean_watts is None]
        if phase.kind == "measure" and host is not None and missing and phase.phase in known:
            yield TrustWarning(
                "power_gaps",
                "note",
                f"Power is known in {len(host.repetitions) - len(missing)} of {len(host.repetitions)} repetitions of "
                f"'{phase.phase}': {host.reason}.",
                "",
            )
