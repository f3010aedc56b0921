"""Files that hold either the old content or all of the new, whatever interrupts their writing."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import RunDirectoryError
from rackscope.runs.redaction import redact

if TYPE_CHECKING:
    from pydantic import BaseModel


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replace all bytes or none (without ``sync``: unless power is lost). Raises RunDirectoryError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        # Why the writing failed is worth more than why the cleaning did.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


def write_record(path: Path, record: BaseModel) -> None:
    """Write a manifest or a study's record, without its secrets. Raises RunDirectoryError."""
    content = redact(record.model_dump(mode="json"))
    write_atomically(path, json.dumps(content, indent=2, allow_nan=False).encode())


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
