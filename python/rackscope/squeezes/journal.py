"""What is squeezed now, kept in a file of this process's so that it is undone however the process ends.

A step that undoes a change is in the file before the change is made. One file a process::

    /run/rackscope/squeezes/PID-STARTTICKS-RANDOM.json     root
    ~/.local/state/rackscope/squeezes/...                  others (XDG Base Directory Specification)

    {"format_version": 1, "owner": {"pid", "start_ticks", "boot_id", "pid_namespace"},
     "entries": [{"id": 1, "kind": "restore_file", "path": "...", "content": "..."}]}
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Self

from rackscope.errors import SqueezeError
from rackscope.squeezes.owner import Owner
from rackscope.squeezes.undo import ROOTS, Undo, undo_to_json

FORMAT_VERSION = 1
#: Names another folder for what rackscope keeps about its own doings.
_FOLDER_VARIABLE = "RACKSCOPE_STATE_FOLDER"


def journal_folder() -> Path:
    """Where this user's journals are: ``$RACKSCOPE_STATE_FOLDER``, for root ``/run/rackscope``, else the state home."""
    chosen = os.environ.get(_FOLDER_VARIABLE, "")
    if chosen:
        return Path(chosen).absolute() / "squeezes"
    if os.geteuid() == 0:
        # Gone after a boot, as are the changes themselves.
        return Path("/run/rackscope/squeezes")
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG Base Directory Specification has relative paths ignored.
    try:
        state = Path(base) if base.startswith("/") else Path("~/.local/state").expanduser()
    except RuntimeError:
        # A user without a name and without a home, as containers have them.
        import tempfile

        return Path(tempfile.gettempdir()) / f"rackscope-{os.geteuid()}" / "squeezes"
    return state / "rackscope" / "squeezes"


class Journal:
    """The steps that undo what this process (no fork of it) squeezes; closing does what is left, last first."""

    def __init__(self, folder: Path | None = None, *, roots: Iterable[Path] = ROOTS) -> None:
        self._folder = folder or journal_folder()
        self._roots = tuple(roots)
        self._owner = Owner.this_process()
        self._path: Path | None = None
        self._entries: dict[int, Undo] = {}
        self._next_id = 1
        self._lock = threading.RLock()

    @property
    def path(self) -> Path | None:
        """The file; ``None`` while there is nothing to undo yet."""
        return self._path

    @property
    def pending(self) -> tuple[Undo, ...]:
        """The steps that are left, in the order in which they were recorded."""
        with self._lock:
            return tuple(self._entries.values())

    def record(self, undo: Undo) -> int:
        """Keep a step, and only then make the change: its number. Raises SqueezeError where it would not be obeyed."""
        refusal = undo.refusal(self._roots)
        if refusal is not None:
            raise SqueezeError(f"a change that could not be undone was not made: {refusal}")
        with self._lock:
            number = self._next_id
            self._next_id += 1
            self._entries[number] = undo
            try:
                self._write()
            except BaseException:
                self._entries.pop(number, None)
                raise
            return number

    def done(self, number: int) -> None:
        """The change has been undone (or was never made): forget its step. Idempotent."""
        with self._lock:
            if self._entries.pop(number, None) is not None:
                self._write()

    def undo(self, number: int) -> None:
        """Do the step and forget it. Idempotent. Raises SqueezeError, and keeps the step, when it cannot be done."""
        with self._lock:
            step = self._entries.get(number)
            if step is None:
                return
            try:
                step.perform()
            except OSError as error:
                raise _not_undone([(step, error)]) from error
            self.done(number)

    def close(self) -> None:
        """Do every step that is left, last first. Raises SqueezeError for those that stay, for the next command."""
        with self._lock:
            if os.getpid() != self._owner.pid:
                return
            stuck: list[tuple[Undo, Exception]] = []
            for number, step in reversed(list(self._entries.items())):
                try:
                    step.perform()
                except (OSError, SqueezeError) as error:
                    stuck.append((step, error))
                else:
                    self._entries.pop(number)
                    # It is done: a journal that still names it is only done once more.
                    with suppress(SqueezeError):
                        self._write()
            if stuck:
                raise _not_undone(stuck) from stuck[0][1]
            if self._path is not None:
                self._path.unlink(missing_ok=True)
                self._path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except SqueezeError:
            # What went wrong first is told; what is stuck is told by the next command, which finds it in the file.
            if error is None:
                raise

    def _write(self) -> None:
        try:
            if self._path is None:
                prepare_folder(self._folder)
                # A process may keep several journals.
                name = f"{self._owner.pid}-{self._owner.start_ticks}-{os.urandom(4).hex()}.json"
                self._path = self._folder / name
            write_entries(self._path, self._owner, self._entries)
        except OSError as error:
            raise SqueezeError(
                f"the journal of squeezes cannot be written in {self._folder}: {error.strerror or error}",
                f"Free some space there, or set {_FOLDER_VARIABLE} to a folder that can be written.",
            ) from error


def prepare_folder(folder: Path) -> None:
    """Make the folder, for this user only. Raises OSError; SqueezeError when it is somebody else's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    refusal = folder_refusal(folder)
    if refusal is not None:
        raise SqueezeError(refusal, f"Set {_FOLDER_VARIABLE} to a folder of your own.")


def folder_refusal(folder: Path) -> str | None:
    """Why journals in ``folder`` are not believed: others could have put them there. Raises OSError."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to another user (number {status.st_uid})"
    if stat.S_IMODE(status.st_mode) & 0o022:
        return f"other users may write to {folder}"
    return None


def write_entries(path: Path, owner: Owner, entries: Mapping[int, Undo]) -> None:
    """Put the whole journal in place: another name, fsync, rename. Raises OSError."""
    content = {
        "format_version": FORMAT_VERSION,
        "owner": asdict(owner),
        "entries": [{"id": number, **undo_to_json(undo)} for number, undo in entries.items()],
    }
    temporary = path.with_suffix(".new")
    # Whatever a killed writer left under the other name is not to be followed or mixed with this.
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _not_undone(stuck: list[tuple[Undo, Exception]]) -> SqueezeError:
    parts = [f"{step.describe()} ({getattr(error, 'strerror', None) or error})" for step, error in stuck]
    return SqueezeError(
        f"could not be undone: {', '.join(parts)}",
        "The next rackscope command tries again; 'rackscope doctor --repair' does only that.",
    )
