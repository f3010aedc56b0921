"""Which meters to believe, and which domains make up a host: each part once, nothing twice, what is left out said.

Domains nest: cores lie within their package, packages and their DRAM within the platform (psys), all of it within the
server. The widest that was metered speaks for the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rackscope.analysis import wording
from rackscope.analysis.power_trace import PowerTrace
from rackscope.analysis.rates import Samples
from rackscope.analysis.thresholds import Thresholds

#: ``server``: everything behind its plugs. ``outlets``: the outlets that feed it. ``platform``: what the board's own
#: sensor covers. ``parts``: packages, DRAM and GPUs added up.
ScopeKind = Literal["server", "outlets", "platform", "parts"]
FaultCode = Literal["power_implausible", "power_stale", "power_contradiction"]

#: Of several meters of one domain: those that the user named, then counters of energy, then what firmware averages.
_PREFERRED = ("command", "file", "snmp", "rapl_perf", "rapl_powercap", "nvml", "hwmon", "ipmi_dcmi")
_PART = re.compile(r"(package|dram|gpu)(?:-\d+)?(?:-die-\d+)?")
_PLATFORM = re.compile(r"psys(?:-\d+)?")
_INNER = re.compile(r"(?:core|uncore)-(\d+(?:-die-\d+)?)")


@dataclass(frozen=True)
class MeterFault:
    """Why what a meter said is not used, or not to be believed; ``domain`` and ``meter`` as in the columns."""

    code: FaultCode
    domain: str
    meter: str
    columns: tuple[str, ...]
    sentence: str
    advice: str
    #: Whether it was left out; what only contradicts another meter is still shown.
    left_out: bool


@dataclass(frozen=True)
class HostScope:
    """The domains whose watts are added up to the host's."""

    kind: ScopeKind
    domains: tuple[str, ...]
    meters: tuple[str, ...]
    leaves_out: str

    @property
    def label(self) -> str:
        """``server``, ``outlets 3 + 4``, ``package-0 + dram-0``."""
        return " + ".join(self.domains)

    @property
    def sentence(self) -> str:
        """What is added up, who metered it, and what it leaves out."""
        what = "the server" if self.kind == "server" else self.label
        metered = f"{what}, metered by {wording.listing(self.meters)}"
        return f"{metered}; {self.leaves_out}"


@dataclass(frozen=True)
class Meters:
    """One trace a domain, what was wrong with others, and the host's scope (``None`` where no domain speaks for it)."""

    traces: Mapping[str, PowerTrace]
    faults: tuple[MeterFault, ...]
    scope: HostScope | None


def choose_meters(traces: Sequence[PowerTrace], samples: Samples, thresholds: Thresholds) -> Meters:
    """Leave out what cannot be, take one meter a domain, and see what of the host they cover."""
    faults: list[MeterFault] = []
    sound: dict[str, list[PowerTrace]] = {}
    for trace in traces:
        fault = _fault(trace, samples, thresholds)
        if fault is not None:
            faults.append(fault)
        else:
            sound.setdefault(trace.domain, []).append(trace)
    chosen = {
        domain: min(found, key=_rank) for domain, found in sorted(sound.items(), key=lambda item: _order(item[0]))
    }
    for domain, found in sound.items():
        faults += _disagreements(chosen[domain], found, thresholds)
    faults += _contradictions(chosen, thresholds)
    # A package whose meter is broken must not make the sum of the others pass for the host.
    broken = {trace.domain for trace in traces} - set(chosen)
    return Meters(chosen, tuple(faults), _scope(chosen, broken))


def _rank(trace: PowerTrace) -> tuple[int, bool, str]:
    place = _PREFERRED.index(trace.meter) if trace.meter in _PREFERRED else len(_PREFERRED)
    return place, not trace.counts, trace.meter


def _order(domain: str) -> tuple[int, str]:
    """The widest first."""
    kinds = ("server", "psys", "package", "core", "uncore", "dram", "gpu")
    name = domain.partition("-")[0]
    return (kinds.index(name) if name in kinds else 0, domain)


def _fault(trace: PowerTrace, samples: Samples, thresholds: Thresholds) -> MeterFault | None:
    """Why a meter is left out; ``None`` where it is not."""

    def left_out(code: FaultCode, sentence: str, advice: str) -> MeterFault:
        text = f"{wording.capital(sentence)}: it was left out."
        return MeterFault(code, trace.domain, trace.meter, (trace.column,), text, f"{advice}.", True)

    watts, resets, count = trace.watts, trace.resets, len(trace.readings)
    if resets > thresholds.limit("power.resets") * len(trace.values):
        back = f"the energy counter of {trace.name} went backwards {resets} times in {len(trace.values)} readings"
        return left_out("power_implausible", back, "Its wraps were not undone, or it counts something else")
    if len(watts) and (float(watts.min()) < 0 or float(watts.max()) > thresholds.limit("power.highest_watts")):
        worst = float(watts.min()) if float(watts.min()) < 0 else float(watts.max())
        beyond = f"{trace.name} read {worst:,.4g} W, more than any server uses"
        return left_out("power_implausible", beyond, "Check its scale and its units")
    if count < thresholds.limit("power.stale_readings") or float(np.ptp(trace.readings)) != 0:
        return None
    if trace.counts:
        still = f"the energy counter of {trace.name} did not change in {count} readings"
        hidden = "It counts nothing here: a hypervisor or the firmware hides the real one"
        return left_out("power_stale", still, hidden)
    swing = _busy_swing(samples)
    if trace.values[0] == 0 or (swing is not None and swing >= thresholds.limit("power.stale_swing")):
        while_ = "" if swing is None else f" while the CPU's use went up and down by {wording.percent(swing)}"
        same = f"{trace.name} read {float(trace.values[0]):g} W in every one of {count} readings{while_}"
        return left_out("power_stale", same, "It is stuck, or it is not a meter of this host")
    return None


