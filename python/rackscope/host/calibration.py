"""``calibrate``: measure the ceilings one by one, and keep each as soon as it is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackscope.errors import RackscopeError, UsageError
from rackscope.host.ceilings import CalibrationError, Ceiling, Ceilings, CounterCheck, load_ceilings, save_ceilings
from rackscope.host.cpu_time import read_cpu_time
from rackscope.host.inventory import Inventory, read_inventory
from rackscope.host.measurements.setting import FioProgram, Setting, choose_cores
from rackscope.host.steps import STEPS, Say, Step
from rackscope.host.tree import Tree
from rackscope.units import now_text

#: A hypervisor that took more than this of the cores' time spoils what was measured meanwhile.
_MOST_STEAL = 0.05
#: Share by which a ceiling may differ from an earlier one without a remark.
_NOTABLE_CHANGE = 0.2
#: Load average a core above which the host was not idle.
_BUSY_LOAD = 0.5


@dataclass(frozen=True)
class CalibrationOptions:
    """What to measure. ``quick`` leaves out disks and counters and takes at most a quarter of a minute."""

    quick: bool = False
    #: Cores to measure on; by default all that this process may use.
    cores: tuple[int, ...] | None = None
    #: Folder on the disk to measure; by default rackscope's cache folder.
    folder: Path | None = None
    #: Without it disks are not measured, and the result says why.
    fio: FioProgram | RackscopeError | None = None
    #: Groups to measure (see ``groups``); by default all, or when quick all that are quick.
    only: frozenset[str] | None = None


def groups() -> tuple[str, ...]:
    """Names that ``CalibrationOptions.only`` may hold, in the order in which they are measured."""
    return tuple(dict.fromkeys(step.group for step in STEPS))


def calibrate(
    options: CalibrationOptions,
    progress: Say,
    *,
    inventory: Inventory | None = None,
    kernels: Any = None,
    keep: Callable[[Ceilings], object] = save_ceilings,
) -> Ceilings:
    """Measure what ``options`` asks for, and return it over what was measured before.

    Every ceiling is kept at once, so Ctrl-C (or worse) loses only the one that it hits. What could not be measured is
    in ``missing`` with the reason. ``progress`` is told what is measured and the share of the time that is over.
    Raises UsageError for unknown cores or groups, CalibrationError when there is nothing, or it cannot be kept.
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
    earlier, notes = _earlier(inventory.identity)
    notes.extend(_busy_note(setting))
    result = Ceilings(inventory.identity, now_text(), options.quick, notes=tuple(notes))
    expected, spent = sum(step.seconds for step in steps), 0.0
    for step in steps:
        start = spent / expected
        progress(step.activity, start)

        def say(activity: str, share: float, start: float = start, step: Step = step) -> None:
            progress(activity, start + share * step.seconds / expected)

        spent += step.seconds
        for found in run_step(step, setting, say):
            result = _with(result, found, earlier)
            keep(result.merged_over(earlier))
        progress(step.activity, spent / expected)
    if not result.ceilings and not result.counters:
        reasons = "; ".join(dict.fromkeys(result.missing.values()))
        raise CalibrationError(f"nothing could be measured: {reasons}")
    return result.merged_over(earlier)


@dataclass(frozen=True)
class Missing:
    """What a step should have found, and why it did not."""

    names: tuple[str, ...]
    reason: str


def run_step(step: Step, setting: Setting, say: Say) -> Iterator[Ceiling | CounterCheck | Missing]:
    """Measure one step: each thing that it finds, and what is missing when it fails."""
    absent = list(step.names)
    before = read_cpu_time(setting.tree)
    try:
        for found in step.measure(setting, say):
            name = found.name if isinstance(found, Ceiling) else found.column
            absent = [one for one in absent if not name.startswith(one)]
            after = read_cpu_time(setting.tree)
            steal = after.steal_ratio_since(before) if before and after else None
            yield _doubt(found, steal) if isinstance(found, Ceiling) else found
    except UsageError:
        raise
    except (RackscopeError, RuntimeError, OSError, ValueError) as error:
        # What Rust raises is a full sentence already.
        yield Missing(tuple(absent), str(error))


def _doubt(ceiling: Ceiling, steal: float | None) -> Ceiling:
    """Record the steal, and distrust what was measured under much of it."""
    if steal is None:
        return ceiling
    detail = {**ceiling.detail, "steal_ratio": round(steal, 4)}
    distrust = ceiling.distrust
    if distrust is None and steal > _MOST_STEAL:
        distrust = f"the hypervisor took {steal:.0%} of the cores' time while it was measured"
    return replace(ceiling, detail=detail, distrust=distrust)


def _with(result: Ceilings, found: Ceiling | CounterCheck | Missing, earlier: Ceilings | None) -> Ceilings:
    result = replace(result, measured_at=now_text())
    if isinstance(found, Missing):
        return replace(result, missing={**result.missing, **dict.fromkeys(found.names, found.reason)})
    if isinstance(found, CounterCheck):
        return replace(result, counters=(*result.counters, found))
    moved = _moved_note(found, earlier)
    notes = (*result.notes, moved) if moved else result.notes
    return replace(result, ceilings=(*result.ceilings, found), notes=notes)


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


def _native_kernels() -> Any:
    try:
        from rackscope import _native
    except ImportError as error:
        raise CalibrationError(
            f"rackscope's native module cannot be loaded: {error}", "Install rackscope again."
        ) from error
    return _native
