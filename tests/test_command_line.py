"""Mistakes on the command line: one clear line that says what to do, a non-zero exit, never a traceback."""

from __future__ import annotations

import socket

import pytest

from conftest import Rackscope


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
        (("run", "cache", "ycsb-b", "--rate", "-5"), "rate"),
        (("run", "cache", "ycsb-b", "--cores", "4096"), "core 4096"),
        (("run", "cache", "ycsb-b", "--client-cores", "x"), "not a list of cores"),
        (("run", "cache", "ycsb-b", "--connections", "0"), "connections"),
        (("run", "cache", "ycsb-e"), "scan"),
        (("run", "cache", "redis-stages"), "lpush"),
        (("run", "cache"), "needs a system and a workload"),
        (("report", "nowhere"), "not a folder"),
        (("compare", ".", "."), "not a run directory"),
        (("get", "nosuchsystem"), "nosuchsystem"),
        (("serve", "nosuchsystem"), "nosuchsystem"),
    ],
)
def test_a_mistake_is_one_clear_line(rackscope: Rackscope, arguments: tuple[str, ...], words: str) -> None:
    ended = rackscope(*arguments)
    assert ended.returncode not in (0, 70)
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    complaint = [line for line in ended.stderr.splitlines() if line.startswith("rackscope") and "error" not in line]
    assert len(ended.stderr.splitlines()) <= 6, ended.stderr
    assert complaint or "error:" in ended.stderr
    assert not (rackscope.folder / "runs").exists()


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


def test_help_does_not_pay_for_frames_or_numerics(rackscope: Rackscope) -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom rackscope.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'polars', 'numpy', 'scipy', 'pydantic', 'rich', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


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
    import signal

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
