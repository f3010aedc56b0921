"""Files that hold either the old content or all of the new, whatever interrupts their writing."""

from __future__ import annotations

import os
from pathlib import Path

from rackscope.errors import RunDirectoryError


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write ``content`` so that ``path`` holds either the old bytes or all the new ones. Raises RunDirectoryError.

    Without ``sync`` that holds for a killed process, but not for a host that loses power.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        _discard(temporary)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


def cannot_write(path: Path, error: OSError) -> RunDirectoryError:
    """What to raise when ``path``, in a run directory, cannot be written."""
    return RunDirectoryError(
        f"cannot write {path}: {error.strerror or error}",
        "What was measured before is kept. Free some space or choose another folder with --out.",
    )


def cannot_make(path: Path, error: OSError) -> RunDirectoryError:
    """What to raise when the run directory ``path`` cannot be made."""
    return RunDirectoryError(
        f"cannot make the run directory {path}: {error.strerror or error}", "Choose another folder with --out."
    )


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        # Why the writing failed is worth more than why the cleaning did.
        return
