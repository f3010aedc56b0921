"""One server or a cluster: the advice follows from files of jobs and studies, names them, and refuses what they do not
say.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackscope.advice.job_evidence import JobEvidence, MemoryNeed, read_job_evidence
from rackscope.advice.scale import _COUNTS, NoWayError, _thinned, advise_scale
from rackscope.advice.scale_types import Job, ScaleAdvice
from rackscope.advice.scale_words import draws_share, spell, spell_between
from rackscope.cli import main
from rackscope.errors import RackscopeError, RunDirectoryError, UsageError
from rackscope.models.catalogue import CatalogueError, parse_catalogue
from rackscope.models.job_points import JobPoint, JobPointsError
from rackscope.models.uncertain import Uncertain
from rackscope.runs.study import StudyRecord, write_study

GIGA = 1e9
CATALOGUE = """
format_version = 1
currency = "USD"
[site]
electricity_price_per_kilowatt_hour = { low = 0.1, high = 0.2 }
power_usage_effectiveness = 1.5
discount_rate_per_year = 0.05
service_years = 4
network_price_per_server = 100
upkeep_share_per_year = 0.05
[[server]]
name = "big"
price = { low = 9000, high = 11000 }
cores = 32
memory_bytes = "256GiB"
full_watts = 600
idle_watts = 250
source = "offer 1"
[[server]]
name = "small"
price = 500
cores = 4
memory_bytes = "16GiB"
full_watts = 50
source = "offer 2"
[[server]]
name = "bigger"
price = 20000
cores = 48
memory_bytes = "512GiB"
full_watts = 900
idle_watts = 350
source = "offer 3"
"""


def big_seconds(size: float, cores: int = 32) -> float:
    return (5 + size / 400e6) * 32 / cores * (1 + 0.01 * (cores - 1)) / (1 + 0.01 * 31)


def small_seconds(machines: int, size: float) -> float:
    return 40 + size / machines / 60e6 + 4 * math.log(machines) + 0.3 * machines


def jobs_csv(*, cores: bool = True) -> str:
    lines = ["server,machines,cores,data_bytes,seconds"]
    for k, size in enumerate((10e9, 20e9, 40e9, 60e9, 80e9, 100e9)):
        wobble = 1 + 0.01 * (-1) ** k
        lines += [f"big,1,32,{size:.0f},{big_seconds(size) * wobble:.3f}"] * 2
    if cores:
        lines += [f"big,1,{count},{40 * GIGA:.0f},{big_seconds(40 * GIGA, count):.3f}" for count in (4, 8, 16)]
    for k, count in enumerate((2, 4, 8, 16, 32)):
        for each in (2e9, 6e9):
            seconds = small_seconds(count, each * count) * (1 + 0.01 * (-1) ** k)
            lines.append(f"small,{count},,{each * count:.0f},{seconds:.3f}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(jobs_csv())
    (tmp_path / "mine.toml").write_text(CATALOGUE)
    return tmp_path


def study(folder: Path, kind: str, result: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    write_study(
        folder,
        StudyRecord(
            rackscope_version="0.1",
            kind=kind,
            title=f"{kind} of redis",
            status="complete",
            started_at="2026-11-21T19:00:00+00:00",
            result=result,
        ),
    )
    return folder


def wall(folder: Path, **others: Any) -> Path:
    limit = 1024**3
    points = [
        {"data_bytes": limit / 8 * 2 ** (k / 2), "seconds_per_byte": 2e-9 * (1 + 0.01 * (k % 2)), "hit_ratio": 1.0}
        for k in range(6)
    ]
    held = {"estimate": limit / 1.25, "low": limit / 1.3, "high": limit / 1.2}
    return study(
        folder,
        "wall",
        {"limit_bytes": limit, "points": points, "held_bytes": held, "misses_begin_bytes": None, **others},
    )


def advised(files: Path, data: float, *more: str, catalogue: str = CATALOGUE, **options: Any) -> ScaleAdvice:
    job = Job(data, options.pop("deadline", None), options.pop("jobs_per_day", None))
    evidence = read_job_evidence([str(files / "jobs.csv"), *more])
    return advise_scale(evidence, parse_catalogue(catalogue, "mine.toml"), job, draws=2000, **options)


def test_the_answer_and_the_size_at_which_it_changes(files: Path) -> None:
    given = advised(files, 20 * GIGA)
    # By time: 5 + D / 400e6 against the best number of small ones.
    sizes = [10e9 * 1.002**k for k in range(1150)]
    ahead = [
        size
        for size in sizes
        if big_seconds(size)
        < min(small_seconds(count, size) for count in range(1, 129) if size / count <= 6e9 * (1 + 1e-9))
    ]
    change = next(one for one in given.changes if one.what == "time")
    assert change.at is not None
    assert change.at.value == pytest.approx(max(ahead), rel=0.05)
    assert change.at.low < change.at.value < change.at.high
    fastest = max(given.rows, key=lambda row: row.fastest)
    assert fastest.server == "big"
    assert max(advised(files, 80 * GIGA).rows, key=lambda row: row.fastest).server == "small"


def test_every_sentence_names_what_it_stands_on(files: Path) -> None:
    given = advised(files, 80 * GIGA, str(wall(files / "wall-1")))
    walls = [one for one in given.advice if "The wall of" in one.sentence]
    assert len(walls) == 2
    assert all(one.changes_if and one.stands_on for one in given.advice)
    for one in given.advice[:2]:
        assert "jobs.csv" in one.stands_on
        assert "data_size" in one.stands_on or "cluster_size" in one.stands_on
        assert one.changes_if
    assert "offer 1" in given.advice[0].stands_on
    assert "mine.toml [site]" in given.advice[0].stands_on
    assert all("wall-1" in one.stands_on for one in walls)


def test_past_its_wall_one_server_is_not_counted_on(files: Path) -> None:
    need = str(wall(files / "wall-1"))
    given = advised(files, 210 * GIGA, need)
    assert {row.server for row in given.rows} == {"small"}
    assert "past the wall of big" in given.refused[0]
    assert any("only clusters of small are known to do the job" in one.changes_if for one in given.advice)
    placed = next(one.wall for one in given.walls if one.server == "big")
    assert placed.bytes == pytest.approx(0.95 * 256 * 1024**3 / 1.25, rel=0.02)
    # Between what was measured and the wall it is projected, and said to be.
    before = advised(files, 150 * GIGA, need)
    assert next(row for row in before.rows if row.server == "big").seconds.extrapolated
    with pytest.raises(NoWayError, match="no way is known to do"):
        advised(files, 2000 * GIGA, need)


def test_more_of_the_same_is_projected_over_cores(files: Path) -> None:
    given = advised(files, 80 * GIGA, like={"bigger": "big"})
    seconds = {row.server: row.seconds for row in given.rows}
    assert seconds["bigger"].value == pytest.approx(big_seconds(80 * GIGA, 48), rel=0.05)
    assert "core_scaling" in next(row for row in given.rows if row.server == "bigger").stands_on
    for like, said in (
        ({"big": "small"}, "was measured itself|not measured alone"),
        ({"bigger": "small"}, "not measured alone"),
        ({"nobody": "big"}, "no server 'nobody'"),
    ):
        with pytest.raises(RackscopeError, match=said):
            advised(files, 80 * GIGA, like=like)
    with pytest.raises(UsageError, match=r"cores is missing"):
        advised(files, 80 * GIGA, catalogue=CATALOGUE.replace("cores = 48\n", ""), like={"bigger": "big"})


def test_a_sweep_over_threads_says_what_cores_give(files: Path) -> None:
    cells = [
        {
            "levels": {"threads": str(one)},
            "throughput_operations_per_second": {"estimate": one / (1 + 0.01 * (one - 1))},
        }
        for one in (4, 8, 16, 32)
    ]
    (files / "jobs.csv").write_text(jobs_csv(cores=False))
    folder = study(files / "sweep-1", "sweep", {"cells": cells})
    given = advised(files, 80 * GIGA, f"big={folder}", like={"bigger": "big"})
    row = next(row for row in given.rows if row.server == "bigger")
    assert "sweep-1" in row.stands_on
    assert row.seconds.value == pytest.approx(big_seconds(80 * GIGA, 48), rel=0.05)
    assert any("1 x bigger" in one for one in advised(files, 80 * GIGA, like={"bigger": "big"}).refused)
    with pytest.raises(UsageError, match="which server"):
        read_job_evidence([str(folder)])
    with pytest.raises(RackscopeError, match="did not vary how many cores"):
        read_job_evidence([f"big={study(files / 'sweep-2', 'sweep', {'cells': []})}"])


def test_a_deadline_is_met_or_refused(files: Path) -> None:
    free = advised(files, 80 * GIGA)
    slow = max(row.seconds.high for row in free.rows)
    assert {row.in_time for row in free.rows} == {None}
    tight = advised(files, 80 * GIGA, deadline=130.0)
    assert all(row.in_time is not None and row.in_time >= 0.95 for row in tight.rows)
    assert slow > 130
    with pytest.raises(NoWayError, match=r"within 10\.0 s in 95% of the draws: the fastest is \d+ x small"):
        advised(files, 80 * GIGA, deadline=10.0)


@pytest.mark.parametrize(
    ("seconds", "alone", "between"),
    [
        (119.0, "119 s", "119 to 178"),
        (120.0, "2 min", "2 to 3"),
        (7200.0, "2 h", "2 to 3"),
        (172_800.0, "2 d", "2 to 3"),
    ],
)
def test_a_time_is_spelled_in_the_unit_that_reads_best(seconds: float, alone: str, between: str) -> None:
    assert spell(seconds) == alone
    assert spell_between(seconds, seconds, 1.5 * seconds) == between


def test_a_share_of_the_draws_is_said_to_be_all_only_where_it_is() -> None:
    assert draws_share(1.0) == "in all draws"
    assert draws_share(0.973) == "in 97.3 % of the draws"
    assert draws_share(0.0) == "in 0.0 % of the draws"


def test_jobs_a_day_take_groups_and_a_year(files: Path) -> None:
    given = advised(files, 80 * GIGA, jobs_per_day=900)
    big = next(row for row in given.rows if row.server == "big")
    assert (big.groups, big.name) == (3, "3 x big")
    assert given.cost_is == "a year"
    assert big.cost is not None
    assert big.cost.value > 3 * 10000 / 4


def test_the_cheaper_of_two_alike_wins(files: Path) -> None:
    twin = CATALOGUE.replace('name = "bigger"\nprice = 20000', 'name = "twin"\nprice = 8000').replace(
        "full_watts = 900", "full_watts = 600"
    )
    twin = twin.replace("idle_watts = 350", "idle_watts = 250").replace("cores = 48", "cores = 32")
    points = [
        JobPoint(name, 1, size * GIGA, big_seconds(size * GIGA), None, "f")
        for name in ("big", "twin")
        for size in (10, 20, 40, 60, 80)
    ]
    given = advise_scale(JobEvidence(tuple(points)), parse_catalogue(twin, "m.toml"), Job(50 * GIGA), draws=500)
    assert given.rows[0].server == "twin"
    assert given.rows[0].cheapest == 1


def test_without_prices_there_is_time_and_no_cost(files: Path) -> None:
    given = advised(files, 80 * GIGA, catalogue=CATALOGUE.replace("price = 500\n", ""))
    assert all(row.cheapest is None for row in given.rows)
    assert given.left_out == ('mine.toml: server "small".price is missing: there is no cost',)
    assert "fastest" in given.advice[0].sentence
    assert not any("cheap" in one.sentence for one in given.advice)
    no_watts = advised(files, 80 * GIGA, catalogue=CATALOGUE.replace("full_watts = 50\n", ""))
    assert "no full_watts" in no_watts.left_out[0]
    with pytest.raises(CatalogueError, match="is negative"):
        advised(files, 80 * GIGA, catalogue=CATALOGUE.replace("price = 500", "price = -500"))
    with pytest.raises(CatalogueError, match="no server 'small'"):
        advised(files, 80 * GIGA, catalogue=CATALOGUE.replace('name = "small"', 'name = "other"'))


def test_too_few_or_colinear_points_are_refused_in_words(files: Path) -> None:
    catalogue = parse_catalogue(CATALOGUE, "m.toml")
    few = [JobPoint("big", 1, size * GIGA, big_seconds(size * GIGA), None, "f") for size in (10, 20, 40)]
    with pytest.raises(NoWayError, match="3 different sizes, and at least 5 are needed"):
        advise_scale(JobEvidence(tuple(few)), catalogue, Job(30 * GIGA), draws=500)
    colinear = [JobPoint("small", n, 6 * n * GIGA, 100.0 + n, None, "f") for n in (2, 4, 8, 16, 32)]
    with pytest.raises(NoWayError, match="they vary together"):
        advise_scale(JobEvidence(tuple(colinear)), catalogue, Job(30 * GIGA), draws=500)
    with pytest.raises(UsageError, match="no server has a measured time"):
        advise_scale(JobEvidence(memory=(MemoryNeed(None, Uncertain.certain(2), "w"),)), catalogue, Job(1e9))
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(RackscopeError, match="cannot be"):
            Job(wrong)


def test_a_wall_study_is_read_as_jobs_where_it_says_of_which_server(files: Path) -> None:
    folder = wall(files / "wall-1")
    assert read_job_evidence([str(folder)]).points == ()
    evidence = read_job_evidence([f"big={folder}"])
    assert len(evidence.points) == 6
    assert evidence.points[0].seconds == pytest.approx(2e-9 * 1024**3 / 8)
    given = advise_scale(evidence, parse_catalogue(CATALOGUE, "m.toml"), Job(1024**3), draws=500)
    assert given.rows[0].name == "1 x big"
    begins = wall(files / "wall-2", held_bytes=None, misses_begin_bytes=[1024**3 / 4, 1024**3 / 2])
    assert read_job_evidence([str(begins)]).memory[0].per_data_byte == Uncertain.uniform(2.0, 4.0)
    # More data than memory is no gain: the hottest items alone answered.
    skewed = wall(files / "wall-3", held_bytes=None, misses_begin_bytes=[1024**3, 2 * 1024**3])
    assert read_job_evidence([str(skewed)]).memory[0].per_data_byte == Uncertain.uniform(1.0, 1.0)
    for number, damage in enumerate(({"held_bytes": None}, {"limit_bytes": "x"}, {"held_bytes": {"estimate": -1}})):
        with pytest.raises(RackscopeError, match="met no wall"):
            read_job_evidence([str(wall(files / f"damaged-{number}", **damage))])
    with pytest.raises(RackscopeError, match="no size at which all data was held"):
        read_job_evidence([f"big={wall(files / 'no-points', points=[{'data_bytes': 'x'}, 3])}"])


def test_sources_that_say_nothing_are_refused(files: Path) -> None:
    with pytest.raises(UsageError, match="kind 'pressure'"):
        read_job_evidence([str(study(files / "other", "pressure", {}))])
    with pytest.raises(RunDirectoryError, match="not a study directory"):
        read_job_evidence([str(files)])
    with pytest.raises(JobPointsError, match="cannot read"):
        read_job_evidence([str(files / "none.csv")])
    with pytest.raises(UsageError, match="names its servers itself"):
        read_job_evidence([f"big={files / 'jobs.csv'}"])
    (files / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobPointsError, match="not text"):
        read_job_evidence([str(files / "binary.csv")])


def test_the_command_prints_people_and_programs_their_own(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["advise", "scale", str(files / "jobs.csv"), "--catalogue", str(files / "mine.toml"), "--data"]
    assert main([*ask, "75G", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rows"][0]["seconds"]["low"] < content["rows"][0]["seconds"]["high"]
    assert {one["what"] for one in content["changes"]} == {"cost", "time"}
    assert main([*ask, "75G", "--deadline", "1h", "--jobs-per-day", "24"]) == 0
    printed = capsys.readouterr().out
    assert "cheapest that is known" in printed
    assert "modelled" in printed
    assert main([*ask, "75"]) == 1
    capsys.readouterr()
    for wrong, words in ((["-75G"], "'-75G' is not a size"), (["75G", "--most", "0"], "'0' is too few")):
        assert main([*ask, *wrong]) == 2
        assert words in capsys.readouterr().err
    assert main(["advise", "scale", str(files / "jobs.csv"), *ask[2:], "75G"]) == 2
    assert "named twice" in capsys.readouterr().err
    assert main([*ask, "75G", "--like", "bigger"]) == 2
    assert main([*ask, "9000G", "--json"]) == 1
    failed = capsys.readouterr()
    assert "no way is known" in json.loads(failed.out)["error"]


def test_of_many_ways_the_largest_stays() -> None:
    ways: Any = [SimpleNamespace(machines=count) for count in range(1, 201)]
    kept = [way.machines for way in _thinned(ways)]
    assert kept[:8] == list(range(1, 9)) and kept[-1] == 200
    assert len(kept) <= _COUNTS + 1
    assert _thinned(ways[:_COUNTS]) == ways[:_COUNTS]
