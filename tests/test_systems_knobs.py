"""Knobs: what a user writes, what the papers tuned, what this host allows; one checked value each, with its source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.errors import UsageError
from rackscope.systems import find_system, list_systems, resolve_knobs
from rackscope.systems.base import Knob
from rackscope.systems.knobs import KnobContext, ResolvedKnobs

GIB = 1024**3
CONTEXT = KnobContext(cores=8, memory_available_bytes=100 * GIB, memory_total_bytes=128 * GIB)


def resolve(name: str, tuned: bool = False, context: KnobContext = CONTEXT, **settings: str) -> ResolvedKnobs:
    return resolve_knobs(find_system(name), settings, tuned=tuned, cores=[0], context=context)


def test_table_2_of_the_paper_is_default_and_tuned():
    default, tuned = resolve("memcached"), resolve("memcached", tuned=True)
    assert (default.values["memory"], default.values["threads"], default.values["connections"]) == (
        str(4 * GIB), "4", "200",
    )  # fmt: skip
    # 60 GB of 128, and as many threads as the server has hardware threads.
    assert (tuned.values["memory"], tuned.values["threads"], tuned.values["connections"]) == (
        str(47 * GIB), "8", "4096",
    )  # fmt: skip
    assert set(default.sources.values()) == {"default"}
    assert {name for name, source in tuned.sources.items() if source == "tuned"} == {"memory", "threads", "connections"}
    assert tuned.defaults == default.values
    assert resolve("redis", tuned=True).values["open_files"] == "15000"


def test_what_is_set_wins_and_is_brought_into_one_form():
    resolved = resolve("memcached", tuned=True, threads="16", memory="50%", cas="off", item_size_max="2m", lru="flat")
    assert resolved.values["threads"] == "16"
    assert resolved.values["memory"] == str(50 * GIB)
    assert resolved.values["cas"] == "no"
    assert resolved.values["item_size_max"] == str(2 * 1024**2)
    assert resolved.values["lru"] == "flat"
    assert resolved.sources["threads"] == "set"
    assert resolved.sources["connections"] == "tuned"
    assert resolved.sources["evict"] == "default"
    assert resolve("memcached", threads="cores").values["threads"] == "8"


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("treads", "8", ["memcached has no knob 'treads'", "Did you mean threads?", "hash_power"]),
        ("threads", "0", ["invalid threads: the minimum is 1, got '0'"]),
        ("threads", "eight", ["'eight' is not a count"]),
        ("threads", "1.5", ["knob threads", "'1.5' is not a whole number"]),
        ("threads", "-1", ["'-1' is not a count"]),
        ("hash_power", "64", ["invalid hash_power: the maximum is 32, got '64'"]),
        ("item_size_max", "2GiB", ["invalid item_size_max: the maximum is 1.00 GiB"]),
        ("item_size_max", "1 parsec", ["'1 parsec' is not a size"]),
        ("memory", "129GiB", ["memory=129GiB is more memory than the 128 GiB there is", "Try memory=50%"]),
        ("memory", "1MiB", ["invalid memory: the minimum is 8.00 MiB"]),
        ("cas", "maybe", ["invalid cas: expected yes or no, got 'maybe'"]),
        ("lru", "segmentd", ["invalid lru: 'segmentd'", "Did you mean segmented?"]),
    ],
)
def test_a_wrong_setting_is_refused_with_what_would_be_right(name, value, parts):
    with pytest.raises(UsageError) as caught:
        resolve("memcached", **{name: value})
    for part in parts:
        assert part in str(caught.value)


def test_a_default_gives_way_on_a_small_host_and_says_so():
    small = KnobContext(cores=1, memory_available_bytes=2 * GIB, memory_total_bytes=4 * GIB)
    resolved = resolve("memcached", context=small)
    assert int(resolved.values["memory"]) == int(2 * GIB * 0.9)
    assert resolved.notes == ("memory is 1.80 GiB instead of 4GiB: no more memory is available",)
    # What a user sets is taken at their word, up to what there is.
    assert resolve("memcached", context=small, memory="3GiB").values["memory"] == str(3 * GIB)


@given(
    cores=st.integers(1, 4096),
    available=st.integers(16 * 1024**2, 2**44),
    extra=st.integers(0, 2**40),
    tuned=st.booleans(),
)
def test_declared_values_suit_every_host(cores, available, extra, tuned):
    context = KnobContext(cores, available, available + extra)
    for system in list_systems():
        resolved = resolve_knobs(system, {}, tuned=tuned, cores=[0], context=context)
        assert resolved.values.keys() == {knob.name for knob in system.knobs}
        # Every value could have been set by a user just so.
        again = resolve_knobs(system, resolved.values, tuned=False, cores=[0], context=context)
        assert again.values == resolved.values


def test_every_knob_is_explained():
    for system in list_systems():
        names = [knob.name for knob in system.knobs]
        assert len(names) == len(set(names))
        for knob in system.knobs:
            assert knob.help, knob
            assert knob.source, knob
            assert (knob.kind == "choice") == bool(knob.choices), knob


def test_a_text_may_not_smuggle_lines():
    system = find_system("redis")
    save = next(knob for knob in system.knobs if knob.name == "save")
    assert isinstance(replace(save), Knob)
    for wrong in ("900 1\nport 0", "x" * 201):
        with pytest.raises(UsageError, match="short printable text"):
            resolve("redis", save=wrong)


MEMINFO = "MemTotal:       24000000 kB\nMemFree:        1 kB\nMemAvailable:   20000000 kB\n"


@pytest.mark.parametrize(
    ("cgroup", "limits", "available_bytes"),
    [
        ("0::/\n", {}, 20_000_000 * 1024),
        ("0::/\n", {"memory.max": "max"}, 20_000_000 * 1024),
        ("0::/a/b\n", {"a/memory.max": "1000000", "a/b/memory.max": "max"}, 1_000_000),
        ("0::/a/b\n", {"a/memory.max": "1000000", "a/b/memory.max": "500000"}, 500_000),
        ("5:cpu,memory:/x\n1:cpuset:/\n", {"memory/x/memory.limit_in_bytes": "700000"}, 700_000),
        ("5:memory:/\n", {"memory/memory.limit_in_bytes": str(2**63 - 4096)}, 20_000_000 * 1024),
        ("", {}, 20_000_000 * 1024),
        ("damaged", {}, 20_000_000 * 1024),
    ],
)
def test_memory_of_the_host_respects_cgroup_limits(tmp_path: Path, cgroup, limits, available_bytes):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    for name, text in limits.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    context = KnobContext.of_this_host(3, tmp_path)
    assert context.cores == 3
    assert context.memory_available_bytes == available_bytes
    assert context.memory_total_bytes == min(available_bytes, 24_000_000 * 1024) or available_bytes > 10**9


def test_a_host_without_meminfo_is_refused_not_guessed(tmp_path: Path):
    with pytest.raises(UsageError, match="/proc/meminfo"):
        KnobContext.of_this_host(1, tmp_path)
