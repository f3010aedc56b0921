"""``calibrate``: measure the ceilings one by one, and keep each as soon as it is known."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from rackscope.errors import RackscopeError, UsageError
from rackscope.host.ceilings import CalibrationError, Ceiling, Ceilings, CounterCheck, load_ceilings, save_ceilings
from rackscope.host.cpu_time import read_cpu_time
from rackscope.host.inventory import Inventory, host_identity, read_inventory
from rackscope.host.measurements.setting import FioProgram, Kernels, Setting, choose_cores, now_text
from rackscope.host.steps import STEPS, Result, Say, Step
from rackscope.host.tree import Tree

#: A hypervisor that took more than this of the cores' time spoils what was measured meanwhile.
_MOST_STEAL = 0.05
#: Share by which a ceiling may differ from an earlier one without a remark.
_NOTABLE_CHANGE = 0.2
#: Load average a core above which the host was not idle.
_BUSY_LOAD = 0.5

__all__ = ["CalibrationOptions", "CalibrationProgress", "FioProgram", "calibrate", "groups"]


@dataclass(frozen=True)
class CalibrationOptions:
    """What to measure. ``quick`` leaves out disks and counters and takes at most a quarter of a minute."""

    quick: bool = False
    #: Cores to measure on; by default all that this process may use.
    cores: tuple[int, ...] | None = None
    #: Folder on the disk to measure; by default rackscope's cache folder.
    folder: Path | None = None
    #: Without it disks are not measured, and the result says so.
    fio: FioProgram | None = None
    #: Groups to measure (see ``groups``); by default all, or when quick all that are quick.
    only: frozenset[str] | None = None


@dataclass(frozen=True)
class CalibrationProgress:
    """Where it stands: what is measured now, the share of the time that is over, and what was just found."""

    activity: str
    fraction: float
    found: tuple[Ceiling | CounterCheck, ...] = ()


Progress = Callable[[CalibrationProgress], None]


def groups() -> tuple[str, ...]:
    """Names that ``CalibrationOptions.only`` may hold, in the order in which they are measured."""
    return tuple(dict.fromkeys(step.group for step in STEPS))


def calibrate(
    options: CalibrationOptions,
    progress: Progress,
    *,
    inventory: Inventory | None = None,
    kernels: Kernels | None = None,
    keep: Callable[[Ceilings], object] = save_ceilings,
) -> Ceilings:
    """Measure what ``options`` asks for, and return it over what was measured before.

    Every step's result is kept at once, so Ctrl-C (or worse) loses only the step it hits. A ceiling that could not be
    measured is in ``missing`` with the reason, and does not end the others. Raises UsageError for cores or groups that
    do not exist, CalibrationError when nothing could be measured or the result cannot be kept.
    """
    inventory = inventory or read_inventory()
    setting = Setting(
        inventory=inventory,
        tree=Tree(),
        cores=choose_cores(inventory, options.cores),
        quick=options.quick,
        kernels=kernels or _native_kernels(),
        folder=(options.folder or _cache_folder()).absolute(),
        fio=options.fio,
    )
    steps = _chosen_steps(options)
    earlier, notes = _earlier(host_identity(inventory))
    notes.extend(_busy_note(setting))
    result = Ceilings(host_identity(inventory), now_text(), options.quick, notes=tuple(notes))
    expected, spent = sum(step.seconds for step in steps), 0.0
    for step in steps:
        start = spent / expected
        progress(CalibrationProgress(step.activity, start))

        def say(activity: str, share: float, start: float = start, step: Step = step) -> None:
            progress(CalibrationProgress(activity, start + share * step.seconds / expected))

        found, missing = run_step(step, setting, say)
        spent += step.seconds
        result = _with(result, found, missing, earlier)
        keep(result.merged_over(earlier))
        progress(CalibrationProgress(step.activity, spent / expected, found))
    if not result.ceilings and not result.counters:
        reasons = "; ".join(dict.fromkeys(result.missing.values()))
        raise CalibrationError(f"nothing could be measured: {reasons}")
    return result.merged_over(earlier)


def run_step(step: Step, setting: Setting, say: Say) -> tuple[tuple[Ceiling | CounterCheck, ...], dict[str, str]]:
    """Measure one step: what it found, or why each of its names is missing."""
    before = read_cpu_time(setting.tree)
    try:
        found = step.measure(setting, say)
    except UsageError:
        raise
    except (RackscopeError, RuntimeError, OSError, ValueError) as error:
        # What Rust raises is a full sentence already.
        return (), dict.fromkeys(step.names, str(error))
    after = read_cpu_time(setting.tree)
    steal = after.steal_ratio_since(before) if before and after else None
    return tuple(_doubt(one, steal) if isinstance(one, Ceiling) else one for one in found), {}


def _doubt(ceiling: Ceiling, steal: float | None) -> Ceiling:
    """Record the steal, and distrust what was measured under much of it."""
    if steal is None:
        return ceiling
    detail = {**ceiling.detail, "steal_ratio": round(steal, 4)}
    distrust = ceiling.distrust
    if distrust is None and steal > _MOST_STEAL:
        distrust = f"the hypervisor took {steal:.0%} of the cores' time while it was measured"
    return replace(ceiling, detail=detail, distrust=distrust)


def _with(result: Ceilings, found: Result, missing: dict[str, str], earlier: Ceilings | None) -> Ceilings:
    moved = [note for one in found if isinstance(one, Ceiling) and (note := _moved_note(one, earlier))]
    return replace(
        result,
        notes=(*result.notes, *moved),
        measured_at=now_text(),
        ceilings=result.ceilings + tuple(one for one in found if isinstance(one, Ceiling)),
        counters=result.counters + tuple(one for one in found if isinstance(one, CounterCheck)),
        missing={**result.missing, **missing},
    )


def _moved_note(ceiling: Ceiling, earlier: Ceilings | None) -> str | None:
    """A host's ceilings stay: one that moved was disturbed, now or then, or the host was changed."""
    before = earlier.get(ceiling.name) if earlier else None
    change = ceiling.value / before.value - 1.0 if before else 0.0
    if before is None or abs(change) <= _NOTABLE_CHANGE:
        return None
    return (
        f"{ceiling.name} is {abs(change):.0%} {'below' if change < 0 else 'above'} what was measured at "
        f"{before.measured_at}: something disturbed one of the two, or the host was changed"
    )


