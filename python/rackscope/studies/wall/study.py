"""``study wall``: grow the data under a memory limit until it breaks; say where, and what broke.

``StudyRecord.result`` holds ``limit_bytes``, ``limited_by``, ``points`` (one a run that ended well), ``ran_out`` (those
that did not), ``held_bytes`` (how much data was in when memory ran out) and ``wall`` (the change-point of time per byte
with its interval, and what changed there).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study
from rackscope.units import format_bytes

if TYPE_CHECKING:
    from rackscope.runs.options import RunOptions
    from rackscope.studies.wall.findings import Setting
    from rackscope.studies.wall.growth import Grower, Growth

#: Less than this is filled by a system before any data is in.
_LEAST_BYTES = 32 * 1024**2
#: Of the host's available memory, what the limit may take: the load generator and the kernel need the rest.
_SHARE_OF_HOST = 0.8
_LEAST_KEYS = 1000


def conduct_wall(conduct: Conduct, setting: Setting, grower: Grower, sizes: list[int], budget_seconds: float) -> None:
    """Grow, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.wall.findings import describe
    from rackscope.studies.wall.growth import Growth, grow

    growth: Growth = Growth()
    try:
        grow(grower, sizes, setting.item_bytes, setting.rounds, budget_seconds, growth)
    finally:
        describe(conduct.record, setting, growth)


def _conduct(conduct: Conduct) -> None:
    from rackscope.host.memory import read_memory
    from rackscope.host.tree import Tree
    from rackscope.runs.options import Progress
    from rackscope.studies.wall.bench import SizeBench, why_no_group
    from rackscope.studies.wall.findings import Setting
    from rackscope.studies.wall.growth import sizes_in_keys
    from rackscope.systems import find_system
    from rackscope.workloads import find_workload
    from rackscope.workloads import plan as plan_workload

    request = conduct.request
    assert request.run is not None
    limit, values = request.values["memory"], request.values
    system, workload = find_system(request.run.system), find_workload(request.run.workload)
    parameters = {parameter.name for parameter in workload.parameters}
    plan = plan_workload(
        workload,
        {name: value for name, value in request.run.settings.items() if name in parameters},
        operations=system.operations,
        protocols=system.protocols,
        system=system.name,
    )
    item_bytes = (plan.data_bytes or 0) // int(plan.keys["count"])
    conduct.progress(Progress("finding out how memory can be limited here"))
    why_not = "--by knob was asked for" if values["by"] == "knob" else why_no_group()
    options = replace(request.run, duration_seconds=values["duration"], warm_up_seconds=values["warm_up"])
    notes: list[str] = []
    if why_not:
        options = _limited_by_knob(options, limit, why_not, notes)
    memory = read_memory(Tree(Path("/")))
    available = memory.available_bytes
    # What is larger than the limit is never held: the generator's memory of keys is all that it costs the host.
    most = float("inf") if available is None else available * _SHARE_OF_HOST
    setting = Setting(
        system=system.name,
        workload=workload.name,
        limit_bytes=limit,
        item_bytes=item_bytes,
        by_group=not why_not,
        why_not_group="" if values["by"] == "knob" else why_not,
        swap_bytes=memory.swap_total_bytes,
        rounds=values["repeat"],
        duration_seconds=values["duration"],
        notes=tuple(notes),
    )
    bench = SizeBench(
        options,
        limit,
        item_bytes,
        not why_not,
        conduct.member,
        conduct.progress,
        lambda why: setattr(conduct.record.members[-1], "discarded", why),
    )
    conduct_wall(conduct, setting, bench, sizes_in_keys(limit, item_bytes, most), values["budget"])


def _limited_by_knob(options: RunOptions, limit: int, why: str, notes: list[str]) -> RunOptions:
    """The same run with the system's own memory knob at the limit. Raises UsageError where it has none."""
    from rackscope.systems import find_system

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


