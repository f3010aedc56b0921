"""The numbers of Han 2014's slides, and beside MICA's what studies of access, peers and transports measured here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rackscope.papers.base import NOT_MEASURED, Content, Paper
from rackscope.papers.document import Section, Table
from rackscope.papers.han2014 import printed
from rackscope.papers.measured import Measured

Result = Mapping[str, Any]


def make(measured: Sequence[Measured], _say: Callable[[str], None]) -> Content:
    """Claims beside what was measured; plots of the slides have no numbers to set beside ours."""
    columns = ("what", "paper", "measured here")
    here = {
        claim.what: "; ".join(said for one in measured for said in _measured(claim, one)) or NOT_MEASURED
        for claim in (*printed.MICA, *printed.MTCP)
    }
    return Content(
        sections=(
            Section(
                "MICA: the cache",
                (
                    Table(("what", "value"), printed.MICA_SETUP),
                    "Throughput by system and by mode of parallel data access is in the slides' plots alone. "
                    "`rackscope study access` measures the three modes in process, `rackscope study transports` from "
                    "end to end, over UDP and past the kernel, `rackscope study peers` the cache beside others.",
                    Table(columns, tuple((one.what, one.value, here[one.what]) for one in printed.MICA)),
                ),
            ),
            Section(
                "mTCP: the web server",
                (
                    "There is no user-level TCP here yet, and no web workload to measure it with.",
                    Table(columns, tuple((one.what, one.value, here[one.what]) for one in printed.MTCP)),
                ),
            ),
        ),
        values={
            "mica_setup": dict(printed.MICA_SETUP),
            **{
                name: [{**asdict(one), "measured": here[one.what]} for one in claims]
                for name, claims in (("mica", printed.MICA), ("mtcp", printed.MTCP))
            },
        },
    )


#: Claims that a mode's rate from one end of a setting to the other shows.
_CHANGES = {"EREW skewed over uniform": ("EREW", "theta"), "CRCW over cores": ("CRCW", "cores")}


#: Claims that pairs of ``study transports`` show.
_PAIRS = {
    "best peer": (("udp", "memcached-udp"), ("af_xdp", "memcached-udp")),
    "EREW over CRCW": (("erew", "crcw"),),
    "past the kernel": (("af_xdp", "udp-batch-veth"), ("af_xdp", "udp-deep")),
    "request direction": (("erew-directed", "erew-forwarded"),),
}


def _measured(claim: printed.Claim, study: Measured) -> list[str]:
    kind, result = study.record.kind, study.record.result
    if kind == "transports":
        return _pairs(result, _PAIRS.get(claim.shown_by, ()))
    if kind == "peers":
        return _over_peers(result) if claim.shown_by == "best peer" else []
    if claim.shown_by == "EREW over CRCW":
        return _modes(result)
    return _changes(result, *_CHANGES[claim.shown_by]) if claim.shown_by in _CHANGES else []


def _pairs(result: Result, wanted: Sequence[tuple[str, str]]) -> list[str]:
    """Throughput of one over another, from the least to the most of all loads."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for one in result.get("comparisons", ()):
        ratios.setdefault((one["first"], one["second"]), []).append(one["ratio"]["estimate"])
    return [f"{' over '.join(pair)}: {_span(ratios[pair])}" for pair in wanted if pair in ratios]


def _over_peers(result: Result) -> list[str]:
    """The subject's throughput over each other system's, from the least to the most of all settings."""
    ratios: dict[str, list[float]] = {}
    for setting in result.get("settings", ()):
        for name, system in setting["systems"].items():
            if system.get("ratio") is not None and name != result["subject"]:
                ratios.setdefault(name, []).append(system["ratio"]["estimate"])
    return [f"{result['subject']} over {name}: {_span(found)}" for name, found in ratios.items()]


def _modes(result: Result) -> list[str]:
    """EREW over CRCW on the most cores."""
    pairs = [one for one in result.get("comparisons", ()) if (one["first"], one["second"]) == ("EREW", "CRCW")]
    cores = max((one["cores"] for one in pairs), default=0)
    there = [one for one in pairs if one["cores"] == cores]
    ahead = [one for one in there if one["outcome"] == "different" and one["ratio"] > 1]
    behind = [one for one in there if one["outcome"] == "different" and one["ratio"] < 1]
    if not there:
        return []
    return [
        f"on {cores} core{'s' if cores > 1 else ''} EREW is faster in {len(ahead)} and slower in {len(behind)} of "
        f"{len(there)} mixes ({_span([one['ratio'] for one in there])})"
    ]


def _changes(result: Result, mode: str, name: str) -> list[str]:
    """One mode's rate from one end of a setting to the other, all else alike."""
    rest = [one for one in ("cores", "theta", "writes_percent") if one != name]
    groups: dict[tuple[float, ...], dict[float, float]] = {}
    for cell in result.get("cells", ()):
        if cell["access"] == mode:
            groups.setdefault(tuple(cell[one] for one in rest), {})[cell[name]] = cell["median"]
    ratios = [
        group[max(group)] / group[min(group)] for group in groups.values() if len(group) > 1 and group[min(group)]
    ]
    ends = sorted({value for group in groups.values() for value in group})
    words = f"{mode} from {name} {ends[0]:g} to {ends[-1]:g}" if ends else ""
    return [f"{words}: {_span(ratios)}"] if ratios else []


def _span(ratios: Sequence[float]) -> str:
    low, high = min(ratios), max(ratios)
    return f"{low:.2f}x" if len(ratios) == 1 else f"{low:.2f}x to {high:.2f}x"


PAPER = Paper(
    name="han2014",
    title="MICA and mTCP, fast cache and web servers",
    citation=printed.CITATION,
    shows="What is known of it here is its slides, whose plots carry no numbers: ratios of their text are shown.",
    make=make,
    figures=(
        ("MICA, parallel data access", "EREW against CRCW over cores and skew", "`rackscope study access`"),
        ("MICA, throughput", "beside others, over UDP and past the kernel", "`rackscope study transports`"),
        ("MICA, key-value data structures", "beside a Masstree", "`rackscope study access --peers`"),
        ("MICA, throughput and latency", "response time over load", "`rackscope study transports`"),
        ("MICA, request direction", "by the client (not by the card)", "`rackscope study transports`"),
        ("mTCP, message benchmark", "64 bytes a connection over cores", NOT_MEASURED),
        ("mTCP, web server", "lighttpd, SPECweb2009", NOT_MEASURED),
    ),
    studies=("access", "peers", "transports"),
)