def _chosen_steps(options: CalibrationOptions) -> list[Step]:
    unknown = sorted((options.only or frozenset()) - set(groups()))
    if unknown:
        raise UsageError(f"there is nothing to calibrate called {', '.join(unknown)}", f"Known: {', '.join(groups())}.")
    if options.only is not None:
        return [step for step in STEPS if step.group in options.only]
    return [step for step in STEPS if step.quick or not options.quick]


def _earlier(identity: str) -> tuple[Ceilings | None, list[str]]:
    """What was kept before. A damaged file is replaced, and the result says so."""
    try:
        return load_ceilings(identity), []
    except CalibrationError as error:
        return None, [f"replaced: {error.what}"]


def _busy_note(setting: Setting) -> list[str]:
    load = (setting.tree.text("proc/loadavg") or "").partition(" ")[0]
    cores = setting.inventory.processor.online_cores
    try:
        busy = float(load) > _BUSY_LOAD * cores
    except ValueError:
        return []
    return [f"the host was busy when calibration began (load average {load} on {cores} cores)"] if busy else []


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "rackscope"


def _native_kernels() -> Kernels:
    try:
        from rackscope import _native
    except ImportError as error:
        raise CalibrationError(
            f"rackscope's native module cannot be loaded: {error}", "Install rackscope again."
        ) from error
    return cast(Kernels, _native)
