"""What people look after memcached with: the programs of libmemcached, and memcached's own memcached-tool."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rackscope.systems.acquire import acquire_by_name, acquire_tool
from rackscope.systems.base import Endpoint
from rackscope.systems.text_socket import connect
from systems_started import started

NAMES = {f"name-{number}" for number in range(3000)}


def run(command: list[str], environment: dict[str, str], status: int = 0) -> str:
    finished = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.returncode == status, (command, finished.stderr or finished.stdout)
    return finished.stdout


def fill(endpoint: Endpoint) -> None:
    """Store an item under each of the names."""
    with connect(endpoint, 10) as connection:
        sets = "".join(f"set {name} 0 0 {len(name)} noreply\r\n{name}\r\n" for name in NAMES)
        connection.sendall(sets.encode() + b"mn\r\n")
        assert connection.recv(100) == b"MN\r\n"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_programs_of_libmemcached(tmp_path: Path, threads: str):
    tools = acquire_tool("libmemcached-tools", fetch=True)
    (tmp_path / "one").write_text("the first\n")
    (tmp_path / "two").write_text("the second\n")
    files = [str(tmp_path / "one"), str(tmp_path / "two")]
    with started("cache", tmp_path / "logs", threads=threads) as running:

        def ask(name: str, *arguments: str, status: int = 0) -> str:
            program = str(tools.program.with_name(name))
            servers = f"--servers={running.endpoint.host}:{running.endpoint.port}"
            return run([program, servers, *arguments], dict(tools.environment), status)

        ask("memcping")
        for protocol in ([], ["--binary"]):
            ask("memccp", *protocol, *files)
            assert ask("memccat", *protocol, "one", "two").split("\n\n") == ["the first", "the second", ""]
            ask("memcexist", *protocol, "one")
            ask("memcrm", *protocol, "one")
            ask("memcexist", *protocol, "one", status=1)
            assert re.search(r"^\s*limit_maxbytes: 67108864$", ask("memcstat", *protocol), re.MULTILINE)
        ask("memctouch", "--expire=100", "two")
        ask("memcflush")
        fill(running.endpoint)
        # There are no lists of keys, as with memcached -X.
        assert ask("memcdump", status=1) == ""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_memcached_tool(tmp_path: Path, threads: str):
    memcached = acquire_by_name("memcached", fetch=True)
    script = memcached.program.parents[1] / "share/memcached/scripts/memcached-tool"
    if not script.exists() or shutil.which("perl") is None:
        pytest.skip(f"there is no {script} or no perl to run it with")
    with started("cache", tmp_path, threads=threads) as running:

        def ask(*arguments: str) -> str:
            return run(["perl", str(script), f"{running.endpoint.host}:{running.endpoint.port}", *arguments], {})

        fill(running.endpoint)
        # Items lie in a log: there are no classes of them.
        assert ask("display").split()[:5] == ["#", "Item_Size", "Max_age", "Pages", "Count"]
        assert re.search(r"^\s+curr_items\s+3000$", ask("stats"), re.MULTILINE)
        assert re.search(r"^\s+maxbytes\s+67108864$", ask("settings"), re.MULTILINE)
