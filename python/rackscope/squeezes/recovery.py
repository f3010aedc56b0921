"""Undo what processes that are gone left squeezed: every command does so at its start, and the doctor on its own."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.journal import FORMAT_VERSION, folder_refusal, journal_folder, write_entries
from rackscope.squeezes.owner import Owner
from rackscope.squeezes.undo import ROOTS, Undo, undo_from_json

_LOCK_NAME = "recovery.lock"
#: Seconds to wait for another command that is undoing the same.
_LOCK_SECONDS = 10.0
#: Seconds that the keeper may take to end a killed command's system: until then its groups cannot be removed.
_BUSY_SECONDS = 3.0
_POLL_SECONDS = 0.02
_LARGEST_BYTES = 1 << 20
#: Seconds after which what a killed writer was about to put in place is swept away.
_UNFINISHED_SECONDS = 60.0
_MOST_NAMED = 4


@dataclass(frozen=True)
class _Left:
    """A journal whose process is gone."""

    path: Path
    owner: Owner
    entries: dict[int, Undo]


@dataclass(frozen=True)
class _Found:
    """Journals of the dead with something to undo, the latest first; ``empty`` ones; what is wrong with others."""

    left: list[_Left] = field(default_factory=list)
    empty: list[Path] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def recover(folder: Path | None = None, *, roots: Iterable[Path] = ROOTS) -> list[str]:
    """Undo what is left in the journals of ``folder`` whose processes are gone; never raises.

    Returns a sentence for each such process, and for whatever is in the way: a damaged journal, a step that cannot be
    done now (it stays in the journal and is tried again next time), a path that no squeeze changes.
    """
    folder = folder or journal_folder()
    found = _look(folder)
    if not found.left and not found.empty:
        return found.sentences
    try:
        with _lock(folder) as held:
            if not held:
                waited = f"another command is still undoing what was left squeezed ({folder / _LOCK_NAME})"
                return [*found.sentences, waited]
            # Another command may have undone some of it while we waited.
            found = _look(folder)
            for path in found.empty:
                path.unlink(missing_ok=True)
            _sweep(folder)
            deadline = time.monotonic() + _BUSY_SECONDS
            for left in found.left:
                found.sentences.extend(_undo(left, tuple(roots), deadline))
    except OSError as error:
        found.sentences.append(f"what was left squeezed cannot be undone: {error}")
    return found.sentences


def find_leftovers(folder: Path | None = None) -> list[str]:
    """What ``recover`` would see to, a sentence each; changes nothing, never raises."""
    found = _look(folder or journal_folder())
    return [f"{_who(each.owner)} left squeezed: {_listed(each.entries.values())}" for each in found.left] + (
        found.sentences
    )


def _look(folder: Path) -> _Found:
    try:
        with os.scandir(folder) as entries:
            paths = [Path(entry.path) for entry in entries if entry.name.endswith(".json")]
        if not paths:
            return _Found()
        refusal = folder_refusal(folder)
    except FileNotFoundError:
        return _Found()
    except OSError as error:
        return _Found(sentences=[f"journals of squeezes cannot be read: {error}"])
    if refusal is not None:
        return _Found(sentences=[f"journals of squeezes are not followed: {refusal}"])
    found = _Found()
    dated: list[tuple[float, _Left]] = []
    for path in sorted(paths):
        try:
            modified, left = _read(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            found.sentences.append(
                f"the journal of squeezes {path} is not followed ({what}): undo by hand what it names, then remove it"
            )
            continue
        if not left.owner.is_of_this_boot():
            # The kernel forgot it all.
            found.empty.append(path)
        elif not left.owner.is_visible():
            found.sentences.append(
                f"{path} is of a process in another container: remove it, or run 'rackscope doctor --repair' there, "
                "if that is gone"
            )
        elif not left.owner.is_alive():
            if left.entries:
                dated.append((modified, left))
            else:
                found.empty.append(path)
    # What was changed last is undone first.
    found.left.extend(left for _, left in sorted(dated, key=lambda each: each[0], reverse=True))
    return found


def _read(path: Path) -> tuple[float, _Left]:
    """Raises OSError, ValueError, KeyError, TypeError or RecursionError for what is no journal of this user's."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        if status.st_uid != os.geteuid():
            raise ValueError(f"it belongs to another user, number {status.st_uid}")
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise ValueError("other users may write to it")
        if status.st_size > _LARGEST_BYTES:
            raise ValueError("it is too long")
        content = json.loads(file.read(_LARGEST_BYTES))
    if not isinstance(content, dict):
        raise TypeError("it is not a journal")
    if content["format_version"] != FORMAT_VERSION:
        raise ValueError(f"its format is {content['format_version']}, not {FORMAT_VERSION}")
    entries: dict[int, Undo] = {}
    for entry in content["entries"]:
        if type(entry["id"]) is not int:
            raise TypeError("a step without a number")
        entries[entry["id"]] = undo_from_json(entry)
    return status.st_mtime, _Left(path, Owner.from_json(content["owner"]), entries)


def _undo(left: _Left, roots: tuple[Path, ...], deadline: float) -> list[str]:
    done: list[Undo] = []
    stuck: list[str] = []
    remaining = dict(left.entries)
    for number in sorted(left.entries, reverse=True):
        step = left.entries[number]
        reason = step.refusal(roots) or _perform(step, deadline)
        if reason is None:
            done.append(step)
            del remaining[number]
        else:
            stuck.append(f"{step.describe()} ({' '.join(reason.split())})")
    if remaining:
        write_entries(left.path, left.owner, remaining)
    else:
        left.path.unlink(missing_ok=True)
    sentences = []
    if done:
        sentences.append(f"undid what {_who(left.owner)} left squeezed: {_listed(done)}")
    if stuck:
        sentences.append(
            f"what {_who(left.owner)} left squeezed cannot be undone yet: {', '.join(stuck)}; "
            f"the next command tries again ({left.path})"
        )
    return sentences


def _perform(step: Undo, deadline: float) -> str | None:
    """Do it; the reason why it cannot be done."""
    while True:
        try:
            step.perform()
        except (OSError, SqueezeError) as error:
            cause = error.__cause__ if isinstance(error, SqueezeError) else error
            busy = isinstance(cause, OSError) and cause.errno == errno.EBUSY
            if not busy or time.monotonic() > deadline:
                return getattr(error, "strerror", None) or str(error)
            time.sleep(_POLL_SECONDS)
        else:
            return None


def _who(owner: Owner) -> str:
    return f"a rackscope that has ended (process {owner.pid})"


def _listed(steps: Iterable[Undo]) -> str:
    names = [step.describe() for step in steps]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _sweep(folder: Path) -> None:
    """Remove what killed writers had not put in place yet: the change that it was for was never made."""
    for path in folder.glob("*.new"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _UNFINISHED_SECONDS:
                path.unlink()


@contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Whether this is the only command that undoes. The kernel lets go of the lock when its holder dies."""
    descriptor = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        held = False
        while not held and time.monotonic() < deadline:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                time.sleep(_POLL_SECONDS)
        yield held
    finally:
        os.close(descriptor)
