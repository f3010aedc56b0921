"""Small files under a root folder: a host's own ``/``, or a tree recorded from another machine."""

from __future__ import annotations

import os
import re
from pathlib import Path


class Tree:
    """Reads text below ``root``. What is missing, unreadable or malformed is ``None``, never an exception."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """``name`` (such as ``proc/meminfo``) below the root."""
        return self.root / name.lstrip("/")

    def exists(self, name: str) -> bool:
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def readable(self, name: str) -> bool:
        return os.access(self.path(name), os.R_OK)

    def text(self, name: str) -> str | None:
        """The file's text without white space around it; an empty file is missing."""
        try:
            content = self.path(name).read_bytes()
        except OSError:
            return None
        # Device trees end their strings with a zero byte.
        return content.decode(errors="replace").strip().strip("\0").strip() or None

    def integer(self, name: str) -> int | None:
        """The whole number that the file holds."""
        return integer(self.text(name))

    def names(self, folder: str) -> tuple[str, ...]:
        """What is in a folder, sorted as people count (``cpu2`` before ``cpu10``); nothing when it is missing."""
        try:
            entries = [entry.name for entry in self.path(folder).iterdir()]
        except OSError:
            return ()
        return tuple(sorted(entries, key=_natural))

    def link(self, name: str) -> str | None:
        """The last part of what a symbolic link points to."""
        try:
            return self.path(name).readlink().name
        except OSError:
            return None

    def resolve(self, name: str) -> Path | None:
        """Where a chain of symbolic links ends, if it ends somewhere."""
        try:
            return self.path(name).resolve(strict=True)
        except (OSError, RuntimeError):
            return None


def integer(text: str | None) -> int | None:
    """The whole number that ``text`` is, or ``None``."""
    if text is None or not re.fullmatch(r"[+-]?\d{1,30}", text.strip()):
        return None
    return int(text)


def core_list(text: str | None) -> tuple[int, ...] | None:
    """Cores of the kernel's list format, ``0-3,8`` (cpuset(7)); an empty list is ``()``, a malformed one ``None``."""
    if text is None:
        return None
    cores: list[int] = []
    for part in text.strip().split(","):
        if not part:
            continue
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if match is None:
            return None
        first = int(match[1])
        cores.extend(range(first, int(match[2] or first) + 1))
    return tuple(sorted(set(cores)))


def kibibytes(text: str | None) -> int | None:
    """Bytes of ``107520K``, ``2M`` or ``8192 kB``."""
    match = re.fullmatch(r"(\d{1,20})\s*([KMG]?)(?:i?B)?", (text or "").strip(), re.IGNORECASE)
    if match is None:
        return None
    return int(match[1]) << 10 * " KMG".index(match[2].upper() or " ")


def keyed_lines(text: str | None, separator: str = ":") -> dict[str, str]:
    """``key: value`` lines as a mapping; the first of a repeated key wins."""
    pairs: dict[str, str] = {}
    for line in (text or "").splitlines():
        key, found, value = line.partition(separator)
        if found:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
