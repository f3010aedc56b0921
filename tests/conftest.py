"""What tests share: the command as a user starts it, and waiting with a deadline instead of sleeping."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rackscope.systems.base import Endpoint

pytest_plugins = ["suites"]
# Before numpy is loaded: on a busy machine, threads of the linear algebra wait for each other most of the time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
REPOSITORY = Path(__file__).parent.parent


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Poll until ``condition`` holds; fails the test, saying what never came, at the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"still waiting after {seconds} s for: {what}")
        time.sleep(0.02)


def interrupt_study(running: subprocess.Popen[str], condition: Callable[[], bool], what: str) -> None:
    """Ctrl-C once ``condition`` holds or the study has ended; it must end as one that was interrupted, and say so."""
    try:
        wait_until(lambda: condition() or running.poll() is not None, what, seconds=240)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert json.loads(output)["status"] == "interrupted"


def process_exists(pid: int) -> bool:
    """Whether ``pid`` runs; a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_imports_nothing_heavy(program: str) -> None:
    """Of what listing and help can do without, as it takes long to import, ``program`` imports nothing."""
    look = (
        "heavy = {'polars', 'numpy', 'scipy', 'pydantic', 'rich', 'jinja2'} & set(sys.modules)\nassert not heavy, heavy"
    )
    command = [sys.executable, "-c", f"import sys\n{program}\n{look}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


class Rackscope:
    """The command line in a folder of the test's own.

    A call runs the command in this process, as its start and imports take longer than most commands; ``process`` is
    for tests that are about the process, ``start`` for those that look at it or signal it while it runs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "rackscope", *arguments]

    def own_environment(self) -> dict[str, str]:
        return {"XDG_DATA_HOME": str(self.folder / "data"), "COLUMNS": "200"}

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.own_environment()}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        from rackscope.cli import main

        output, errors = _Printed(), _Printed()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        usable = os.sched_getaffinity(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in self.own_environment().items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["rackscope", *arguments])
            patch.setattr(sys, "stdout", output)
            patch.setattr(sys, "stderr", errors)
            try:
                status = main(arguments)
            except SystemExit as ended:
                status = int(ended.code or 0)
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        assert os.sched_getaffinity(0) == usable, "the command left this process on other cores"
        return subprocess.CompletedProcess(arguments, status, output.text(), errors.text())

    def process(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


class _Printed(io.TextIOWrapper):
    """What a command prints, where it may be a file's: encoded, and read afterwards."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        written = self.buffer
        assert isinstance(written, io.BytesIO)
        return written.getvalue().decode("utf-8")


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C as Python has it, even where the tests were started with SIGINT ignored (a background job of a shell)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rackscope(tmp_path: Path) -> Rackscope:
    """``rackscope(...)`` runs the command in an empty folder."""
    return Rackscope(tmp_path)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The directory of one short run of the cache engine, made once; a test that changes it takes a copy."""
    folder = tmp_path_factory.getbasetemp()
    # Workers have folders of their own in the one of all.
    folder = (folder.parent if hasattr(request.config, "workerinput") else folder) / "finished"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "run/report.html").exists():
            options = ("--duration", "0.5s", "--warm-up", "0.3s", "--repeat", "3", "--set", "keys=2000")
            ended = Rackscope(folder)("run", "cache", "ycsb-c", *options, "--out", "run")
            assert ended.returncode == 0, ended.stderr
    return folder / "run"


@pytest.fixture(scope="module", params=["cache", "cache-of-two-threads", "memcached"])
def cache_endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The cache engine, and memcached to compare with: what fails on both is the client's doing or the test's."""
    from systems_started import started

    name, _, threads = request.param.partition("-of-")
    settings = {"threads": "2"} if threads else {}
    with started(name, tmp_path_factory.mktemp("logs"), **settings) as running:
        yield running.endpoint