def _busy_swing(samples: Samples) -> float | None:
    """How far the CPU's use differed between seconds of the run; ``None`` when it was not sampled."""
    series = samples.find("cpu_busy_ratio")
    if series is None or len(samples.seconds) < 2:
        return None
    values = [value for *_, value in series.bins(((float(samples.seconds[0]), float(samples.seconds[-1])),), 1.0)]
    return max(values) - min(values) if values else None


def _mean(trace: PowerTrace, start: float, end: float) -> float | None:
    energy = trace.over(start, end)
    return energy.watts if energy.coverage > 0.5 else None


def _disagreements(chosen: PowerTrace, traces: Iterable[PowerTrace], thresholds: Thresholds) -> Iterable[MeterFault]:
    for other in traces:
        if other is chosen:
            continue
        start, end = max(chosen.times[0], other.times[0]), min(chosen.times[-1], other.times[-1])
        one, two = _mean(chosen, float(start), float(end)), _mean(other, float(start), float(end))
        if one is None or two is None or not max(one, two) > 0:
            continue
        apart = abs(one - two) / max(one, two)
        if apart >= thresholds.limit("power.disagreement"):
            yield MeterFault(
                "power_contradiction",
                chosen.domain,
                other.meter,
                (chosen.column, other.column),
                f"Two meters of {chosen.domain} are {wording.percent(apart)} apart: {one:.1f} W by {chosen.meter}, "
                f"which is used, and {two:.1f} W by {other.meter}.",
                "See which of them is right before you use these watts.",
                False,
            )


def _contradictions(chosen: Mapping[str, PowerTrace], thresholds: Thresholds) -> Iterable[MeterFault]:
    """A part that takes more than the whole it lies in."""
    pairs: list[tuple[str, list[str]]] = []
    for whole in chosen:
        if whole == "server" or _PLATFORM.fullmatch(whole):
            # Whether a platform's sensor sees GPUs differs; a server's meter does.
            kinds = ("package", "dram", "gpu") if whole == "server" else ("package", "dram")
            pairs.append((whole, [name for name in chosen if _is_part(name, kinds)]))
    pairs += [(f"package-{match[1]}", [name]) for name in chosen if (match := _INNER.fullmatch(name))]
    for whole, parts in pairs:
        if whole not in chosen or not parts:
            continue
        every = [chosen[whole], *(chosen[name] for name in parts)]
        start, end = float(max(one.times[0] for one in every)), float(min(one.times[-1] for one in every))
        means = [_mean(one, start, end) for one in every]
        if any(one is None for one in means):
            continue
        outer, inner = float(means[0] or 0.0), sum(float(one or 0.0) for one in means[1:])
        if inner > outer * (1 + thresholds.limit("power.contradiction")):
            yield MeterFault(
                "power_contradiction",
                whole,
                chosen[whole].meter,
                tuple(one.column for one in every),
                f"{' + '.join(parts)} took {inner:.1f} W, and {whole}, which holds that, "
                f"{outer:.1f} W: one of the meters is wrong.",
                "Check that all of them are of this host, and the scale of each.",
                False,
            )


def _scope(chosen: Mapping[str, PowerTrace], broken: set[str]) -> HostScope | None:
    def scope(kind: ScopeKind, domains: Sequence[str], leaves_out: str) -> HostScope:
        meters = tuple(dict.fromkeys(chosen[name].meter for name in domains))
        return HostScope(kind, tuple(domains), meters, leaves_out)

    if "server" in chosen:
        return scope("server", ["server"], "it leaves out cooling and power distribution outside of the server")
    outlets = [name for name, trace in chosen.items() if trace.meter == "snmp"]
    if outlets and not any(name for name in broken if not _is_inside(name)):
        return scope("outlets", outlets, "taken to feed this server and nothing else")
    platform = [name for name in chosen if _PLATFORM.fullmatch(name)]
    if platform and not any(_PLATFORM.fullmatch(name) for name in broken):
        text = "it leaves out what the board's sensor does not see: losses of power supplies, as a rule GPUs"
        return scope("platform", platform, text)
    parts = {
        kind: [name for name in chosen if (match := _PART.fullmatch(name)) and match[1] == kind]
        for kind in ("package", "dram", "gpu")
    }
    lost = {match[1] for name in broken if (match := _PART.fullmatch(name))}
    if not parts["package"] or "package" in lost:
        return None
    kept = [name for kind, names in parts.items() if kind not in lost for name in names]
    absent = [] if "dram" not in lost and parts["dram"] else ["DRAM"]
    absent += ["GPUs (where there are any)"] if "gpu" in lost or not parts["gpu"] else []
    left = wording.listing([*absent, "fans", "disks", "network cards", "losses of power supplies"])
    return scope("parts", kept, f"it leaves out {left}")


def _is_inside(domain: str) -> bool:
    """Whether it is a domain within a server, as RAPL and NVML have them."""
    return any(pattern.fullmatch(domain) for pattern in (_PART, _PLATFORM, _INNER))


def _is_part(domain: str, kinds: Sequence[str]) -> bool:
    match = _PART.fullmatch(domain)
    return match is not None and match[1] in kinds
