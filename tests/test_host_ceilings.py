"""Ceilings are kept per host, whole or not at all, and read back or refused in one clear line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.host.ceilings import (
    CalibrationError,
    Ceiling,
    Ceilings,
    CounterCheck,
    ceilings_path,
    load_ceilings,
    save_ceilings,
)

IDENTITY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def ceiling(name: str, *samples: float, distrust: str | None = None) -> Ceiling:
    return Ceiling.of(
        name,
        samples or (1.0, 3.0, 2.0),
        "bytes/s",
        measured_at="2026-11-21T18:22:31+00:00",
        method="by hand",
        distrust=distrust,
        detail={"threads": 2, "by_threads": {"1": 1.0, "2": 3.0}},
    )


def ceilings(*found: Ceiling, **others: object) -> Ceilings:
    whole = Ceilings(IDENTITY, "2026-11-21T18:22:31+00:00", quick=False, ceilings=found)
    return replace(whole, **others)  # type: ignore[arg-type]


def test_what_is_kept_is_read_back() -> None:
    kept = ceilings(
        ceiling("dram_read_bytes_per_second"),
        ceiling('disk_sequential_read_bytes_per_second{device="vda"}', distrust="page cache"),
        counters=(CounterCheck("perf_dram_fills_total", "untrusted", "10 % off", 0.1, "2026-11-21T18:22:31+00:00"),),
        missing={"network_bytes_per_second": "no driver tells"},
        notes=("busy",),
    )
    path = save_ceilings(kept)
    assert load_ceilings(IDENTITY) == kept
    assert [entry.name for entry in path.parent.iterdir()] == ["ceilings.json"]


def test_values_name_all_and_untrusted_says_why() -> None:
    kept = ceilings(ceiling("a", 5.0), ceiling("b", 7.0, distrust="too small a buffer"))
    assert kept.values() == {"a": 5.0, "b": 7.0}
    assert kept.untrusted() == {"b": "too small a buffer"}


def test_a_host_that_was_never_calibrated_has_none() -> None:
    assert load_ceilings(IDENTITY) is None


@given(st.lists(st.floats(min_value=1e-9, max_value=1e15), min_size=1, max_size=30))
def test_a_ceiling_is_the_best_of_its_repetitions(samples: list[float]) -> None:
    highest = ceiling("a", *samples)
    assert highest.value == highest.maximum == max(samples)
    assert highest.minimum <= highest.median <= highest.maximum
    assert highest.repetitions == len(samples)
    lowest = Ceiling.of("a", samples, "seconds", measured_at="", method="", lower_is_better=True)
    assert lowest.value == lowest.minimum == min(samples)


@pytest.mark.parametrize("samples", [(0.0,), (math.nan,), (math.inf,), (-1.0,), ()])
def test_what_is_no_measurement_is_no_ceiling(samples: tuple[float, ...]) -> None:
    with pytest.raises(CalibrationError, match="gave no value"):
        Ceiling.of("a", samples, "bytes/s", measured_at="", method="")


def _valid() -> dict[str, object]:
    save_ceilings(ceilings(ceiling("a")))
    content = json.loads(ceilings_path(IDENTITY).read_text())
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda content: content.pop("ceilings"), "damaged"),
        (lambda content: content.update(format_version=99), "newer"),
        (lambda content: content.update(identity="other"), "other"),
        (lambda content: content.update(measured_at=None), "damaged"),
        (lambda content: content["ceilings"][0].update(value="fast"), "damaged"),
        (lambda content: content["ceilings"][0].update(value=-1.0), "greater than 0"),
        (lambda content: content["ceilings"].append(None), "damaged"),
        (lambda content: content.update(counters=[{"status": "maybe"}]), "maybe"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(damage: object, says: str) -> None:
    content = _valid()
    damage(content)  # type: ignore[operator]
    ceilings_path(IDENTITY).write_text(json.dumps(content))
    with pytest.raises(CalibrationError, match=says) as caught:
        load_ceilings(IDENTITY)
    assert "\n" not in str(caught.value)
    assert str(ceilings_path(IDENTITY)) in caught.value.what
    assert "calibrate" in caught.value.advice


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        path = ceilings_path(IDENTITY)
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        with pytest.raises(CalibrationError):
            load_ceilings(IDENTITY)


@given(st.data())
def test_a_truncated_file_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        path = save_ceilings(ceilings(ceiling("a")))
        text = path.read_text()
        path.write_text(text[: data.draw(st.integers(0, len(text) - 1))])
        with pytest.raises(CalibrationError):
            load_ceilings(IDENTITY)


def test_a_folder_that_cannot_be_written_is_one_line(data_home: Path) -> None:
    (data_home / "rackscope").write_text("a file where a folder should be")
    with pytest.raises(CalibrationError, match="could not be kept") as caught:
        save_ceilings(ceilings(ceiling("a")))
    assert "XDG_DATA_HOME" in caught.value.advice


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_ceilings(ceilings(ceiling("a")))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CalibrationError, match="No space left"):
        save_ceilings(ceilings(ceiling("b")))
    found = load_ceilings(IDENTITY)
    assert found is not None
    assert found.values() == {"a": 3.0}
    assert [entry.name for entry in path.parent.iterdir()] == ["ceilings.json"]


def test_a_relative_data_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ceilings_path(IDENTITY) == tmp_path / ".local/share/rackscope/hosts" / IDENTITY / "ceilings.json"


def test_what_was_not_measured_again_is_kept() -> None:
    earlier = ceilings(ceiling("a", 1.0), ceiling("disk", 9.0), missing={"b": "busy", "c": "absent"})
    later = ceilings(ceiling("a", 2.0), ceiling("b", 4.0), missing={"disk": "no fio"}).merged_over(earlier)
    assert later.values() == {"a": 2.0, "b": 4.0, "disk": 9.0}
    assert later.missing == {"c": "absent"}


def test_another_hosts_ceilings_are_not_merged() -> None:
    other = replace(ceilings(ceiling("a")), identity="f" * 16)
    assert ceilings(ceiling("b")).merged_over(other).values().keys() == {"b"}
