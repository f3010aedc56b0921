"""What is going on, on standard error: one live line on a terminal, one line a change elsewhere."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys

from rackscope.cli.output import complain
from rackscope.runs.options import Progress
from rackscope.units import format_count, format_duration

_BAR_WIDTH = 24


class ProgressLine:
    """A callback for runs and calibration; also a context manager that leaves the terminal clean."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "") and not quiet
        self._quiet = quiet
        self._last_activity = ""
        self._drawn = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.clear()

    def __call__(self, progress: Progress) -> None:
        if self._live:
            self._draw(progress)
        else:
            self._announce(progress.activity)
        self._last_activity = progress.activity

    def say(self, activity: str) -> None:
        """A step without figures."""
        if self._live:
            self._write(activity)
        else:
            self._announce(activity)
        self._last_activity = activity

    def _announce(self, activity: str) -> None:
        if not self._quiet and activity != self._last_activity:
            complain(activity)

    def _draw(self, progress: Progress) -> None:
        parts = [progress.activity]
        if progress.fraction is not None:
            filled = round(progress.fraction * _BAR_WIDTH)
            parts.append("━" * filled + "╌" * (_BAR_WIDTH - filled))
        if progress.throughput_operations_per_second is not None:
            parts.append(f"{format_count(progress.throughput_operations_per_second)} operations/s")
        p99 = progress.response_p99_seconds
        if p99 is not None and not math.isnan(p99):
            parts.append(f"p99 {format_duration(p99)}")
        self._write("  ".join(parts))

    def _write(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._send(f"\r\x1b[2K{text[:width]}")
        self._drawn = True

    def clear(self) -> None:
        """Leave the terminal's line as it was."""
        if self._drawn:
            self._send("\r\x1b[2K")
            self._drawn = False

    @staticmethod
    def _send(text: str) -> None:
        # A terminal that went away must not end a run.
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()
