"""The one file of thresholds: complete, used, with reasons, and clear about what is wrong in it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import rackscope.analysis
from rackscope.analysis.quantities import QUANTITIES, core_set_quantities
from rackscope.analysis.thresholds import packaged_thresholds, parse_thresholds
from rackscope.errors import RackscopeError

ROOM = Path(rackscope.analysis.__file__).parent
NAMES = {quantity.name for quantity in (*QUANTITIES, *core_set_quantities("system", (0,)))}


def test_every_line_has_a_reason() -> None:
    lines = files("rackscope.analysis").joinpath("thresholds.toml").read_text("utf-8").splitlines()
    tables, _, limits = "\n".join(lines).partition("\n[limit]\n")
    starts = re.findall(r"^(.*)\n\[(?:intensity\.|\[saturation)", tables, flags=re.MULTILINE)
    assert len(starts) == len(packaged_thresholds().intensity) + len(packaged_thresholds().saturation)
    values = re.findall(r"^(.*)\n[a-z_.]+ = [0-9.]+$", f"\n{limits}", flags=re.MULTILINE)
    assert len(values) == len(packaged_thresholds().limits)
    assert all(re.match(r"# \S", line) for line in (*starts, *values))


def test_saturation_rules_are_about_quantities_that_exist() -> None:
    rules = packaged_thresholds().saturation
    assert len({rule.name for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.quantity in NAMES, rule.name
        assert rule.resource in packaged_thresholds().intensity, rule.name
        assert rule.only_when is None or rule.only_when["quantity"] in NAMES, rule.name


def test_limits_that_code_asks_for_are_those_that_stand_there() -> None:
    text = "\n".join(path.read_text() for path in ROOM.parent.rglob("*.py"))
    asked = set(re.findall(r'\blimit\(\s*"([a-z_.]+)"', text))
    asked |= set(re.findall(r'"((?:generator|errors|misses|tail)\.[a-z_]+)"', text))
    assert asked == set(packaged_thresholds().limits)


def test_evidence_leads_to_its_line() -> None:
    thresholds = packaged_thresholds()
    assert thresholds.line("intensity.cpu_system.limit") == thresholds.intensity["cpu_system"].limit
    assert thresholds.line("saturation.cpu_steal.some") < thresholds.line("saturation.cpu_steal.strong")
    assert thresholds.line("limit.generator.idle_minimum") == thresholds.limit("generator.idle_minimum")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("near = 0.60", 'near = "much"', r"intensity.dram_bandwidth\] needs a number for 'near'"),
        ("near = 0.60", "near = 0.95", "which is not 0 < near <= limit"),
        ("some = 0.10\nstrong = 0.50", "some = 0.60\nstrong = 0.50", "which is not 0 < some <= strong"),
        ('per = "system_cores"', 'per = "sockets"', "per 'sockets'"),
        ("\ndecides = true", "\ndecide = true", "unexpected keyword argument 'decide'"),
        ("[intensity.network]", "[intensities.network]", "intensities"),
        ("[intensity.network]", "[intensity.network", "is not TOML"),
        ("{value} threads", "many threads", "words without"),
    ],
)
def test_a_mistake_in_the_file_is_named(old: str, new: str, message: str) -> None:
    text = files("rackscope.analysis").joinpath("thresholds.toml").read_text("utf-8")
    assert old in text
    changed = text.replace(old, new, 1)
    with pytest.raises(RackscopeError, match=message):
        parse_thresholds(changed)


def test_an_unknown_limit_is_named() -> None:
    with pytest.raises(RackscopeError, match=r"\[limit\] no\.such"):
        packaged_thresholds().limit("no.such")
