"""What can be asked and what it becomes: every workload's plan, every knob, every parameter at its bounds.

The assertions are what must hold of any of them.
"""

from __future__ import annotations

import contextlib
import math
from importlib.resources import files

import pytest

from rackscope.analysis.thresholds import parse_thresholds
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import parse_catalogue, parse_servers
from rackscope.models.catalogue_text import catalogue_text
from rackscope.studies import list_studies
from rackscope.systems import list_systems
from rackscope.systems.knobs import KnobContext, resolve_knobs
from rackscope.workloads import find_workload, list_workloads, plan
from rackscope.workloads.parameters import COMMON_PARAMETERS, with_defaults
from test_models_cost import GOOD

ALL = frozenset(operation for one in list_workloads() for operation in one.needed_operations())
#: Each parameter with another value than its default.
OTHERS = (
    {"keys": "2k", "key_size": "32", "value_size": "25k", "distribution": "hotspot", "hot_keys": "0.1"},
    {"distribution": "latest", "theta": "0.5", "pipeline": "8", "multiget": "10", "batch": "16", "protocol": "batch"},
    {"distribution": "zipfian-unscrambled", "key_size": "usr", "value_size": "var", "protocol": "memcached_meta"},
    {"flags": "3", "distribution": "sequential", "hot_operations": "0.5"},
)


@pytest.mark.parametrize("name", [one.name for one in list_workloads()])
def test_a_workload_becomes_a_plan(name: str) -> None:
    workload = find_workload(name)
    for settings in ({}, *OTHERS):
        known = {key: value for key, value in settings.items() if key in {one.name for one in workload.parameters}}
        speaks = ("memcached_text", "memcached_meta", "batch")
        made = plan(workload, known, operations=ALL, protocols=speaks, system="made-up")
        assert made.stages and made.workload == name
        assert made.data_bytes is None or made.data_bytes > 0


def test_defaults_of_parameters() -> None:
    assert len(with_defaults()) == len(COMMON_PARAMETERS)


@pytest.mark.parametrize("name", [one.name for one in COMMON_PARAMETERS])
def test_a_parameter_at_its_bounds(name: str) -> None:
    (parameter,) = [one for one in COMMON_PARAMETERS if one.name == name]
    assert parameter.check(parameter.default)
    whole = parameter.kind != "number"
    bounds = [bound for bound in (parameter.minimum, parameter.maximum) if math.isfinite(bound)]
    for bound in bounds if parameter.kind != "choice" else ():
        for beside in (bound - (1 if whole else 1e-3), bound, bound + (1 if whole else 1e-3)):
            text = f"{beside:.0f}" if whole else f"{beside:.12g}"
            with contextlib.suppress(RackscopeError):
                assert parameter.minimum <= float(parameter.check(text)) <= parameter.maximum
    for text in ("", "much", *parameter.choices):
        with contextlib.suppress(RackscopeError):
            assert parameter.check(text)


@pytest.mark.parametrize("name", [one.name for one in list_systems()])
def test_knobs_at_their_bounds(name: str) -> None:
    (system,) = [one for one in list_systems() if one.name == name]
    large = KnobContext(cores=6, memory_available_bytes=20 * 2**30, memory_total_bytes=24 * 2**30)
    small = KnobContext(cores=1, memory_available_bytes=48 * 2**20, memory_total_bytes=64 * 2**20)
    for context in (large, small):
        for tuned in (False, True):
            found = resolve_knobs(system, {}, tuned=tuned, cores=range(context.cores), context=context)
            assert set(found.values) == {knob.name for knob in system.knobs}
    for knob in system.knobs:
        bounds = [bound for bound in (knob.minimum, knob.maximum) if bound is not None]
        beside = [str(bound + step) for bound in bounds for step in (-1, 0, 1)]
        memory = ["50%", "24g", "25g"] if knob.kind == "memory" else []
        for text in (*beside, *memory, *knob.choices, "yes", "off", "cores", "?", "x" * 201):
            with contextlib.suppress(RackscopeError):
                resolve_knobs(system, {knob.name: text}, tuned=True, cores=range(6), context=large)


