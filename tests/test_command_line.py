"""Mistakes on the command line: one clear line that says what to do, a non-zero exit, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from conftest import Rackscope, assert_imports_nothing_heavy


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "memcachd", "ycsb-b"), "memcached"),
        (("run", "memcached", "ycsb-z"), "no workload 'ycsb-z'"),
        (("run", "cache", "ycsb-b", "--set", "thread=2"), "Did you mean threads?"),
        (("run", "cache", "ycsb-b", "--set", "threads=many"), "threads"),
        (("run", "cache", "ycsb-b", "--set", "value_size=12q"), "value_size"),
        (("run", "cache", "ycsb-b", "--set", "threads"), "Write it like threads=8"),
        (("run", "cache", "ycsb-b", "--duration", "5 parsecs"), "not a duration"),
        (("run", "cache", "ycsb-b", "--meter", "usb:1"), "invalid power meter"),
        (("study", "slo", "cache", "ycsb-b", "--meter", "file:/run/watts,unit=volts"), "unit=volts"),
        (("run", "cache", "ycsb-b", "--rate", "-5"), "rate"),
        (("run", "cache", "ycsb-b", "--cores", "4096"), "core 4096"),
        (("run", "cache", "ycsb-b", "--client-cores", "x"), "not a list of cores"),
        (("run", "cache", "ycsb-b", "--connections", "0"), "connections"),
        (("run", "cache", "ycsb-e"), "scan"),
        (("run", "cache", "redis-stages"), "lpush"),
        (("run", "cache"), "no system and workload are named"),
        (("report", "nowhere"), "not a folder"),
        (("compare", ".", "."), "not a run directory"),
        (("run", "cache", "ycsb-b", "--connections", "1.5"), "not a whole number"),
        (("run", "cache", "ycsb-b", "--rate", "999999999999999999999"), "Choose --rate between"),
        (("run", "cache", "ycsb-b", "--seed", "-1"), "seed"),
        (("run", "cache", "ycsb-b", "--port", "70000"), "not a TCP port"),
        (("run", "cache", "ycsb-b", "--port", "5000", "--endpoint", "unix"), "unix socket has no port"),
        (("run", "cache", "ycsb-b", "--cores", "0-99999"), "-99999"),
        (("run", "cache", "ycsb-b", "--warm-up", "100h"), "at most a day"),
        (("run", "cache", "ycsb-b", "--repeat", "3", "--budget", "9s"), "not allowed with"),
        (("run", "cache", "ycsb-b", "--set", "keys=2000m"), "are available"),
        (("run", "redis", "ycsb-b", "--set", "save=often", "--no-fetch"), "cannot save at 'often'"),
        (("run", "cache", "ycsb-b", "--out", ""), "invalid path"),
        (("run", "cache", "ycsb-b", "--out", "/proc/nothing/here"), "cannot make the run directory"),
        (("report", "/proc/version"), "not a folder"),
        (("calibrate", "--folder", "nowhere"), "not a folder"),
        (("calibrate", "--only", "everything"), "everything"),
        (("bogus",), "invalid choice"),
        (("get", "nosuchsystem"), "nosuchsystem"),
        (("serve", "nosuchsystem"), "nosuchsystem"),
    ],
)
def test_a_mistake_is_one_clear_line(rackscope: Rackscope, arguments: tuple[str, ...], words: str) -> None:
    ended = rackscope(*arguments)
    assert ended.returncode not in (0, 70)
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    said = [
        line for line in ended.stderr.splitlines() if not line.startswith(("rackscope: finding", "rackscope: look"))
    ]
    assert len(said) == 1 and said[0].startswith("rackscope: "), ended.stderr
    assert not (rackscope.folder / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("bogus",),
        ("run", "cache"),
        ("run", "cache", "ycsb-b", "--rate"),
        ("run", "cache", "ycsb-b", "--port", "0"),
        ("report", "nowhere"),
        ("compare", "nowhere", "nowhere"),
        ("get", "nosuchsystem"),
        ("calibrate", "--only", "everything"),
    ],
)
def test_a_mistake_is_one_json_object_where_that_was_asked_for(
    rackscope: Rackscope, arguments: tuple[str, ...]
) -> None:
    ended = rackscope(*arguments, "--json")
    failure = json.loads(ended.stdout)
    assert failure["status"] == "failed"
    assert failure["error"] and failure["error"] in ended.stderr


def test_output_that_cannot_be_written_is_said_in_one_line(rackscope: Rackscope) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            rackscope.command("run", "--list"),
            env=rackscope.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == "rackscope: cannot write the output: No space left on device. Send it elsewhere.\n"


def test_a_reader_that_goes_away_is_no_error_to_speak_of(rackscope: Rackscope) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        ended = subprocess.run(
            rackscope.command("run", "--list"),
            env=rackscope.environment(),
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize(
    "environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "TERM": "dumb"}, {"COLUMNS": "0"}]
)
def test_every_terminal_shows_something(rackscope: Rackscope, environment: dict[str, str]) -> None:
    ended = subprocess.run(
        rackscope.command("doctor"),
        env={**rackscope.environment(), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode in (0, 1)
    assert "native module: loaded" in ended.stdout
    assert ended.stderr == ""


def test_a_port_in_use_is_named(rackscope: Rackscope) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = rackscope("run", "cache", "ycsb-c", "--port", port, "--repeat", "1")
    assert ended.returncode == 1
    assert port in ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_arguments_greet_and_show_the_next_step(rackscope: Rackscope) -> None:
    ended = rackscope()
    assert ended.returncode == 0
    assert "rackscope run cache ycsb-b" in ended.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["study", "--help"], ["study", "pressure", "--help"]])
def test_help_does_not_pay_for_frames_or_numerics(arguments: list[str]) -> None:
    assert_imports_nothing_heavy(
        "from rackscope.cli import main\n"
        f"try:\n    main({arguments!r})\n    raise RuntimeError('no help was printed')\nexcept SystemExit:\n    pass"
    )


def test_listing_names_every_system_and_workload(rackscope: Rackscope) -> None:
    ended = rackscope("run", "--list")
    assert ended.returncode == 0
    for name in ("cache", "memcached", "redis", "ycsb-a", "ycsb-f", "etc", "redis-stages", "image-preview"):
        assert name in ended.stdout


def test_every_verb_has_help(rackscope: Rackscope) -> None:
    for verb in ("run", "report", "compare", "calibrate", "doctor", "get", "serve"):
        ended = rackscope(verb, "--help")
        assert ended.returncode == 0
        assert f"rackscope {verb}" in ended.stdout


def test_serve_answers_until_it_is_told_to_stop(rackscope: Rackscope) -> None:
    serving = rackscope.start("serve", "cache", "--port", _free_port())
    try:
        assert serving.stdout is not None
        line = serving.stdout.readline()
        assert "ready" in line, line
        host, _, port = line.split(" on ")[1].split(";")[0].partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"version\r\n")
            assert client.recv(100).startswith(b"VERSION")
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=30) == 0
        with pytest.raises(OSError), socket.create_connection((host, int(port)), timeout=1):
            pass
    finally:
        serving.kill()
        serving.communicate()


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])
