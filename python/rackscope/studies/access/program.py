"""``rackscope-access`` as a study sees it: stores to fill and measurements to ask for, one after the other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from rackscope.errors import StudyError
from rackscope.studies.access.plan import Setting
from rackscope.systems.process import find_companion

_Told = TypeVar("_Told", "Filled", "Measured")
_PROGRAM = "rackscope-access"
_LOG_TAIL_BYTES = 2000
#: A key and a value.
_ITEM_BYTES = 16
#: For a measurement that is under way to be over, and the memory of all stores to be given back.
_END_SECONDS = 10.0


@dataclass(frozen=True)
class Filled:
    """A store. ``log_bytes`` is the length of each partition's log, ``index_bytes`` the size of all indexes (None of a
    structure without partitions), ``huge_page_bytes`` what came in huge pages (None where the kernel does not tell),
    ``overhead_bytes`` what an item takes beside its key and value, index included."""

    partitions: int | None
    log_bytes: int | None
    index_bytes: int | None
    huge_page_bytes: int | None
    items: int
    lost: int
    overhead_bytes: float | None

    @property
    def huge_page_ratio(self) -> float | None:
        """The part of what the items take that is in huge pages; memory around them counts too, so at most 1."""
        if self.huge_page_bytes is None or self.overhead_bytes is None:
            return None
        taken = (self.items - self.lost) * (_ITEM_BYTES + self.overhead_bytes)
        return min(1.0, self.huge_page_bytes / taken) if taken else None


@dataclass(frozen=True)
class Measured:
    """One measurement. ``operations`` are each core's; ``shares`` what part of all requests falls to its partition,
    where partitions belong to cores. ``unsettled`` lookups would have to ask the owner."""

    seconds: float
    cpu_seconds: float
    operations: Sequence[int]
    unsettled: int
    #: ``None`` where partitions belong to no core.
    shares: Sequence[float] | None = None

    @property
    def rate(self) -> float:
        """Operations a second of all cores at full speed."""
        return sum(self.operations) / self.seconds


@dataclass
class Program:
    """The program, asked line by line."""

    process: subprocess.Popen[str]
    log: Path

    def fill(self, access: str, cores: int, partitions: int) -> Filled:
        """Make a store of this access mode, or structure, for so many cores. Raises StudyError."""
        return self._ask("fill", Filled, access=access.lower(), cores=cores, partitions=partitions)

    def measure(self, access: str, setting: Setting, seconds: float) -> Measured:
        """Measure a store that was filled. Raises StudyError."""
        return self._ask("measure", Measured, access=access.lower(), seconds=seconds, **asdict(setting))

    def _ask(self, what: str, kind: type[_Told], **asked: Any) -> _Told:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({what: asked}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise self._death()
        reply = json.loads(line)
        if "error" in reply:
            raise StudyError(f"{_PROGRAM} cannot {what} what was asked for: {reply['error']}", f"See {self.log}.")
        told = next(iter(reply.values()))
        return kind(**{one.name: told[one.name] for one in fields(kind)})

    def _death(self) -> StudyError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_SECONDS)
        status = self.process.returncode
        how = f"killed by signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        try:
            said = self.log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL_BYTES:].strip()
        except OSError:
            said = ""
        words = f"; it said: {' | '.join(said.splitlines()[-3:])}" if said else ""
        return StudyError(f"{_PROGRAM} ended while it measured ({how}){words}", "Try fewer --items.")


@contextlib.contextmanager
def program(items: int, log: Path, with_peers: bool = False) -> Iterator[Program]:
    """The program with stores of ``items`` items; gone when the block ends. Raises SystemUnderTestError, StudyError.

    Structures by others take their memory from the C library, which is to ask for huge pages as partitions do.

    Its end of a pipe that is closed ends it, too, however this process ends.
    """
    command = [str(find_companion(_PROGRAM)), "--json", "--items", str(items)]
    environment = {**os.environ, **({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if with_peers else {})}
    with log.open("wb") as errors:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
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
