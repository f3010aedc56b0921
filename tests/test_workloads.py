"""What a file of workloads is told when it is wrong, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

import rackscope.workloads
from rackscope.errors import UsageError
from rackscope.workloads import Stage, find_workload, plan
from rackscope.workloads.base import Parameter, Workload, WorkloadPlan
from rackscope.workloads.parameters import with_defaults


def test_a_parameter_that_no_workload_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no parameter 'valuesize'. Did you mean value_size\?"):
        with_defaults(valuesize="2k")


@pytest.mark.parametrize("shares", [{}, {"read": 0.9, "update": 0.02}, {"read": 1.0, "update": 0.1}])
def test_shares_that_do_not_sum_to_1_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"the shares of stage measure sum to .*, not to 1"):
        Stage("measure", shares)


ZIPF = Parameter("zipf", "number", "0.99", "how skewed", choices=("uniform",), minimum=0.5, maximum=2)


@pytest.mark.parametrize(
    ("text", "canonical"), [("1.50", "1.5"), ("0.5", "0.5"), ("2", "2"), ("1e0", "1"), ("uniform", "uniform")]
)
def test_a_number_is_kept_in_one_form(text: str, canonical: str) -> None:
    assert ZIPF.check(text) == canonical


@pytest.mark.parametrize(
    ("text", "said", "advice"),
    [
        ("steep", "workload parameter zipf: 'steep' is not a number", "For example 0.99."),
        ("", "workload parameter zipf: '' is not a number", "For example 0.99."),
        ("0.49", "workload parameter zipf: 0.49 is out of bounds", "It must be between 0.5 and 2."),
        ("2.01", "workload parameter zipf: 2.01 is out of bounds", "It must be between 0.5 and 2."),
        ("nan", "workload parameter zipf: nan is out of bounds", "It must be between 0.5 and 2."),
    ],
)
def test_what_is_no_number_between_its_bounds_is_refused_with_an_example(text: str, said: str, advice: str) -> None:
    with pytest.raises(UsageError) as refused:
        ZIPF.check(text)
    assert (refused.value.what, refused.value.advice) == (said, advice)


def test_an_operation_with_a_slip_in_its_name_is_told_the_nearest() -> None:
    workload = Workload("pages", "", "", (Stage("measure", {"udpate": 1.0}),), with_defaults())
    with pytest.raises(UsageError, match=r"needs udpate, which redis does not have. Did you mean update\?"):
        plan(workload, {}, operations=frozenset({"read", "update"}), protocols=("resp",), system="redis")


def test_a_family_without_its_comma_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "family_without_comma.py"
    file.write_text("WORKLOADS = (1)\n")
    monkeypatch.setattr(rackscope.workloads, "__path__", [*rackscope.workloads.__path__, str(tmp_path)])
    with pytest.raises(UsageError, match=f"WORKLOADS of {file} is not a tuple. Put a comma"):
        find_workload("ycsb-b")


def _plan(system: str, workload: str, protocol: str, **settings: str) -> WorkloadPlan:
    found = find_workload(workload)
    operations = found.needed_operations()
    return plan(found, settings, operations=operations, protocols=(protocol,), system=system)


def test_flags_and_expiry_reach_the_client() -> None:
    planned = _plan("memcached", "ycsb-b", "memcached_text", flags="7", expire_seconds="60")
    assert (planned.flags, planned.expire_seconds) == (7, 60)
    assert _plan("memcached", "ycsb-b", "memcached_text", batch="1024").batch == 1024
    planned = _plan("redis", "ycsb-b", "resp", expire_seconds="60")
    assert (planned.flags, planned.expire_seconds) == (0, 60)


@pytest.mark.parametrize(
    ("system", "workload", "protocol", "settings", "said"),
    [
        ("redis", "ycsb-b", "resp", {"flags": "7"}, r"redis has no flags of items\. Leave flags at 0"),
        (
            "redis",
            "redis-stages",
            "resp",
            {"expire_seconds": "7"},
            r"is for single values; redis-stages also uses .*\(lpop\)",
        ),
        ("memcached", "ycsb-b", "memcached_text", {"flags": "4294967296"}, "flags: 4294967296 is out of bounds"),
        ("memcached", "ycsb-b", "memcached_text", {"batch": "1025"}, "batch: 1025 is out of bounds"),
        ("memcached", "ycsb-b", "memcached_text", {"batch": "0"}, "batch: 0 is out of bounds"),
        ("memcached", "ycsb-b", "memcached_text", {"expire_seconds": "2592001"}, "between 0 and 2,592,000"),
        ("memcached", "ycsb-b", "memcached_text", {"expire_seconds": "-1"}, "expire_seconds"),
    ],
)
def test_flags_and_expiry_that_cannot_be_are_refused(
    system: str, workload: str, protocol: str, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        _plan(system, workload, protocol, **settings)


@pytest.mark.parametrize("name", ["etc", "usr", "app", "var", "sys"])
def test_a_pool_has_its_sizes_and_says_where_they_are_from(name: str) -> None:
    workload = find_workload(name)
    planned = plan(
        workload, {}, operations=frozenset({"read", "update"}), protocols=("memcached_text",), system="memcached"
    )
    assert (planned.keys["size"], planned.values) == ({"kind": name}, {"kind": name})
    assert planned.data_bytes is None
    assert bool(workload.notes) == (name != "etc"), "all but ETC are in part assumed"
    mixed = plan(
        find_workload("ycsb-b"),
        {"key_size": name, "value_size": "300"},
        operations=frozenset({"read", "update"}),
        protocols=("memcached_text",),
        system="memcached",
    )
    assert (mixed.keys["size"], mixed.values) == ({"kind": name}, {"kind": "fixed", "bytes": 300})


def test_a_misspelled_value_is_told_the_one_that_is_near() -> None:
    for name, text, near in (("value_size", "atc", "etc"), ("distribution", "zip", "zipfian")):
        with pytest.raises(UsageError) as refused:
            _plan("memcached", "ycsb-b", "memcached_text", **{name: text})
        assert refused.value.advice.startswith(f"Did you mean {near}? ")
