"""Parameters that every workload over keys and values has, and how they become a plan."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rackscope.errors import UsageError
from rackscope.workloads.base import Parameter, PhasePlan, Workload, WorkloadPlan

COMMON_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("keys", "count", "100000", "how many keys the data set holds", minimum=1, maximum=2e9),
    Parameter(
        "key_size",
        "size",
        "24",
        "bytes of a key, or etc (Atikoglu 2012)",
        choices=("etc",),
        minimum=8,
        maximum=250,
    ),
    Parameter(
        "value_size",
        "size",
        "1000",
        "bytes of a value, or etc (Atikoglu 2012)",
        choices=("etc",),
        minimum=1,
        maximum=32 * 1024**2,
    ),
    Parameter(
        "distribution",
        "choice",
        "zipfian",
        "which keys are asked for",
        choices=("uniform", "zipfian", "zipfian-unscrambled", "latest", "hotspot", "sequential"),
    ),
    Parameter("theta", "number", "0.99", "skew of zipfian and latest", minimum=0, maximum=10),
    Parameter("hot_keys", "number", "0.2", "hotspot: fraction of keys that are hot", minimum=1e-9, maximum=1),
    Parameter("hot_operations", "number", "0.8", "hotspot: fraction of operations on them", minimum=0, maximum=1),
    Parameter("pipeline", "count", "1", "requests outstanding on a connection", minimum=1, maximum=1024),
    Parameter("multiget", "count", "1", "keys in one read request", minimum=1, maximum=1000),
    Parameter("batch", "count", "1", "requests in one datagram of protocol batch", minimum=1, maximum=1024),
    Parameter(
        "protocol",
        "choice",
        "auto",
        "the protocol, where a system has several",
        choices=("auto", "memcached_text", "memcached_meta", "resp", "batch"),
    ),
)


def with_defaults(**defaults: str) -> tuple[Parameter, ...]:
    """The common parameters with other defaults."""
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
    """Settle ``workload``'s parameters for a system that has ``operations`` and speaks ``protocols``.

    Raises UsageError for an unknown or bad parameter, or when the system cannot do what the workload asks for.
    """
    parameters = _settle(workload, settings)
    missing = workload.needed_operations() - operations
    if missing:
        verb = " and ".join(sorted(missing)).replace("scan", "scan (a range of keys in order)")
        raise UsageError(
            f"workload {workload.name} needs {verb}, which {system} does not have",
            "Choose another workload or system; 'rackscope run --list' shows them.",
        )
    protocol = parameters["protocol"]
    if protocol == "auto":
        protocol = protocols[0]
    elif protocol not in protocols:
        raise UsageError(f"{system} does not speak {protocol}", f"It speaks {', '.join(protocols)}.")
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
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(f"workload {workload.name} has no parameter '{name}'", f"{hint}It has {', '.join(known)}.")
    return {name: parameter.check(settings.get(name, parameter.default)) for name, parameter in known.items()}


def _size(text: str) -> dict[str, Any]:
    return {"kind": "etc"} if text == "etc" else {"kind": "fixed", "bytes": int(text)}


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
