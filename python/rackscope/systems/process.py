"""A program under the keeper: started, watched and ended together with everything that it starts."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import subprocess
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import rackscope
from rackscope.errors import SystemUnderTestError
from rackscope.systems.account import Account

KEEPER = "rackscope-keeper"
#: Seconds that a system has between SIGTERM and SIGKILL.
GRACE_SECONDS = 5.0
#: Seconds for the keeper to start a program, and to clean up beyond the grace period.
_START_SECONDS = 20.0
_CLEAN_UP_SECONDS = 20.0
_LOG_TAIL_BYTES = 4096
_LONGEST_LINE = 200


@dataclass(frozen=True)
class Command:
    """What to run and how. ``scratch`` are folders that the keeper removes once everything has ended.

    ``control_groups`` are the folders of groups, and ``network_namespace`` the file of a namespace, that the program is
    in from its first instruction; the keepers stay outside.
    """

    name: str
    program: Path
    arguments: Sequence[str]
    folder: Path
    log: Path
    cores: Sequence[int] = ()
    account: Account | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    open_files: int | None = None
    scratch: Sequence[Path] = ()
    control_groups: Sequence[Path] = ()
    network_namespace: Path | None = None


class KeptProcess:
    """A program that runs under the keeper; ``pid`` is the program's own."""

    def __init__(self, command: Command) -> None:
        """Start it. Raises SystemUnderTestError with the keeper's reason when it cannot be executed."""
        self.command = command
        self.log = command.log
        _check_open_files(command)
        arguments = _keeper_arguments(command)
        self._report, report_end = os.pipe()
        try:
            self._keeper = _spawn(command, arguments, report_end)
        except BaseException:
            os.close(self._report)
            raise
        finally:
            os.close(report_end)
        try:
            self.pid = self._await_start()
        except BaseException:
            self.stop()
            raise

    def exit_reason(self) -> str | None:
        """How it ended, in words; ``None`` while it runs."""
        status = self._keeper.poll()
        if status is None:
            return None
        if status < 0:
            return f"its keeper was killed by {_signal_name(-status)}"
        return f"killed by {_signal_name(status - 128)}" if status > 128 else f"exit status {status}"

    def log_tail(self, lines: int = 3) -> str:
        """The last lines that it printed, shortened, joined by `` | ``; empty when it printed nothing."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                text = file.read().decode("utf-8", errors="replace")
        except OSError:
            return ""
        last = [line for line in text.splitlines() if line.strip()][-lines:]
        # Nothing that a server prints may move the cursor of whoever reads this.
        printable = ("".join(character if character.isprintable() else " " for character in line) for line in last)
        return " | ".join(textwrap.shorten(line, _LONGEST_LINE, placeholder="...") for line in printable)

    def death(self, doing: str) -> SystemUnderTestError:
        """The error to raise when it has ended while ``doing`` ("while starting")."""
        tail = self.log_tail()
        said = f"; it said: {tail}" if tail else " and said nothing"
        return SystemUnderTestError(
            f"{self.command.name} ended {doing} ({self.exit_reason()}){said}", f"Its log is {self.log}."
        )

    def stop(self) -> None:
        """End the whole tree: SIGTERM, a grace period, SIGKILL; idempotent. Raises SystemUnderTestError."""
        if self._report < 0:
            return
        if self._keeper.poll() is None:
            self._keeper.terminate()
        deadline = time.monotonic() + GRACE_SECONDS + _CLEAN_UP_SECONDS
        # Both keepers hold the other end for as long as they live, and they live until the tree is gone.
        ended = _wait_for_end_of_file(self._report, deadline)
        if not ended:
            raise SystemUnderTestError(
                f"{self.command.name} does not end, not even when killed", f"Look at its processes under {self.pid}."
            )
        self._keeper.wait()
        os.close(self._report)
        self._report = -1

    def _await_start(self) -> int:
        line = _read_line(self._report, time.monotonic() + _START_SECONDS)
        word, _, rest = line.partition(" ")
        if word == "started" and rest.isdigit():
            return int(rest)
        reason = rest or self.log_tail(1) or "the keeper did not respond"
        raise SystemUnderTestError(
            f"{self.command.name} could not be started: {reason}",
            f"Run it by hand to see more: {self.command.program}.",
        )


def find_companion(name: str) -> Path:
    """A program that comes with rackscope: beside the package, else on PATH. Raises SystemUnderTestError."""
    beside = Path(rackscope.__file__).parent / "bin" / name
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which(name)
    if found is None:
        raise SystemUnderTestError(
            f"{name} comes with rackscope and is missing from {beside.parent}", "Install rackscope again."
        )
    return Path(found)


def _keeper_arguments(command: Command) -> list[str]:
    arguments = [str(find_companion(KEEPER)), "--parent", str(os.getpid()), "--grace-seconds", str(GRACE_SECONDS)]
    arguments += ["--folder", str(command.folder.absolute())]
    if command.cores:
        arguments += ["--cores", ",".join(map(str, command.cores))]
    if command.account is not None:
        arguments += ["--user", command.account.keeper_option()]
    if command.open_files is not None:
        arguments += ["--limit-nofile", str(command.open_files)]
    for group in command.control_groups:
        arguments += ["--control-group-procs", str(group)]
    if command.network_namespace is not None:
        arguments += ["--network-namespace", str(command.network_namespace)]
    for folder in command.scratch:
        arguments += ["--scratch", str(folder.absolute())]
    return arguments


def _spawn(command: Command, arguments: list[str], report_end: int) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(command.folder.absolute()),
        "LC_ALL": "C.UTF-8",
        **command.environment,
    }
    arguments = [*arguments, "--status-descriptor", str(report_end), "--", str(command.program), *command.arguments]
    try:
        command.folder.mkdir(parents=True, exist_ok=True)
        command.log.parent.mkdir(parents=True, exist_ok=True)
        with command.log.open("ab") as log:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=(report_end,),
            )
    except OSError as error:
        raise SystemUnderTestError(
            f"{command.name} could not be started: {error.strerror}: {error.filename}", "Is the disk full?"
        ) from error


def _check_open_files(command: Command) -> None:
    if command.open_files is None or os.geteuid() == 0:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < command.open_files:
        raise SystemUnderTestError(
            f"{command.name} was asked to hold {command.open_files} files open, and this user may hold {hard}",
            "Ask for fewer connections or open files, or raise the limit ('ulimit -Hn').",
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read_line(descriptor: int, deadline: float) -> str:
    """One line, without its end; what there was of it at the end of file or the deadline."""
    received = b""
    while b"\n" not in received and _readable(descriptor, deadline):
        block = os.read(descriptor, 4096)
        if not block:
            break
        received += block
    return received.partition(b"\n")[0].decode("utf-8", errors="replace")


def _wait_for_end_of_file(descriptor: int, deadline: float) -> bool:
    while _readable(descriptor, deadline):
        if not os.read(descriptor, 4096):
            return True
    return False


def _readable(descriptor: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    remaining = max(0.0, deadline - time.monotonic())
    with contextlib.suppress(InterruptedError):
        return bool(poll.poll(remaining * 1000))
    return False
