"""From what is asked of ``study sweep`` to what is measured and said."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

from rackscope import units
from rackscope.errors import UsageError
from rackscope.host.inventory import read_inventory
from rackscope.runs.options import RunOptions
from rackscope.runs.placement import place
from rackscope.runs.study import read_study
from rackscope.studies.base import Conduct, Option, Request
from rackscope.studies.sweep.findings import describe
from rackscope.studies.sweep.grid import check_size, make_factors, parse_vary
from rackscope.studies.sweep.measure import Bench, Outcome, carry_out, seconds_per_run
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.studies.sweep.presets import load_presets
from rackscope.studies.sweep.study import STUDY
from rackscope.systems import find_system
from rackscope.workloads import find_workload


def conduct_sweep(conduct: Conduct, plan: SweepPlan, bench: Bench) -> None:
    """Do what is left of ``plan`` and say what all of it shows; also when it is stopped before the end."""
    conduct.record.result["plan"] = plan.to_dict()
    conduct.save()
    outcome = Outcome()
    with conduct.described(lambda: describe(conduct.record, plan, outcome)):
        carry_out(plan, conduct, bench, outcome)


def build_plan(request: Request) -> SweepPlan:
    """What is asked, checked as far as that goes without starting anything. Raises UsageError."""
    stored = _stored_plan(request)
    if stored is not None and _asks_for_nothing(request):
        return stored
    plan = _plan_from(request)
    if stored is not None:
        differences = plan.differences(stored)
        if differences:
            raise UsageError(
                f"this is not the sweep in {request.values['resume']}: {'; '.join(differences[:4])}",
                "Give --resume DIR alone to continue it, or leave out --resume to start a new one.",
            )
        return stored
    return plan


def _plan_from(request: Request) -> SweepPlan:
    run, values = request.asked, request.values
    varied = parse_vary(values["vary"])
    systems = _systems(run.system, varied)
    options, names, notes = _base_options(run, values["preset"], systems, varied)
    options = replace(
        options,
        duration_seconds=values["duration"],
        warm_up_seconds=values["warm_up"],
        rate_per_second=values["rate"],
        repetitions=1,
    )
    for system in systems:
        find_system(system)
    workloads = list(varied.get("workload", (options.workload,)))
    for workload in workloads:
        find_workload(workload)
    if not varied:
        raise UsageError("there is nothing to vary", "Add --vary threads=1,2,4, or choose a --preset.")
    for name in varied:
        _refuse_conflict(name, options, run)
    repetitions = values["repeat"]
    if repetitions < 1:
        raise UsageError("invalid --repeat: each cell must be measured at least once", "Choose --repeat 3.")
    options = replace(options, system=systems[0], workload=workloads[0])
    options.check()
    factors = make_factors(varied, systems, workloads, names)
    plan = SweepPlan(options, factors, repetitions, values["preset"] or "", tuple(notes), _system_cores(run))
    check_size(math.prod(len(factor.levels) for factor in factors), repetitions, seconds_per_run(options))
    return plan


def _systems(text: str, varied: dict[str, tuple[str, ...]]) -> list[str]:
    named = [part.strip() for part in text.split(",")] if text else []
    if "" in named:
        raise UsageError(f"'{text}' has an empty name among its systems", "Write them like memcached,redis.")
    twice = next((one for one in named if named.count(one) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice among the systems", "Name each once.")
    chosen = list(varied.get("system", ()))
    if chosen and any(one not in chosen for one in named):
        raise UsageError(
            f"SYSTEM is {text}, and --vary system={','.join(chosen)} differs", "Name the systems in one place."
        )
    systems = chosen or named
    if not systems:
        raise UsageError(
            "no system is named", "Write it like 'rackscope study sweep memcached ycsb-b --vary threads=1,2'."
        )
    if len(systems) > 1:
        varied["system"] = tuple(systems)
    else:
        varied.pop("system", None)
    return systems


def _base_options(
    run: RunOptions, preset_name: str | None, systems: list[str], varied: dict[str, tuple[str, ...]]
) -> tuple[RunOptions, dict[str, dict[str, str]], list[str]]:
    """What all runs have in common, what systems call the factors, and what of a preset was changed for this host."""
    if not preset_name:
        if not run.workload and "workload" not in varied:
            raise UsageError("no workload is named", "Write it after the system, like ycsb-b, or choose a --preset.")
        return run, {}, []
    preset = load_presets()[preset_name]
    if run.workload or "workload" in varied:
        raise UsageError(f"preset {preset_name} brings its own workload ({preset.workload})", "Leave the workload out.")
    cores = _system_cores(run)
    able = [system for system in systems if not preset.absent(system)]
    if not able:
        raise UsageError(f"{preset.source} cannot be redone: {preset.absent(systems[0])}", "Choose another system.")
    notes = [*preset.stand_in, *preset.scale_notes(cores)]
    for system in systems:
        if system not in able:
            notes.append(f"{system} is left out: {preset.absent(system)}.")
    systems[:] = able
    if len(able) < 2:
        varied.pop("system", None)
    else:
        varied["system"] = tuple(able)
    for factor in preset.factors:
        if factor.name in varied:
            notes.append(f"{factor.name} takes the values that were asked for instead of the preset's.")
        else:
            varied[factor.name] = factor.scaled(cores)
        notes += [
            f"{factor.name} is {own} of {system}."
            for system, own in factor.names.items()
            if system in able and own not in ("", factor.name)
        ]
    names = {factor.name: dict(factor.names) for factor in preset.factors}
    # A preset's where rackscope's own default is asked for.
    connections = (run.connections == RunOptions.connections and preset.connections) or run.connections
    options = replace(
        run,
        workload=preset.workload,
        settings={**{name: value for name, value in preset.settings.items() if name not in varied}, **run.settings},
        connections=connections,
    )
    return options, names, notes


def _system_cores(run: RunOptions) -> int:
    return len(place(sorted(os.sched_getaffinity(0)), run.cores, run.client_cores).system)


def _refuse_conflict(name: str, options: RunOptions, run: RunOptions) -> None:
    if name in options.settings:
        raise UsageError(f"{name} is both varied and set to {options.settings[name]}", "Leave out its --set.")
    taken = {"tuned": run.tuned, "client_threads": run.client_cores, "rate": options.rate_per_second}
    if taken.get(name):
        flag = "--client-cores" if name == "client_threads" else f"--{name}"
        raise UsageError(f"{name} is varied, and {flag} fixes it", f"Leave out {flag}.")


def _stored_plan(request: Request) -> SweepPlan | None:
    folder = request.values.get("resume")
    if not folder:
        return None
    if request.out is not None:
        raise UsageError("--resume continues in its own directory", "Leave out --out.")
    record = read_study(Path(folder))
    if record.kind != STUDY.name or "plan" not in record.result:
        raise UsageError(f"{folder} holds no sweep that could be resumed", "Name the directory of a sweep.")
    _refuse_other_host(record.host, folder)
    return SweepPlan.from_dict(record.result["plan"])


def _refuse_other_host(host: dict[str, object], folder: str) -> None:
    here = read_inventory().to_dict()
    for part in ("identity", "usable_cores"):
        if part in host and host[part] != here.get(part):
            what = "usable cores differ" if part == "usable_cores" else "host is a different one"
            raise UsageError(f"the sweep in {folder} cannot be resumed here: the {what}", "Start another sweep here.")


def _asks_for_nothing(request: Request) -> bool:
    """Whether --resume came alone."""
    defaults = {option.name.replace("-", "_"): option for option in STUDY.options}
    asked = replace(request.asked, command_line=(), fetch=True)
    if asked != RunOptions(system="", workload="", **STUDY.run_defaults):
        return False
    return not request.values["vary"] and all(
        request.values[name] is None or _is_default(defaults[name], request.values[name])
        for name in ("preset", "repeat", "duration", "warm_up", "rate")
    )


def _is_default(option: Option, value: object) -> bool:
    if option.default is None:
        return False
    parse = {"count": units.parse_count, "duration": units.parse_duration_seconds}.get(option.kind, str)
    return bool(parse(option.default) == value)


def conduct(conduct: Conduct) -> None:
    """The study."""
    conduct_sweep(conduct, build_plan(conduct.request), Bench())


def title(request: Request) -> str:
    plan = build_plan(request)
    names = " and ".join(factor.name.replace("_", " ") for factor in plan.factors)
    systems = next((", ".join(one.levels) for one in plan.factors if one.name == "system"), plan.options.system)
    if plan.preset:
        preset = load_presets()[plan.preset]
        return f"{preset.source}, redone: {preset.asks} ({systems})"
    return f"sweep over {names}: {systems} under {plan.options.workload}"
