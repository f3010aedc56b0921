"""Changes that belong together: each in the journal before it is made, all of them undone last first."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rackscope.errors import SqueezeError

if TYPE_CHECKING:
    from rackscope.squeezes.journal import Journal
    from rackscope.squeezes.undo import Undo


class Changes:
    """What one isolation has changed, by the numbers of its steps in the journal."""

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
