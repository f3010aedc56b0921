"""Power and energy of a run as report and terminal show them: metered where it was, else modelled and so called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackscope.analysis.context import Run
from rackscope.analysis.energy import HostEnergy, RunEnergy, measure_energy
from rackscope.analysis.findings import Characterisation, TrustWarning
from rackscope.analysis.intervals import Interval
from rackscope.errors import RackscopeError
from rackscope.models.modelled_power import ModelledEnergy, ServerWatts, host_watts, model_energy
from rackscope.models.uncertain import Uncertain
from rackscope.report.quantities import UNKNOWN, format_half_width, format_quantity, format_range
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import analysed_run, characterise_run
from rackscope.runs.manifest import Manifest, ServerPart


@dataclass(frozen=True)
class RunPower:
    """What is known of a run's power. ``refused`` is why what was asked for could not be modelled, with advice."""

    metered: RunEnergy | None = None
    modelled: ModelledEnergy | None = None
    refused: tuple[str, str] | None = None

    def to_dict(self) -> dict[str, Any] | None:
        """Plain values for JSON; ``None`` when nothing is known."""
        if self.modelled is None:
            return None if self.metered is None else self.metered.to_dict()
        metered = {} if self.metered is None else {"metered_domains": self.metered.to_dict()}
        return {**self.modelled.to_dict(), **metered}

    def figures(self, phase: str, kind: str) -> dict[str, float]:
        """Modelled figures of a phase, each name saying so; metered ones are in the characterisation."""
        found = self.modelled.phase(phase, kind) if self.modelled else None
        if found is None:
            return {}
        shown = {
            "modelled_mean_watts": found.modelled_mean_watts,
            "modelled_energy_joules_per_operation": found.modelled_energy_joules_per_operation,
            "modelled_operations_per_joule": found.modelled_operations_per_joule,
        }
        return {name: prediction.value for name, prediction in shown.items() if prediction is not None}


def power_of(manifest: Manifest, run: Run, given: ServerWatts | None = None, share: float | None = None) -> RunPower:
    """Metered power; else modelled from what was ``given`` (a guest's ``share``), the run's server or its class."""
    metered = measure_energy(run)
    if metered is not None and metered.host_is_known:
        unused = ("it was metered", "Leave out --server.") if given is not None else None
        return RunPower(metered, None, unused)
    if given is None and manifest.server is not None:
        given, share = _server(manifest.server), manifest.server.share if share is None else share
    try:
        return RunPower(metered, model_energy(run, host_watts(manifest.host, given, share)))
    except RackscopeError as error:
        # Nobody asked for it: then it is no news that it cannot be done.
        return RunPower(metered, None, (str(error.what), error.advice) if given is not None else None)


def assess(
    run: RunDirectory, given: ServerWatts | None = None, share: float | None = None
) -> tuple[Characterisation, RunPower]:
    """A run's characterisation with what is known of its power in it."""
    power = power_of(run.manifest, analysed_run(run), given, share)
    return with_power(characterise_run(run), power), power


def with_power(characterisation: Characterisation, power: RunPower) -> Characterisation:
    """The same with modelled figures, and with the warning that they are modelled (or could not be)."""
    warnings: list[TrustWarning] = list(characterisation.warnings)
    if power.modelled is not None:
        is_class = power.modelled.model.server.is_class
        narrower = " The server's own watts (--server FILE) narrow it." if is_class else ""
        warnings.append(
            TrustWarning(
                "power_modelled",
                "note",
                power.modelled.sentence,
                f"A meter says more: 'rackscope doctor' says what each needs here.{narrower}",
            )
        )
    if power.refused is not None:
        what, advice = power.refused
        warnings.append(TrustWarning("power_not_modelled", "note", f"Power was not modelled: {what}.", advice))
    phases = tuple(
        replace(phase, figures={**phase.figures, **power.figures(phase.phase, phase.kind)})
        for phase in characterisation.phases
    )
    return replace(characterisation, warnings=tuple(warnings), phases=phases)


def _server(part: ServerPart) -> ServerWatts:
    idle, full = (Uncertain(one.shape, one.low, one.middle, one.high) for one in (part.idle_watts, part.full_watts))
    return ServerWatts(part.name, part.source, idle, full)


@dataclass(frozen=True)
class EnergyRow:
    """The host in one phase, as text."""

    phase: str
    watts: str
    interval: str
    energy_per_operation: str
    operations_per_joule: str
    idle: str
    dynamic: str