def _check(request: Request) -> None:
    from rackscope.systems import find_system
    from rackscope.workloads import find_workload
    from rackscope.workloads import plan as plan_workload

    run, values = request.run, request.values
    assert run is not None
    system, workload = find_system(run.system), find_workload(run.workload)
    if not workload.preload:
        raise UsageError(
            f"workload {workload.name} puts no data set in that could grow", "Choose another, like ycsb-b."
        )
    if "keys" in run.settings:
        raise UsageError("the number of keys is what grows", "Leave out --set keys.")
    if values["by"] == "knob" and "memory" in run.settings:
        raise UsageError("the memory knob is what --memory sets here", "Leave out --set memory.")
    parameters = {parameter.name for parameter in workload.parameters}
    plan = plan_workload(
        workload,
        {name: value for name, value in run.settings.items() if name in parameters},
        operations=system.operations,
        protocols=system.protocols,
        system=system.name,
    )
    if plan.data_bytes is None:
        raise UsageError(
            f"items of {workload.name} have no fixed size, so that its data cannot be grown to one",
            "Fix it: --set value_size=1000 --set key_size=24.",
        )
    limit = values["memory"]
    if limit < _LEAST_BYTES:
        raise UsageError(
            f"{format_bytes(limit)} are filled before any data is in",
            f"Choose --memory {_LEAST_BYTES // 1024**2}m or more.",
        )
    item_bytes = plan.data_bytes // int(plan.keys["count"])
    if limit / 8 / item_bytes < _LEAST_KEYS:
        raise UsageError(
            f"an eighth of {format_bytes(limit)} holds fewer than {_LEAST_KEYS} items of {format_bytes(item_bytes)}",
            "Choose a larger --memory or smaller values.",
        )
    if not 1 <= values["repeat"] <= 20:
        raise UsageError(f"{values['repeat']} rounds are out of bounds", "Choose --repeat between 1 and 20.")
    replace(run, duration_seconds=values["duration"], warm_up_seconds=values["warm_up"]).check()
    _check_host(limit, values["by"])


def _check_host(limit: int, by: str) -> None:
    """Raises UsageError for a limit that this host cannot give, or cannot set."""
    from rackscope.host.memory import read_memory
    from rackscope.host.tree import Tree
    from rackscope.studies.wall.bench import why_no_group

    available = read_memory(Tree(Path("/"))).available_bytes
    if available is not None and limit > available * _SHARE_OF_HOST:
        raise UsageError(
            f"a limit of {format_bytes(limit)} leaves too little of the {format_bytes(available)} that are available",
            f"Choose --memory {int(available * _SHARE_OF_HOST / 2 / 1024**2)}m or less.",
        )
    reason = why_no_group() if by == "group" else ""
    if reason:
        raise UsageError(f"memory cannot be limited by a control group here: {reason}", "Try --by knob.")


def _title(request: Request) -> str:
    assert request.run is not None
    return f"wall of {request.run.system} under {request.run.workload} with {format_bytes(request.values['memory'])}"


STUDY = Study(
    name="wall",
    help="grow the data under a memory limit until it breaks, and say what broke",
    description=(
        "Measures time per byte at sizes from an eighth of a memory limit to four times it, each after a fresh start,\n"
        "until memory runs out or the largest is measured. The limit is a control group's: the system is stopped when\n"
        "it has run out, nothing is left to the kernel's killer. With --by knob it is the system's own limit, and the\n"
        "wall shows as misses.\n\n"
        "Examples:\n"
        "  rackscope study wall redis ycsb-b --memory 256m\n"
        "  rackscope study wall memcached ycsb-b --by knob --memory 64m --set distribution=uniform"
    ),
    conduct=_conduct,
    options=(
        Option("memory", "size", "the limit", "256m"),
        Option(
            "by",
            "text",
            "who limits: a control group, the system's own knob, or the group where it can be",
            "auto",
            choices=("auto", "group", "knob"),
        ),
        Option("repeat", "count", "rounds over all sizes", "2"),
        Option("duration", "duration", "measured time at a size", "1s"),
        Option("warm-up", "duration", "unmeasured time before it", "300ms"),
        Option("budget", "duration", "time after which later rounds leave sizes out", "150s"),
    ),
    title=_title,
    check=_check,
    run_defaults={"repetitions": 1},
)
