"""Watts of later years: levels that walk, intervals from forecasts, what is refused, memory that a table cut off."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rackscope.cli import main
from rackscope.errors import ModelError
from rackscope.models.trained import find_model
from rackscope.models.trained.ask import TrainedModel, train
from rackscope.models.trained.conformal import calibrate
from rackscope.models.trained.grouped_regression import GroupedRegression, Scales, fit_grouped_regression
from rackscope.models.trained.validation import judge
from trained_model_tables import SERVER, power_table

TABLE = "specpower-servers"


def walking(
    seed: int, years: int = 16, step: float = 0.15
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features (year, one more), logarithm of watts, processors, years, and the level of each year: a random walk."""
    random = np.random.default_rng(seed)
    level = np.cumsum(random.normal(0, step, years))
    year = np.repeat(np.arange(years), 16)
    groups = np.array([f"g{row // 4}" for row in range(len(year))])
    other = random.normal(size=len(year))
    target = level[year] + 0.3 * other + np.repeat(random.normal(0, 0.05, len(year) // 4), 4)
    target += 0.05 * random.normal(size=len(year))
    features = np.column_stack([2007.0 + year, other])
    return features, target, groups, 2007.0 + year, level


def test_past_the_last_year_the_last_level_goes_on_and_is_less_and_less_certain() -> None:
    features, target, groups, _, level = walking(3, step=0.4)
    fitted = fit_grouped_regression(features, target, groups, drifting=0)
    ahead = np.column_stack([2022.0 + np.array([0.0, 1.0, 4.0, 16.0]), np.zeros(4)])
    estimate, deviation = fitted.predict(ahead)
    assert estimate == pytest.approx(level[-1], abs=0.15)
    assert abs(level[-1] - level.mean()) > 0.3, "a return to the mean would not be told from the last level"
    assert (np.diff(deviation) > 0).all()
    # A walk's variance grows with time: sixteen years ahead it is most of all there is.
    assert deviation[3] > 2 * deviation[1]


def test_leaving_a_group_out_is_what_fitting_without_it_gives_where_makers_walk() -> None:
    random = np.random.default_rng(7)
    features, target, groups, _, _ = walking(7, years=10, step=0.2)
    maker = np.repeat(random.integers(0, 2, len(groups) // 4), 4).astype(float)
    features = np.column_stack([features, maker])
    target = target + np.where(maker == 1.0, 0.1, -0.1) * (features[:, 0] - 2007.0)
    fitted = fit_grouped_regression(features, target, groups, drifting=0, apart=2)
    left = fitted.leave_out(features, target, groups)
    for name in ("g3", "g20", "g39"):
        gone = groups == name
        rest = fit_grouped_regression(
            features[~gone], target[~gone], groups[~gone], drifting=0, apart=2, scales=fitted.scales
        )
        estimate, deviation = rest.predict(features[gone])
        # Not to the last digit: scaling and the weights of odd rows are found anew.
        np.testing.assert_allclose(target[gone] - left.residual[gone], estimate, atol=0.05)
        np.testing.assert_allclose(left.deviation[gone], deviation, rtol=0.15)


def test_each_maker_goes_its_own_way() -> None:
    random = np.random.default_rng(5)
    year, maker = np.repeat(np.arange(12.0), 12), np.tile([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], 24)
    # They part in the last third.
    target = np.where(maker == 1.0, 0.2, -0.2) * np.maximum(year - 7.0, 0.0) + 0.03 * random.normal(size=144)
    features = np.column_stack([year, maker, random.normal(size=144)])
    groups = np.array([f"g{row // 3}" for row in range(144)])

    def fit(apart: int | None) -> GroupedRegression:
        return fit_grouped_regression(features, target, groups, drifting=0, apart=apart)

    new = np.array([[12.0, 0.0, 0.0], [12.0, 1.0, 0.0]])
    estimate, _ = fit(1).predict(new)
    assert estimate == pytest.approx([-0.8, 0.8], abs=0.15)
    alike = Scales(linear=-7.0, smooth=-7.0, smooth_length=0.0, group=-4.0, noise=-6.0, walk=-7.0, apart_walk=-1.0)
    only_walks = fit_grouped_regression(features, target, groups, drifting=0, apart=1, scales=alike)
    assert only_walks.predict(new)[0] == pytest.approx([-0.8, 0.8], abs=0.15)


def test_what_matters_more_moves_the_ends() -> None:
    scores, groups = np.concatenate([np.linspace(-1, 1, 100), np.linspace(-3, 3, 100)]), np.arange(200).astype(str)
    recent = np.where(np.arange(200) < 100, 1.0, 0.01)
    narrow, even = calibrate(scores, groups, importance=recent), calibrate(scores, groups)
    assert narrow.above < 1.2 < 2.0 < even.above
    assert narrow.below > -1.2 > -2.0 > even.below


@cache
def _trained(name: str) -> TrainedModel:
    return train(name, {TABLE: power_table()})


def test_idle_watts_of_a_described_server() -> None:
    (answer,) = _trained("idle-watts").predict(SERVER).values()
    assert answer.low < 2 * (40 + 6 * 8 + 0.3 * 16) / 4 < answer.high


def test_memory_cut_off_at_the_comma_is_a_thousand_times_as_much() -> None:
    """SPEC's list as a table gives 1 GB for the 1,536 GB of twelve nodes' chips."""
    model, table = find_model("idle-watts"), power_table()
    blades = table.head(1).with_columns(
        pl.lit(24).alias("Chips"),
        pl.lit(960).alias("# Cores"),
        pl.lit(1).cast(pl.Int64).alias("Total Memory (GB)"),
    )
    examples = model.examples({TABLE: pl.concat([blades, table], how="vertical_relaxed")})
    memory = np.exp(examples.features[:, examples.columns.index("GB a chip")])
    assert 1000 <= 24 * memory[0] <= 2000
    assert memory[1:] == pytest.approx((table["Total Memory (GB)"] / table["Chips"]).to_numpy())
    # Of one server it is asked: whoever says 1 GB for 16 cores may have meant anything.
    with pytest.raises(ModelError, match=r"GB a chip is 0\.5, far outside"):
        _trained("idle-watts").predict({**SERVER, "memory_gb": 1})


def _with_odd_server(processors: int) -> pl.DataFrame:
    """Other servers, and one of 384 small chips of which nobody says the thermal design power."""
    table = power_table(processors=processors, seed=5)
    odd = table.head(1).with_columns(
        pl.lit(384).cast(pl.Int64).alias("Chips"),
        pl.lit(384).cast(pl.Int64).alias("# Cores"),
        pl.lit(256).cast(pl.Int64).alias("Total Memory (GB)"),
        pl.lit(None).cast(pl.Int64).alias("Thermal Design Power (W)"),
    )
    return pl.concat([table, odd], how="vertical_relaxed")


def test_what_a_user_would_be_refused_is_counted_apart() -> None:
    model = find_model("full-load-watts")
    fit_on, other = (model.examples({TABLE: table}) for table in (power_table(), _with_odd_server(10)))
    everything = next(
        score for score in judge(model, fit_on, other, _trained("full-load-watts").fitted) if score.what == "all"
    )
    assert (everything.predictions, everything.refused) == (20, 1)
    assert everything.median_error < 0.1 and everything.p90_error < 0.3
    alone = other.take(np.arange(len(other)) == len(other) - 1)
    only = judge(model, fit_on, alone, _trained("full-load-watts").fitted)[0]
    assert (only.predictions, only.refused) == (0, 1)
    assert not only.reaches_aims
    assert only.to_dict()["median_error"] is None and json.loads(json.dumps(only.to_dict()))["coverage"] is None


def test_the_tables_show_how_many_were_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, table in (("fit", power_table()), ("on", _with_odd_server(10))):
        (tmp_path / folder).mkdir()
        table.write_csv(tmp_path / folder / "specpower-servers.csv")
    arguments = ["models", "validate", "--fit", str(tmp_path / "fit"), "--on", str(tmp_path / "on")]
    arguments += ["--only", "full-load-watts"]
    assert main([*arguments, "--markdown"]) == 0
    assert "| 20 + 1 refused |" in capsys.readouterr().out
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "1 refused" in printed and "a user gets no number" in " ".join(printed.split())
