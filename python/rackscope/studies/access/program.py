"""``rackscope-access`` as a study sees it: stores to fill and measurements to ask for, one after the other."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rackscope.errors import StudyError
from rackscope.studies.access.plan import Setting
from rackscope.systems.process import find_companion

_PROGRAM = "rackscope-access"
_LOG_TAIL_BYTES = 2000
#: For a measurement that is under way to be over, and the memory of all stores to be given back.
_END_SECONDS = 10.0


@dataclass(frozen=True)
class Filled:
    """A store. ``overhead_bytes`` is what an item takes beside its key and value, index included."""

    partitions: int
    items: int
    lost: int
    overhead_bytes: float


@dataclass(frozen=True)
class Measured:
    """One measurement. ``operations`` are each core's; ``shares`` what part of all requests falls to its partition,
    where partitions belong to cores. ``unsettled`` lookups would have to ask the owner."""

    seconds: float
    cpu_seconds: float
    operations: tuple[int, ...]
    unsettled: int
    shares: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        """Operations a second of all cores at full speed."""
        return sum(self.operations) / self.seconds


class Bench(Protocol):
    """What measures; tests put another in its place."""

    def fill(self, access: str, cores: int) -> Filled:
        """Make a store of this access mode for so many cores. Raises StudyError."""

    def measure(self, access: str, setting: Setting, seconds: float) -> Measured:
        """Measure a store that was filled. Raises StudyError."""


class Program:
    """The program, asked line by line."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def fill(self, access: str, cores: int) -> Filled:
        filled = self._ask("fill", {"access": access.lower(), "cores": cores})
        return Filled(filled["partitions"], filled["items"], filled["lost"], filled["overhead_bytes"])

    def measure(self, access: str, setting: Setting, seconds: float) -> Measured:
        measured = self._ask(
            "measure",
            {
                "access": access.lower(),
                "cores": setting.cores,
                "theta": setting.theta,
                "writes_percent": setting.writes_percent,
                "seconds": seconds,
            },
        )
        return Measured(
            measured["seconds"],
            measured["cpu_seconds"],
            tuple(measured["operations"]),
            measured["unsettled"],
            tuple(measured["shares"] or ()),
        )

    def _ask(self, what: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({what: asked}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise self._death()
        answer = json.loads(line)
        if "error" in answer:
            raise StudyError(f"{_PROGRAM} cannot {what} what was asked for: {answer['error']}", f"See {self._log}.")
        found: dict[str, Any] = answer[f"{what}ed" if what == "fill" else f"{what}d"]
        return found

    def _death(self) -> StudyError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        status = self._process.returncode
        how = f"killed by signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        try:
            said = self._log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL_BYTES:].strip()
        except OSError:
            said = ""
        words = f"; it said: {' | '.join(said.splitlines()[-3:])}" if said else ""
        return StudyError(f"{_PROGRAM} ended while it measured ({how}){words}", "Try fewer --items.")


@contextlib.contextmanager
def program(items: int, log: Path) -> Iterator[Program]:
    """The program with stores of ``items`` items; gone when the block ends. Raises SystemUnderTestError, StudyError.

    Its end of a pipe that is closed ends it, too, however this process ends.
    """
    command = [str(find_companion(_PROGRAM)), "--json", "--items", str(items)]
    with log.open("wb") as errors:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # A Ctrl-C of the terminal is for this process, which then says what was found.
                start_new_session=True,
            )
        except OSError as error:
            raise StudyError(f"{command[0]} cannot be started: {error.strerror}", "Install rackscope again.") from error
    try:
        yield Program(process, log)
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        process.wait(_END_SECONDS)
        if not log.stat().st_size:
            log.unlink()
