"""Clients of memcached in other languages: programs of `tests/clients` that check every answer they get."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY
from rackscope.systems.base import Endpoint

PROGRAMS = REPOSITORY / "tests/clients"
#: Where the distribution of Go asks to be unpacked.
GO_FOLDER = "/usr/local/go/bin"


def find(program: str) -> str:
    """Skips where the language is not on this machine."""
    found = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), GO_FOLDER]))
    if found is None:
        pytest.skip(f"{program} is not on this machine")
    return found


def fetch(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Have the client's library fetched; skips where that cannot be had."""
    fetched = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    if fetched.returncode != 0:
        lines = (fetched.stdout + fetched.stderr).split("\n")
        pytest.skip(f"{' '.join(command[:2])}: {next((line for line in lines if line.strip()), 'failed')}")


def check(command: list[str], endpoint: Endpoint) -> None:
    """Fails with what the program says was wrong."""
    finished = subprocess.run(
        [*command, f"{endpoint.host}:{endpoint.port}"], capture_output=True, text=True, timeout=120, check=False
    )
    said = finished.stdout + finished.stderr
    assert finished.returncode == 0, said
    assert said.endswith("answers were right\n"), said


@pytest.fixture(scope="module")
def gomemcache(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    go = find("go")
    program = tmp_path_factory.mktemp("go") / "client"
    # No other toolchain than the one that is here, and no C; what is not optimised is built sooner.
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    fetch([go, "mod", "download"], PROGRAMS / "go", environment)
    built = subprocess.run(
        [go, "build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", str(program), "."],
        cwd=PROGRAMS / "go",
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return [str(program)]


@pytest.fixture(scope="module")
def memjs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    node, npm = find("node"), find("npm")
    folder = tmp_path_factory.mktemp("node") / "client"
    shutil.copytree(PROGRAMS / "node", folder)
    fetch([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, dict(os.environ))
    return [node, str(folder / "main.js")]


def test_gomemcache(gomemcache: list[str], cache_endpoint: Endpoint):
    check(gomemcache, cache_endpoint)


def test_memjs(memjs: list[str], cache_endpoint: Endpoint):
    check(memjs, cache_endpoint)
