"""The study of the docs: its measuring on a made-up load, and how a file of the user's is found."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from conftest import REPOSITORY, assert_imports_nothing_heavy
from rackscope.cli import main
from rackscope.errors import UsageError
from rackscope.runs.study import StudyRecord
from rackscope.studies import list_studies, load_study
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.windows import Window, window_of

EXAMPLE = REPOSITORY / "docs/examples/headroom.py"


class FakeLoad:
    """A queue with one server of 1000 operations a second: p99 is in proportion to 1 / (1 - load)."""

    def __init__(self) -> None:
        self.rates: list[float] = []

    def closed(self, seconds: float, activity: str) -> Window:
        return self._window(1000.0, seconds, None)

    def open(self, rate_per_second: float, seconds: float, activity: str) -> Window:
        self.rates.append(rate_per_second)
        return self._window(rate_per_second, seconds, 0.004 / (1 - rate_per_second / 1000))

    def _window(self, rate: float, seconds: float, p99: float | None) -> Window:
        row = {
            "duration_seconds": seconds,
            "throughput_operations_per_second": rate,
            "operations": int(rate * seconds),
            "response_p99_seconds": p99,
        }
        return window_of(row, 1)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    study = load_study(EXAMPLE)
    return __import__(study.conduct.__module__)


def test_the_example_measures_every_load_in_every_round_and_says_what_it_found(example: ModuleType) -> None:
    load = FakeLoad()
    found = example.measure(load, 0.1, 6, 42)
    assert sorted(load.rates) == sorted([250.0, 500.0, 750.0, 900.0] * 6)
    assert load.rates[4:8] == load.rates[3::-1]
    record = StudyRecord(rackscope_version="0", kind="headroom", title="headroom", started_at="now")
    example.describe(record, found, Interference(windows=25, kept=2, reasons={"other processes ran"}))
    assert record.findings[0].sentence == "p99 at 90% of the highest throughput is 7.5 times that at 25 %."
    assert "other processes ran in 2 of the 25 windows" in record.findings[1].sentence
    [table] = record.tables
    assert [row[0] for row in table.rows] == ["25%", "50%", "75%", "90%"]
    assert record.charts[0].series[0].y == pytest.approx([0.004 / 0.75, 0.008, 0.016, 0.04])
    assert record.result["p99_seconds"]["0.5"]["estimate"] == pytest.approx(0.008)


@pytest.mark.parametrize(
    ("content", "clear"),
    [(None, "there is no file"), ("x = 1", "defines no STUDY"), ("import nothing_of_that_name", "cannot be loaded")],
)
def test_a_file_that_is_no_study_is_refused(content: str | None, clear: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=clear):
        load_study(file)


def test_the_example_may_be_moved_to_the_built_in_studies_as_it_is() -> None:
    """Those are imported when they are listed, which must not import what is heavy."""
    assert_imports_nothing_heavy(
        f"from pathlib import Path\nfrom rackscope.studies import load_study\nload_study(Path({str(EXAMPLE)!r}))"
    )


def test_an_error_in_a_file_of_the_users_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from rackscope.studies.base import Study\n"
        "def conduct(study):\n"
        "    study.record.findings = [1 / 0]\n"
        "STUDY = Study('mine', 'm', 'm', conduct, subject='none')\n"
    )
    assert main(["study", str(file), "--out", str(tmp_path / "out")]) == 1
    assert f"{file}, line 3: ZeroDivisionError" in capsys.readouterr().err


def test_every_built_in_study_is_listed_once() -> None:
    names = [study.name for study in list_studies()]
    assert names == sorted(set(names))
    assert {"a-a", "access", "colocate", "known-answers", "peers", "pressure", "slo", "sweep", "tune", "wall"} <= {
        *names
    }