@dataclass(frozen=True)
class EnergyTable:
    """What the section shows: the host by phase, the domains by phase, and what all of it is."""

    modelled: bool
    rows: tuple[EnergyRow, ...]
    #: Phases (and idle) that the domains' watts are shown of.
    phases: tuple[str, ...]
    domains: tuple[tuple[str, str, tuple[str, ...]], ...]
    sentences: tuple[str, ...]


def energy_table(power: RunPower) -> EnergyTable | None:
    """``None`` when there is nothing to show."""
    metered, modelled = power.metered, power.modelled
    if modelled is None and (metered is None or not metered.has_watts):
        return None
    rows: tuple[EnergyRow, ...] = ()
    sentences: list[str] = []
    if modelled is not None:
        rows = _modelled_rows(modelled)
        sentences.append(modelled.sentence)
    elif metered is not None and metered.scope is not None:
        rows = tuple(_metered_row(phase.phase, phase.host, metered) for phase in metered.phases if phase.host)
        sentences.append(f"The host's watts are those of {metered.scope.sentence}.")
        if metered.idle is not None:
            sentences.append(f"Idle watts are those {metered.idle.words}; dynamic ones are what came on top.")
        else:
            sentences.append("Idle watts are not known: no second of the run was metered whole.")
    if metered is not None and metered.scope is None and metered.has_watts:
        sentences.append("No domain that was metered speaks for the host as a whole.")
    phases, domains = _domains(metered) if metered is not None else ((), ())
    return EnergyTable(modelled is not None, rows, phases, domains, tuple(sentences))


def _metered_row(name: str, host: HostEnergy, energy: RunEnergy) -> EnergyRow:
    watts, cost, efficiency = host.mean_watts, host.energy_joules_per_operation, host.operations_per_joule
    at_most, at_least = ("", "") if energy.idle is None or energy.idle.is_idle else ("≤ ", "≥ ")
    return EnergyRow(
        name,
        format_quantity(watts.estimate, "watts"),
        _half_width(watts),
        format_quantity(cost.estimate if cost else None, "joules"),
        format_quantity(efficiency.estimate if efficiency else None, "count"),
        UNKNOWN if energy.idle is None else f"{at_most}{format_quantity(energy.idle.watts, 'watts')}",
        UNKNOWN if host.dynamic_watts is None else f"{at_least}{format_quantity(host.dynamic_watts.estimate, 'watts')}",
    )


def _modelled_rows(modelled: ModelledEnergy) -> tuple[EnergyRow, ...]:
    idle = modelled.modelled_idle_watts.value
    rows = []
    for phase in modelled.phases:
        watts, cost = phase.modelled_mean_watts, phase.modelled_energy_joules_per_operation
        efficiency = phase.modelled_operations_per_joule
        rows.append(
            EnergyRow(
                phase.phase,
                format_quantity(watts.value, "watts"),
                format_range(watts.low, watts.high, "watts"),
                format_quantity(cost.value if cost else None, "joules"),
                format_quantity(efficiency.value if efficiency else None, "count"),
                format_quantity(idle, "watts"),
                format_quantity(max(watts.value - idle, 0.0), "watts"),
            )
        )
    return tuple(rows)


def _domains(
    energy: RunEnergy,
) -> tuple[tuple[str, ...], tuple[tuple[str, str, tuple[str, ...]], ...]]:
    """Watts of each domain by phase, the idle window first where there is one."""
    idle = energy.idle
    names = [phase.phase for phase in energy.phases]
    listed = energy.phases[0].domains if energy.phases else ()
    rows = []
    for place, domain in enumerate(listed):
        cells = [] if idle is None else [format_quantity(idle.domains.get(domain.domain), "watts")]
        cells += [format_quantity(phase.domains[place].mean_watts.estimate, "watts") for phase in energy.phases]
        rows.append((domain.domain, domain.meter, tuple(cells)))
    first = () if idle is None else ("idle" if idle.is_idle else "lowest second",)
    return (*first, *names), tuple(rows)


def _half_width(interval: Interval) -> str:
    if not math.isfinite(interval.estimate):
        return UNKNOWN
    if interval.count == 1:
        return "once"
    return format_half_width(interval.estimate, interval.low, interval.high)


def summary_lines(power: RunPower, phases: Sequence[str]) -> tuple[EnergyTable, tuple[EnergyRow, ...]] | None:
    """The table and its rows of these phases, for the terminal; ``None`` when there is nothing to show."""
    table = energy_table(power)
    if table is None:
        return None
    rows = tuple(row for row in table.rows if row.phase in phases and row.watts != UNKNOWN)
    return (table, rows) if rows else None
