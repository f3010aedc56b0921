"""Limits that are being held: each kept in the journal before it is written, all given back last first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Applied
from rackscope.squeezes.changes import Changes
from rackscope.squeezes.journal import Journal, RestoreFile
from rackscope.squeezes.removal import write_control


@dataclass(frozen=True)
class Change:
    """Write ``content`` to a file of the kernel's; ``restore`` is what to write there to have it as it was."""

    path: Path
    content: str
    restore: str


class HeldChanges(Applied):
    """Changes that are undone on release, last first."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def release(self) -> None:
        """Give everything back. Raises SqueezeError for the first that cannot be, when all else is."""
        self._changes.undo_to(0)


class HeldTogether(Applied):
    """Several that are held and released as one, last first."""

    def __init__(self, parts: Sequence[Applied]) -> None:
        self._parts = tuple(parts)

    def release(self) -> None:
        """Give everything back, also when some of it cannot be. Raises SqueezeError for the first that cannot."""
        failed: list[SqueezeError] = []
        for part in reversed(self._parts):
            try:
                part.release()
            except SqueezeError as error:
                failed.append(error)
        if failed:
            raise failed[0]


def hold(name: str, wanted: Iterable[Change], journal: Journal, changes: Changes | None = None) -> HeldChanges:
    """Make the changes in order, after those that ``changes`` holds already; all or none.

    Raises SqueezeError that names the file that would not take it.
    """
    changes = Changes(journal) if changes is None else changes
    try:
        for change in wanted:
            changes.record(RestoreFile(change.path, change.restore))
            try:
                write_control(change.path, change.content)
            except OSError as error:
                raise SqueezeError(
                    f"{name}: '{change.content}' could not be written to {change.path}: {error.strerror}"
                ) from error
    except BaseException:
        # What cannot be undone now stays in the journal; the first mistake is the one to tell.
        with suppress(SqueezeError):
            changes.undo_to(0)
        raise
    return HeldChanges(changes)


def read_text(path: Path) -> str | None:
    """What a file of the kernel's holds, without white space around it; ``None`` when it cannot be read."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def read_integer(path: Path) -> int | None:
    """The whole number in a file of the kernel's; ``None`` when there is none."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def with_parents(folder: Path, file_name: str) -> list[Path]:
    """That file of the group and of the groups above it, as far up as it exists: a limit above is a limit here."""
    found = []
    for group in (folder, *folder.parents):
        path = group / file_name
        if not path.exists():
            break
        found.append(path)
    return found
