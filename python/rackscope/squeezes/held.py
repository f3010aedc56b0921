"""Changes that are being held: each in the journal before it is made, all undone last first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Applied
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.removal import write_control
from rackscope.squeezes.undo import RestoreFile, Undo


@dataclass(frozen=True)
class Change:
    """Write ``content`` to a file of the kernel's; ``restore`` is what to write there to have it as it was."""

    path: Path
    content: str
    restore: str


class Changes(Applied):
    """Changes that belong together, by the numbers of their steps in the journal; undone on release, last first."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._numbers: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def record(self, undo: Undo) -> None:
        """Keep the step that will undo a change, before the change is made. Raises SqueezeError."""
        self._numbers.append(self._journal.record(undo))

    def forget_last(self) -> None:
        """The change that was recorded last was not made."""
        self._journal.done(self._numbers.pop())

    def release(self) -> None:
        """Give everything back. Raises SqueezeError for the first that cannot be, when all else is."""
        self.undo_to(0)

    def undo_to(self, length: int) -> None:
        """Undo the changes beyond the first ``length``, last first.

        Raises SqueezeError for the first that cannot be undone, when all others are; the journal keeps that one.
        """
        failure: SqueezeError | None = None
        while len(self._numbers) > length:
            try:
                self._journal.undo(self._numbers.pop())
            except SqueezeError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def try_undo_to(self, length: int) -> None:
        """As ``undo_to``; what cannot be undone now stays in the journal, and is tried again when that is closed."""
        with suppress(SqueezeError):
            self.undo_to(length)

    @contextmanager
    def undone_on_failure(self, length: int = 0) -> Iterator[None]:
        """Try to undo those beyond the first ``length`` when the block fails; its mistake is the one to tell."""
        try:
            yield
        except BaseException:
            self.try_undo_to(length)
            raise


class HeldTogether(Applied):
    """Several that are held and released as one, last first."""

    def __init__(self, *parts: Applied) -> None:
        self._stack = ExitStack()
        for part in parts:
            self._stack.enter_context(part)

    def release(self) -> None:
        """Give everything back, also when some of it cannot be. Raises SqueezeError for what cannot."""
        self._stack.close()


def hold(name: str, wanted: Iterable[Change], journal: Journal, changes: Changes | None = None) -> Changes:
    """Make the changes after those that ``changes`` holds; all or none. Raises SqueezeError that names the file."""
    changes = Changes(journal) if changes is None else changes
    with changes.undone_on_failure():
        for change in wanted:
            changes.record(RestoreFile(change.path, change.restore))
            try:
                write_control(change.path, change.content)
            except OSError as error:
                raise SqueezeError(
                    f"{name}: '{change.content}' could not be written to {change.path}: {error.strerror}"
                ) from error
    return changes


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
