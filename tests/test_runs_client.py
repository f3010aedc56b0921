"""The load generator while it is interrupted: it is stopped first, and what it cannot say is no second error."""

from __future__ import annotations

import pytest

from rackscope import _native
from rackscope.errors import LoadError
from rackscope.runs.client import Client
from rackscope.runs.options import Loop
from rackscope.workloads.base import PhasePlan

MEASURE = PhasePlan("measure", "measure", {"read": 1.0}, {"kind": "uniform"})


class FakeLoad:
    """A ``LoadClient`` whose phase ends after two looks; ``result`` is what it says then, or raises."""

    result: object = {"operations": 7}
    refuses: Exception | None = None

    def __init__(self, configuration: str) -> None:
        self.calls: list[str] = []

    def start_phase(self, phase: str) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.calls.append("start")

    def wait(self, seconds: float) -> bool:
        self.calls.append("wait")
        return self.calls.count("wait") > 2

    def poll(self) -> list[dict[str, float]]:
        return [{"timestamp_ns": float(self.calls.count("wait"))}]

    def stop_phase(self) -> None:
        self.calls.append("stop")

    def phase_result(self) -> object:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(_native, "LoadClient", FakeLoad)
    return Client({})


def interrupt(intervals: list[dict[str, float]]) -> None:
    raise KeyboardInterrupt


def test_intervals_are_handed_on_until_after_the_end(client: Client) -> None:
    seen: list[dict[str, float]] = []
    assert client.run_phase(MEASURE, Loop(), 1.0, seen.extend) == {"operations": 7}
    assert [one["timestamp_ns"] for one in seen] == [1.0, 2.0, 3.0]


def test_ctrl_c_stops_the_phase_and_keeps_what_it_had_done(client: Client) -> None:
    with pytest.raises(KeyboardInterrupt):
        client.run_phase(MEASURE, Loop(), None, interrupt)
    generator = client._client
    assert isinstance(generator, FakeLoad)
    assert generator.calls == ["start", "wait", "stop"]
    assert client.partial_result() == {"operations": 7}


@pytest.mark.parametrize("error", [OSError("the server is gone"), RuntimeError("no phase"), ValueError("no number")])
def test_a_client_that_fails_after_ctrl_c_has_nothing_to_say(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(FakeLoad, "result", error)
    with pytest.raises(KeyboardInterrupt):
        client.run_phase(MEASURE, Loop(), None, interrupt)
    assert client.partial_result() is None


@pytest.mark.parametrize("error", [OSError("refused"), RuntimeError("still going on"), ValueError("no such thing")])
def test_a_phase_that_cannot_start_is_named(client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(FakeLoad, "refuses", error)
    with pytest.raises(LoadError, match=f"phase measure could not start: {error}"):
        client.run_phase(MEASURE, Loop(), None, interrupt)


def test_a_generator_that_cannot_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(configuration: str) -> None:
        raise ValueError("no protocol 'x'")

    monkeypatch.setattr(_native, "LoadClient", refuse)
    with pytest.raises(LoadError, match="could not start: no protocol 'x'"):
        Client({})
