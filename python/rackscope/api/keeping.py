"""However a measurement ends, what was measured is kept, and the caller is told where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rackscope.errors import Interrupted, RackscopeError


class Kept:
    """The directory of what is under way, once there is one."""

    folder: Path | None = None


@contextmanager
def keeping(name: str, save: Callable[[Path], str]) -> Iterator[Kept]:
    """Tell what ends the block where its directory is: ``details[name]``, and ``kept`` as ``save`` writes it."""
    kept = Kept()
    try:
        yield kept
    except RackscopeError as error:
        error.details[name] = None if kept.folder is None else str(kept.folder)
        error.kept = _save(kept, save)
        raise
    except KeyboardInterrupt:
        stop = Interrupted()
        stop.details[name] = None if kept.folder is None else str(kept.folder)
        try:
            stop.kept = _save(kept, save)
        finally:
            # Also when a second Ctrl-C means that not even the report is wanted.
            raise stop from None


def _save(kept: Kept, save: Callable[[Path], str]) -> str:
    if kept.folder is None:
        return ""
    try:
        return save(kept.folder)
    except RackscopeError as error:
        return f"{kept.folder} keeps what was measured, but has no report: {error}"
