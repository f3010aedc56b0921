"""The last lines of what the system printed; hostile until escaped, and never more than a screenful or two."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TAIL_LINES = 40
TAIL_BYTES = 16_384
MAXIMUM_FILES = 4
_LINE_CHARACTERS = 400
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class LogTail:
    """The end of one log file."""

    name: str
    text: str
    is_cut: bool


def read_log_tails(folder: Path) -> tuple[LogTail, ...]:
    """One a file below ``logs/`` that holds anything; a file that cannot be read is left out."""
    tails = []
    try:
        files = sorted(path for path in folder.rglob("*.log") if path.is_file() and not path.is_symlink())
    except OSError:
        return ()
    for path in files:
        tail = _read(path, str(path.relative_to(folder)))
        if tail is not None:
            tails.append(tail)
        if len(tails) == MAXIMUM_FILES:
            break
    return tuple(tails)


def _read(path: Path, name: str) -> LogTail | None:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            content = file.read(TAIL_BYTES)
    except OSError:
        return None
    lines = _CONTROL.sub("", _ESCAPES.sub("", content.decode("utf-8", errors="replace"))).strip().splitlines()
    if not lines:
        return None
    kept = [line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} …" for line in lines[-TAIL_LINES:]]
    return LogTail(name, "\n".join(kept), size > TAIL_BYTES or len(lines) > TAIL_LINES)
