"""A program under the keeper, from Python: it starts or says why, it ends whole, and it never outlives rackscope."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import process_exists, wait_until
from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems import ports
from rackscope.systems.ports import choose_port, is_free, make_socket_folder, require_free
from rackscope.systems.process import Command, KeptProcess


@contextlib.contextmanager
def kept(folder: Path, script: str, **options: object) -> Iterator[KeptProcess]:
    command = Command("thing", Path("/bin/sh"), ["-c", script], folder, folder / "thing.log", **options)  # type: ignore[arg-type]
    process = KeptProcess(command)
    try:
        yield process
    finally:
        process.stop()


def processes_in(folder: Path) -> list[int]:
    """Processes whose command line names the folder: the keepers of a command that runs there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in entry.read_bytes() and process_exists(int(entry.parent.name)):
                found.append(int(entry.parent.name))
    return found


def test_pid_is_the_programs_own_and_stop_leaves_nothing(tmp_path: Path):
    with kept(tmp_path, "echo I am $$; (sleep 1000 &); sleep 1000") as process:
        wait_until(lambda: process.log_tail() != "", "the first line")
        assert process.log_tail() == f"I am {process.pid}"
        assert process.exit_reason() is None
        assert len(processes_in(tmp_path)) == 2
        process.stop()
        assert not process_exists(process.pid)
        assert processes_in(tmp_path) == []
        process.stop()
    assert process.exit_reason() == "killed by SIGTERM"


def test_a_death_tells_how_and_the_last_words(tmp_path: Path):
    script = "for i in 1 2 3 4 5 6 7; do echo line $i; done; printf 'odd \\001 byte\\n' >&2; exit 3"
    with kept(tmp_path, script) as process:
        wait_until(lambda: process.exit_reason() is not None, "the end")
        error = process.death("while starting")
    assert error.what == "thing ended while starting (exit status 3); it said: line 6 | line 7 | odd byte"
    assert str(process.log) in error.advice
    with kept(tmp_path / "quiet", "kill -9 $$") as process:
        wait_until(lambda: process.exit_reason() is not None, "the end")
        assert process.death("x").what == "thing ended x (killed by SIGKILL) and said nothing"


def test_what_cannot_be_started_says_why_in_one_line(tmp_path: Path):
    for program, reason in (("/nowhere/thing", "No such file or directory"), ("/etc/passwd", "Permission denied")):
        with pytest.raises(SystemUnderTestError) as caught:
            KeptProcess(Command("thing", Path(program), [], tmp_path, tmp_path / "log"))
        assert f"thing could not be started: cannot start {program}: {reason}" in str(caught.value)
    with pytest.raises(SystemUnderTestError, match="core 1023 cannot be used here"):
        KeptProcess(Command("thing", Path("/bin/true"), [], tmp_path, tmp_path / "log", cores=[1023]))
    assert processes_in(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemUnderTestError, match=r"thing could not be started: .*file/below"):
        KeptProcess(Command("thing", Path("/bin/true"), [], tmp_path / "file/below", tmp_path / "log"))


def test_the_environment_holds_what_was_given_and_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    with kept(tmp_path, "env", environment={"GIVEN": "yes"}) as process:
        wait_until(lambda: process.exit_reason() is not None, "the end")
    text = process.log.read_text()
    assert "GIVEN=yes" in text
    assert "SECRET_TOKEN" not in text


PARENT = """
import sys, threading
from pathlib import Path
from rackscope.systems.process import Command, KeptProcess
folder = Path(sys.argv[1])
script = 'trap "" TERM; (setsid sleep 1000 &); sleep 1000; sleep 1000'
scratch = folder / "scratch"
scratch.mkdir()
def start():
    global process
    process = KeptProcess(Command("thing", Path("/bin/sh"), ["-c", script], folder, folder / "log", scratch=[scratch]))
# Threads come and go in a program that embeds rackscope: the system lives as long as the process.
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("whole_group", [False, True])
def test_kill_9_of_rackscope_leaves_nothing(tmp_path: Path, whole_group: bool):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert process_exists(pid)
        if whole_group:
            os.killpg(parent.pid, signal.SIGKILL)
        else:
            parent.kill()
    wait_until(lambda: not process_exists(pid), "the program to be gone")
    wait_until(lambda: processes_in(tmp_path) == [], "the keepers to be gone")
    assert not (tmp_path / "scratch").exists()


def test_a_killed_keeper_is_noticed_and_leaves_nothing(tmp_path: Path):
    with kept(tmp_path, "(setsid sleep 1000 &); sleep 1000") as process:
        outer = min(processes_in(tmp_path))
        os.kill(outer, signal.SIGKILL)
        wait_until(lambda: process.exit_reason() is not None, "the keeper's end to be noticed")
        assert process.exit_reason() == "its keeper was killed by SIGKILL"
        process.stop()
        assert not process_exists(process.pid)
        assert processes_in(tmp_path) == []


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(SystemUnderTestError, match=f"port {port} on 127.0.0.1 is in use, so thing cannot listen"):
            require_free(port, "thing")
    require_free(choose_port(), "thing")


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_what_is_no_port_is_refused(port: int):
    with pytest.raises(UsageError, match=f"{port} is not a TCP port"):
        require_free(port, "thing")


def test_a_port_that_lingers_from_an_earlier_server_is_free():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = listener.accept()
        served.close()  # the server's side closes first, so it is the one that lingers in TIME_WAIT
        client.close()
    assert is_free(port)


def test_a_socket_path_is_short_enough_whatever_tmpdir_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    long_folder = tmp_path / ("x" * 100)
    long_folder.mkdir()
    monkeypatch.setattr(ports.tempfile, "gettempdir", lambda: str(long_folder))
    folder = make_socket_folder("thing.sock", None)
    try:
        assert len(os.fsencode(folder / "thing.sock")) <= 107
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(long_folder.iterdir()) == []
    finally:
        folder.rmdir()


def test_without_room_for_a_socket_it_says_where_it_looked(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SystemUnderTestError, match=r"no folder for the unix socket .*/tmp: too long"):
        make_socket_folder("s" * 107, None)