def test_lines_that_verdicts_are_drawn_at() -> None:
    lines = parse_thresholds(files("rackscope.analysis").joinpath("thresholds.toml").read_text("utf-8"))
    assert {lines.limit(name) for name in lines.limits}
    assert lines.intensity and lines.saturation


def test_what_studies_can_be_asked() -> None:
    for study in list_studies():
        assert study.name and study.help


AMOUNTS = {
    "electricity_price_per_kilowatt_hour = 0.20": ("0", "-0.01", "5", "5.01", "{ low = 0.1, high = 0.3 }", "true"),
    "power_usage_effectiveness = 1.5": ("1", "0.99", "4", "4.01", "{ low = 1.2, mode = 1.1, high = 2 }", "150"),
    "discount_rate_per_year = 0.08": ("0", "1", "1.01", "8", "{ median = 0.1, factor = 2 }"),
    "service_years = 4": ("0.25", "0.24", "30", "31", "{ low = 3 }"),
    "network_price_per_server = 200": ("0", '"200 EUR"', '"200 USD"', '"some"', "1e14"),
    "upkeep_share_per_year = 0.05": ("0", "1", "1.5", '"0.05 EUR"'),
    "price = 1000": ('"1,000.50 EUR"', "{ low = 900, mode = 950, high = 1200 }", "-1", "1e31", "[]"),
    "idle_watts = 30": ("0.1", "0.09", "100", "101", "50001", "{ median = 30, factor = 1.2 }"),
    "full_watts = 100": ("30", "29", "50000", '"100 W"'),
    'memory_bytes = "24GiB"': ('"1MiB"', "1048575", "1048576", '"2EiB"', '"plenty"'),
    "operations_per_second = 100000": ("1e-9", "0", "1e15", "1e16", "{ median = 10, factor = 0.5 }"),
    "watts = 90": ("0.1", "0", "50000", "50001"),
    'workload = "get"': ('""', "3"),
    'name = "small"': ('"large"', '" "'),
    "format_version = 1": ("2", "true"),
    'currency = "EUR"': ('"usd"', '"euro"', "1"),
}


@pytest.mark.parametrize("old", AMOUNTS, ids=[old.partition(" ")[0] for old in AMOUNTS])
def test_a_catalogue_with_an_amount_at_its_bounds(old: str) -> None:
    assert old in GOOD
    for value in AMOUNTS[old]:
        changed = GOOD.replace(old, f"{old.partition(' = ')[0]} = {value}", 1)
        with contextlib.suppress(RackscopeError):
            assert parse_catalogue(changed, "mine.toml").servers


#: Keys that the table above has no line of, in the first server.
ADDED = (
    *(f"cores = {cores}" for cores in (0, 1, 1_000_000, 1_000_001)),
    *(f"year = {year}" for year in (1989, 1990, 2100, 2101)),
    *(f"thermal_design_watts = {watts}" for watts in (0.9, 1, 2000, 2001)),
    *(f"frequency_hertz = {hertz}" for hertz in (9e7, 1e8, 2e10, 3e10)),
    *(f"last_level_cache_bytes = {size}" for size in (2**14 - 1, 2**14, 2**40, 2**40 + 1, '"32MiB"')),
    "cores = 8\nthreads = 7",
    "cores = 8\nthreads = 16\nchips = 2",
    *(f"ceilings = {{ dram_latency_seconds = {seconds} }}" for seconds in ("9e-10", "1e-9", "1e-5", "2e-5", "95")),
    *(f"ceilings = {{ network_bytes_per_second = {rate} }}" for rate in ("9e4", "1e5", "1e12", "2e12")),
    "ceilings = { speed = 3 }",
    "colour = 3",
)


@pytest.mark.parametrize("line", ADDED)
def test_a_server_with_another_key(line: str) -> None:
    changed = GOOD.replace('source = "offer"\n', f'source = "offer"\n{line}\n', 1)
    with contextlib.suppress(RackscopeError):
        servers = parse_servers(changed, "mine.toml")
        assert parse_servers(catalogue_text(servers, ["made up"]), "mine.toml").servers
