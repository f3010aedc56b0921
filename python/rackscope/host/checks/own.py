"""Rackscope's own state: native module, calibration, leftovers, means to fetch systems."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rackscope.host.ceilings import CalibrationError, load_ceilings
from rackscope.host.checks.check import Check, Examined, bad, limited, ok
from rackscope.host.tree import Tree, integer

_CALIBRATION_LASTS = timedelta(days=90)
#: As the kernel cuts names off: 15 characters.
_OWN_PROGRAMS = frozenset({"rackscope-keeper"[:15], "rackscope-cached"[:15]})
_INIT_NAMES = frozenset({"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"})


def native_probes(root: str, meters_json: str | None = None) -> Sequence[Mapping[str, Any]]:
    """What ``rackscope._native.list_probes`` says. Raises ImportError where the module is not to be had."""
    from rackscope import _native

    return _native.list_probes(root, meters_json)


def native_module(examined: Examined) -> Check:
    """Nothing is measured without it."""
    try:
        examined.probes(str(examined.tree.root))
    except ImportError as error:
        return bad(
            f"it cannot be loaded: {error}", "nothing can be measured", "Install rackscope again (make run builds it)."
        )
    except (RuntimeError, OSError) as error:
        return bad(f"its probes fail: {error}", "the host cannot be sampled")
    return ok("loaded")


def calibration(examined: Examined) -> Check:
    """Ceilings: known, readable, not too old."""
    advice = "Run 'rackscope calibrate' (two minutes; --quick takes a quarter of one)."
    effect = "how far a run is from what the hardware could do is not known"
    try:
        ceilings = load_ceilings(examined.inventory.identity)
    except CalibrationError as error:
        return bad(error.what, effect, error.advice)
    if ceilings is None:
        return limited("this host was never calibrated", effect, advice)
    age = _age(ceilings.measured_at, examined.now)
    untrusted = len(ceilings.untrusted())
    text = f"{len(ceilings.ceilings)} ceilings{f', {untrusted} of them not trusted' if untrusted else ''}"
    if age is None:
        return limited(f"{text}, of unknown age", "they may be of another time", advice)
    text = f"{text}, measured {_days(age)}"
    if age > _CALIBRATION_LASTS:
        effect = "kernel, firmware or neighbours may have changed since"
        return limited(text, effect, advice)
    return ok(text)


def leftovers(examined: Examined) -> Check:
    """Keepers and engines whose rackscope is gone."""
    left = leftover_processes(examined.tree)
    if not left:
        return ok("no process of an earlier run is left")
    listed = ", ".join(map(str, left))
    return bad(
        f"processes of an earlier run are still there: {listed}",
        "they hold ports and take the cores from what is measured",
        f"End them: kill {' '.join(map(str, left))}.",
    )


def packages(examined: Examined) -> Check:
    """``rackscope get`` unpacks the distribution's packages."""
    del examined
    lacking = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if not lacking:
        return ok("apt-get and dpkg-deb are there: 'rackscope get' can fetch systems")
    return limited(
        f"{' and '.join(lacking)} not found",
        "'rackscope get' cannot fetch systems",
        "Install memcached, redis and fio with this distribution's own means.",
    )


def leftover_processes(tree: Tree) -> list[int]:
    """Process ids of our programs whose parent is gone, so that an init adopted them."""
    left = []
    for name in tree.names("proc"):
        if not name.isdigit() or tree.text(f"proc/{name}/comm") not in _OWN_PROGRAMS:
            continue
        parent = _parent(tree, name)
        if parent is not None and _adopts(tree, parent):
            left.append(int(name))
    return left


def _parent(tree: Tree, pid: str) -> int | None:
    # The name in parentheses may hold anything (proc_pid_stat(5)).
    after_name = (tree.text(f"proc/{pid}/stat") or "").rpartition(")")[2].split()
    return integer(after_name[1]) if len(after_name) > 1 else None


def _adopts(tree: Tree, parent: int) -> bool:
    """Whether the parent is an init rather than whoever started them; in a container rackscope may be process 1."""
    if "rackscope" in (tree.text(f"proc/{parent}/cmdline") or ""):
        return False
    return parent == 1 or tree.text(f"proc/{parent}/comm") in _INIT_NAMES


def _age(measured_at: str, now: datetime) -> timedelta | None:
    try:
        return now - datetime.fromisoformat(measured_at)
    except (ValueError, TypeError):
        return None


def _days(age: timedelta) -> str:
    if age.days < 1:
        return "today"
    return f"{age.days} day{'' if age.days == 1 else 's'} ago"
