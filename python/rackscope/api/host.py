"""This host: what it can give at most, and what is missing for measuring. What ``calibrate`` and ``doctor`` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.api.settings import ProgressCallback, silent
from rackscope.errors import RackscopeError, UsageError
from rackscope.runs.options import Progress

if TYPE_CHECKING:
    from rackscope.host.ceilings import Ceilings
    from rackscope.host.checks import Check
    from rackscope.host.measurements.setting import FioProgram


def known_ceilings() -> Ceilings | None:
    """What was measured on this host before; ``None`` where nothing was. Raises RackscopeError."""
    from rackscope.host.ceilings import load_ceilings
    from rackscope.host.inventory import read_inventory

    return load_ceilings(read_inventory().identity)


def calibrate(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    cores: tuple[int, ...] | None = None,
    folder: Path | None = None,
    fetch: bool = True,
    progress: ProgressCallback = silent,
) -> Ceilings:
    """Measure the ceilings of this host and keep them; ``missing`` has the reason of each that could not be measured.

    ``quick`` leaves out disks and counters, ``only`` names groups (cpu, memory, network, counters, disk), ``folder`` is
    on the disk to measure. Raises RackscopeError.
    """
    from rackscope.host.calibration import CalibrationOptions
    from rackscope.host.calibration import calibrate as measure

    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "Name one on the disk to measure with --folder.")
    fio = _fio(fetch=fetch, progress=progress) if ("disk" in only if only else not quick) else None
    options = CalibrationOptions(quick, cores, folder, fio, frozenset(only) or None)
    return measure(options, lambda activity, share: progress(Progress(f"measuring {activity}", share)))


def _fio(*, fetch: bool, progress: ProgressCallback) -> FioProgram | RackscopeError:
    """The program that measures disks, or why they cannot be measured."""
    from rackscope.host.measurements.setting import FioProgram
    from rackscope.systems.acquire import acquire_tool

    try:
        acquired = acquire_tool("fio", fetch=fetch, progress=lambda text: progress(Progress(text)))
    except RackscopeError as error:
        return error
    return FioProgram(acquired.program, acquired.version, dict(acquired.environment))


def examine(meters: Sequence[str] = ()) -> list[Check]:
    """What can be measured here, what cannot, and what that disables; ``meters`` are power meters to read, too."""
    from rackscope.host.checks import Check, run_checks
    from rackscope.host.checks.own import native_probes
    from rackscope.host.meters import parse_meters
    from rackscope.squeezes.recovery import find_leftovers

    named = parse_meters(meters).to_json()
    checks = run_checks(probes=lambda root: native_probes(root, named))
    left = find_leftovers()
    if not left:
        return [*checks, Check("squeezes", "ok", "no limits are left from killed commands")]
    effect = "what is measured here is slower than it would be"
    advice = "Run 'rackscope doctor --repair'; any other verb repairs it at its start too."
    return [*checks, Check("squeezes", "bad", "; ".join(left), effect, advice)]


def repair() -> tuple[list[str], list[str]]:
    """Undo the limits that killed commands left in place: what was done, and what is still left, a sentence each."""
    from rackscope.squeezes.recovery import find_leftovers, recover

    return recover(), find_leftovers()
