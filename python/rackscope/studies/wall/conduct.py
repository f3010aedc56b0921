"""From what is asked of ``study wall`` to what is measured and said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rackscope.errors import UsageError
from rackscope.host.memory import Memory, read_memory
from rackscope.host.tree import Tree
from rackscope.runs.options import Progress, RunOptions
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.loading import check_count
from rackscope.studies.wall.bench import SizeBench, why_no_group
from rackscope.studies.wall.findings import describe
from rackscope.studies.wall.growth import Growth, Setting, grow, sizes_in_keys
from rackscope.systems import find_system
from rackscope.units import format_bytes
from rackscope.workloads import WorkloadPlan, find_workload, plan

#: Less than this is filled by a system before any data is in.
_LEAST_BYTES = 32 * 1024**2
#: Of the host's available memory, what the limit may take: the load generator and the kernel need the rest.
_MOST_OF_HOST = 0.8
_LEAST_KEYS = 1000


def conduct_wall(conduct: Conduct, setting: Setting, bench: SizeBench, sizes: list[int], budget_seconds: float) -> None:
    """Grow, and say what was found; also when it is stopped before the end."""
    growth = Growth()
    with conduct.described(lambda: describe(conduct.record, setting, growth)):
        grow(bench.measure, sizes, setting.item_bytes, setting.rounds, budget_seconds, growth)


def _planned(run: RunOptions) -> WorkloadPlan:
    """The workload as it would be for the system. Raises UsageError."""
    system, workload = find_system(run.system), find_workload(run.workload)
    parameters = {parameter.name for parameter in workload.parameters}
    return plan(
        workload,
        {name: value for name, value in run.settings.items() if name in parameters},
        operations=system.operations,
        protocols=system.protocols,
        system=system.name,
    )


def _memory() -> Memory:
    return read_memory(Tree(Path("/")))


def conduct(conduct: Conduct) -> None:
    run, values = conduct.request.asked, conduct.request.values
    limit = values["memory"]
    plan = _planned(run)
    item_bytes = (plan.data_bytes or 0) // int(plan.keys["count"])
    conduct.progress(Progress("finding out how memory can be limited here"))
    why_not = "--by knob was asked for" if values["by"] == "knob" else why_no_group()
    options = replace(run, duration_seconds=values["duration"], warm_up_seconds=values["warm_up"])
    notes: list[str] = []
    if why_not:
        options = _limited_by_knob(options, limit, why_not, notes)
    memory = _memory()
    # What is larger than the limit is never held: the generator's memory of keys is all that it costs the host.
    most = float("inf") if memory.available_bytes is None else memory.available_bytes * _MOST_OF_HOST
    setting = Setting(
        system=run.system,
        workload=run.workload,
        limit_bytes=limit,
        item_bytes=item_bytes,
        by_group=not why_not,
        why_not_group="" if values["by"] == "knob" else why_not,
        swap_bytes=memory.swap_total_bytes,
        rounds=values["repeat"],
        duration_seconds=values["duration"],
        notes=tuple(notes),
    )

    bench = SizeBench(options, setting, conduct)
    conduct_wall(conduct, setting, bench, sizes_in_keys(limit, item_bytes, most), values["budget"])


def _limited_by_knob(options: RunOptions, limit: int, why: str, notes: list[str]) -> RunOptions:
    """The same run with the system's own memory knob at the limit. Raises UsageError where it has none."""
    knobs = {knob.name for knob in find_system(options.system).knobs}
    if "memory" not in knobs:
        raise UsageError(
            f"{options.system} has no memory knob, and memory cannot be limited otherwise: {why}",
            "Run as root, or in a delegated control group.",
        )
    settings = {**options.settings, "memory": str(limit)}
    if "eviction" in knobs and "eviction" not in settings:
        settings["eviction"] = "allkeys-lru"
        notes.append(f"{options.system} was set to evict (eviction=allkeys-lru): by default it refuses writes instead")
    return replace(options, settings=settings)


def check(request: Request) -> None:
    run, values = request.asked, request.values
    if not find_workload(run.workload).preload:
        raise UsageError(f"workload {run.workload} has no data set that could grow", "Choose another, like ycsb-b.")
    if "keys" in run.settings:
        raise UsageError("the number of keys is what grows", "Leave out --set keys.")
    if values["by"] == "knob" and "memory" in run.settings:
        raise UsageError("--memory sets the memory knob here", "Leave out --set memory.")
    plan = _planned(run)
    if plan.data_bytes is None:
        raise UsageError(
            f"items of {run.workload} have no fixed size, so its data cannot grow in steps",
            "Fix the size: --set value_size=1000 --set key_size=24.",
        )
    limit = values["memory"]
    if limit < _LEAST_BYTES:
        least = f"{_LEAST_BYTES // 1024**2}m"
        raise UsageError(f"{format_bytes(limit)} are full before any data is in", f"Choose --memory {least} or more.")
    item_bytes = plan.data_bytes // int(plan.keys["count"])
    if limit / 8 / item_bytes < _LEAST_KEYS:
        raise UsageError(
            f"an eighth of {format_bytes(limit)} holds fewer than {_LEAST_KEYS} items of {format_bytes(item_bytes)}",
            "Choose a larger --memory or smaller values.",
        )
    check_count(values["repeat"], "rounds", most=20)
    replace(run, duration_seconds=values["duration"], warm_up_seconds=values["warm_up"]).check()
    _check_host(limit, values["by"])


def _check_host(limit: int, by: str) -> None:
    """Raises UsageError for a limit that this host cannot give, or cannot set."""
    available = _memory().available_bytes
    if available is not None and limit > available * _MOST_OF_HOST:
        raise UsageError(
            f"a limit of {format_bytes(limit)} leaves too little of the {format_bytes(available)} that are available",
            f"Choose --memory {int(available * _MOST_OF_HOST / 2 / 1024**2)}m or less.",
        )
    reason = why_no_group() if by == "group" else ""
    if reason:
        raise UsageError(f"memory cannot be limited by a control group here: {reason}", "Try --by knob.")


def title(request: Request) -> str:
    run = request.asked
    return f"wall of {run.system} under {run.workload} with {format_bytes(request.values['memory'])}"
