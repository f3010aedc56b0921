"""Parameters that every workload over keys and values has, and how they become a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rackscope.errors import UsageError, did_you_mean
from rackscope.workloads.base import Parameter, PhasePlan, Workload, WorkloadPlan

_DISTRIBUTIONS = ("uniform", "zipfian", "zipfian-unscrambled", "latest", "hotspot", "sequential")
#: Facebook's pools, as far as they are published (Atikoglu 2012).
POOLS = ("etc", "usr", "app", "var", "sys")
_POOL_NAMES = ", ".join(POOLS)
_PROTOCOLS = ("auto", "memcached_text", "memcached_meta", "resp", "batch")
#: Operations whose items can be set to expire.
_EXPIRING = frozenset({"read", "update", "insert", "read_modify_write", "scan"})
COMMON_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("keys", "count", "100000", "how many keys the data set holds", minimum=1, maximum=2e9),
    Parameter("key_size", "size", "24", f"bytes of a key, or as in a pool: {_POOL_NAMES}", POOLS, 8, 250),
    Parameter("value_size", "size", "1000", f"bytes of a value, or {_POOL_NAMES}", POOLS, 1, 32 * 1024**2),
    Parameter("distribution", "choice", "zipfian", f"which keys: {', '.join(_DISTRIBUTIONS)}", _DISTRIBUTIONS),
    Parameter("theta", "number", "0.99", "skew of zipfian and latest", minimum=0, maximum=10),
    Parameter("hot_keys", "number", "0.2", "hotspot: fraction of keys that are hot", minimum=1e-9, maximum=1),
    Parameter("hot_operations", "number", "0.8", "hotspot: fraction of operations on them", minimum=0, maximum=1),
    Parameter("pipeline", "count", "1", "requests outstanding on a connection", minimum=1, maximum=1024),
    Parameter("multiget", "count", "1", "keys in one read request", minimum=1, maximum=1000),
    Parameter("batch", "count", "1", "requests in one datagram of protocol batch", minimum=1, maximum=1024),
    Parameter("flags", "count", "0", "flags of every item that is set; Redis has none", maximum=2**32 - 1),
    Parameter(
        "expire_seconds",
        "count",
        "0",
        "seconds after which every item that is set expires; 0: never",
        maximum=30 * 86400,
    ),
    Parameter("protocol", "choice", "auto", "the protocol, where a system has several", _PROTOCOLS),
)


def with_defaults(**defaults: str) -> tuple[Parameter, ...]:
    """The common parameters with other defaults. Raises UsageError for a name that none of them has."""
    for name in defaults:
        _require_known(name, [parameter.name for parameter in COMMON_PARAMETERS], "workloads have")
    return tuple(
        replace(parameter, default=defaults.get(parameter.name, parameter.default)) for parameter in COMMON_PARAMETERS
    )


def plan(
    workload: Workload,
    settings: Mapping[str, str],
    *,
    operations: frozenset[str],
    protocols: Sequence[str],
    system: str,
) -> WorkloadPlan:
    """Settle ``workload``'s parameters for ``operations`` and ``protocols``. Raises UsageError for what cannot be."""
    parameters = _settle(workload, settings)
    missing = workload.needed_operations() - operations
    if missing:
        verb = " and ".join(sorted(missing)).replace("scan", "scan (a range of keys in order)")
        near = did_you_mean(min(missing), operations)
        raise UsageError(
            f"workload {workload.name} needs {verb}, which {system} does not have",
            f"{near}Choose another workload or system; 'rackscope run --list' shows them.",
        )
    protocol = parameters["protocol"]
    if protocol == "auto":
        protocol = protocols[0]
    elif protocol not in protocols:
        raise UsageError(f"{system} does not speak {protocol}", f"It speaks {', '.join(protocols)}.")
    if protocol == "resp" and parameters["flags"] != "0":
        raise UsageError(f"{system} has no flags of items", "Leave flags at 0.")
    lasting = workload.needed_operations() - _EXPIRING
    if lasting and parameters["expire_seconds"] != "0":
        raise UsageError(
            f"expire_seconds is for single values; {workload.name} also uses lists or sets ({min(lasting)})",
            "Leave expire_seconds at 0.",
        )
    keys = {"count": int(parameters["keys"]), "size": _size(parameters["key_size"])}
    distribution = _distribution(parameters)
    return WorkloadPlan(
        workload=workload.name,
        parameters=parameters,
        protocol=protocol,
        keys=keys,
        values=_size(parameters["value_size"]),
        pipeline=int(parameters["pipeline"]),
        multiget=int(parameters["multiget"]),
        batch=int(parameters["batch"]),
        flags=int(parameters["flags"]),
        expire_seconds=int(parameters["expire_seconds"]),
        preload=PhasePlan("load", "load", {"insert": 1.0}, {"kind": "sequential"}, int(parameters["keys"]))
        if workload.preload
        else None,
        stages=tuple(
            PhasePlan(stage.name, "measure", dict(stage.operations), distribution) for stage in workload.stages
        ),
        notes=workload.notes,
    )


def _settle(workload: Workload, settings: Mapping[str, str]) -> dict[str, str]:
    known = {parameter.name: parameter for parameter in workload.parameters}
    for name in settings:
        _require_known(name, known, f"workload {workload.name} has")
    return {name: parameter.check(settings.get(name, parameter.default)) for name, parameter in known.items()}


def _require_known(name: str, known: Collection[str], whose: str) -> None:
    if name not in known:
        raise UsageError(f"{whose} no parameter '{name}'", f"{did_you_mean(name, known)}There are {', '.join(known)}.")


def _size(text: str) -> dict[str, Any]:
    return {"kind": text} if text in POOLS else {"kind": "fixed", "bytes": int(text)}


def _distribution(parameters: Mapping[str, str]) -> dict[str, Any]:
    name = parameters["distribution"]
    if name in ("zipfian", "zipfian-unscrambled"):
        return {"kind": "zipfian", "theta": float(parameters["theta"]), "scrambled": name == "zipfian"}
    if name == "latest":
        return {"kind": "latest", "theta": float(parameters["theta"])}
    if name == "hotspot":
        return {
            "kind": "hotspot",
            "hot_keys": float(parameters["hot_keys"]),
            "hot_operations": float(parameters["hot_operations"]),
        }
    return {"kind": name}
