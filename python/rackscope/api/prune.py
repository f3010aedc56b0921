"""Clearing old run and study directories, by age or size; nothing else is ever removed, and no link is followed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rackscope.errors import RunDirectoryError, UsageError
from rackscope.runs.directory import MANIFEST, MANIFEST_LIMIT_BYTES
from rackscope.runs.kept import Conducted
from rackscope.runs.study import STUDY, STUDY_LIMIT_BYTES


@dataclass(frozen=True)
class Old:
    """A run or study directory: when it was begun (seconds since the epoch) and what it takes on disk."""

    path: Path
    begun_seconds: float
    size_bytes: int


@dataclass(frozen=True)
class Pruning:
    """What would be removed, the oldest first; what stays; and what was not looked at, with the reason."""

    removed: tuple[Old, ...]
    kept: tuple[Old, ...]
    refused: dict[str, str]

    @property
    def freed_bytes(self) -> int:
        """What removing frees."""
        return sum(one.size_bytes for one in self.removed)


def plan_pruning(
    folder: str | Path,
    *,
    older_than_seconds: float | None = None,
    keep_bytes: int | None = None,
    now_seconds: float | None = None,
) -> Pruning:
    """Look through the run and study directories of ``folder``; nothing is changed.

    Chosen are those begun longer ago than ``older_than_seconds``, and the oldest beyond ``keep_bytes`` together. What
    is still going on stays. Raises UsageError or RunDirectoryError.
    """
    if older_than_seconds is None and keep_bytes is None:
        raise UsageError("nothing says what to remove", "Give --older-than 30d, --keep-bytes 5G or both.")
    found, refused = _look_through(Path(folder))
    now = time.time() if now_seconds is None else now_seconds
    removed: list[Old] = []
    kept: list[Old] = []
    held_bytes = 0
    for one in sorted(found, key=lambda one: one.begun_seconds, reverse=True):
        old = older_than_seconds is not None and one.begun_seconds < now - older_than_seconds
        held_bytes += one.size_bytes
        (removed if old or (keep_bytes is not None and held_bytes > keep_bytes) else kept).append(one)
    return Pruning(tuple(reversed(removed)), tuple(kept), refused)


def carry_out(pruning: Pruning) -> Iterator[Old]:
    """Remove what was chosen, and yield each when it is gone. Raises RunDirectoryError at the first that stays."""
    for one in pruning.removed:
        why = _refusal(one.path)
        if why:
            raise RunDirectoryError(f"{one.path} was not removed: {why}", "Look at it, and run prune again.")
        try:
            # Where the system can (Linux can), this follows no link, not even one that appears meanwhile.
            shutil.rmtree(one.path)
        except OSError as error:
            raise RunDirectoryError(
                f"cannot remove {error.filename or one.path}: {error.strerror}", "Check its permissions."
            ) from error
        yield one


def _look_through(folder: Path) -> tuple[list[Old], dict[str, str]]:
    if folder.is_symlink() or not folder.is_dir():
        raise RunDirectoryError(f"{folder} is not a folder", "Name the folder that holds the run directories.")
    if (folder / MANIFEST).exists() or (folder / STUDY).exists():
        raise RunDirectoryError(
            f"{folder} is itself a run or a study", f"Name the folder that holds it: {folder.absolute().parent}."
        )
    found, refused = [], {}
    try:
        for path in sorted(folder.iterdir()):
            why = _refusal(path)
            if why:
                refused[str(path)] = why
            else:
                found.append(Old(path, _begun_seconds(path), _size_bytes(path)))
    except OSError as error:
        raise RunDirectoryError(f"cannot read {folder}: {error.strerror}", "Check its permissions.") from error
    return found, refused


def _refusal(path: Path) -> str:
    """Why prune leaves this alone; empty when it is a directory of ours that has ended."""
    if path.is_symlink():
        return "it is a link"
    if not path.is_dir():
        return "it is not a folder"
    content = _record(path)
    if content is None:
        return "it is neither a run nor a study directory"
    owner = Conducted.model_construct(**{name: content.get(name) for name in Conducted.model_fields})
    return "it is still going on" if content.get("status") == "running" and owner.is_still_conducted() else ""


def _record(path: Path) -> dict[str, Any] | None:
    """The manifest or the study's record, as far as it takes to know that rackscope wrote it."""
    for name, needed, limit_bytes in (
        (MANIFEST, ("system", "workload", "repetition"), MANIFEST_LIMIT_BYTES),
        (STUDY, ("kind", "members"), STUDY_LIMIT_BYTES),
    ):
        file = path / name
        try:
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit_bytes:
                continue
            content = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        common = ("format_version", "rackscope_version", "started_at", "status")
        if isinstance(content, dict) and all(key in content for key in (*common, *needed)):
            return content
    return None


def _begun_seconds(path: Path) -> float:
    content = _record(path) or {}
    try:
        return datetime.fromisoformat(str(content.get("started_at"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return path.lstat().st_mtime


def _size_bytes(path: Path) -> int:
    """What its files take on disk; links count as themselves."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += (Path(folder) / name).lstat().st_blocks * 512
            except OSError:
                # It went away, or cannot be seen: it counts as nothing.
                continue
    return total
