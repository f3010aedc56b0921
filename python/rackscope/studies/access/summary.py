"""What the measurements of ``study access`` come to: rates that clients can have, and which mode wins where."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rackscope.analysis.intervals import Interval, median_interval
from rackscope.analysis.multiple import Comparison, compare_pairs
from rackscope.studies.access.measure import Outcome
from rackscope.studies.access.plan import ACCESS_MODES, PEERS, Plan, Setting

#: The fastest mode in the paper, and the one in which all cores read and write everything, as they do in peers.
COMPARED_WITH_PEERS = ("EREW", "CRCW")


@dataclass(frozen=True)
class Cell:
    """One structure in one setting."""

    access: str
    setting: Setting
    rates: Sequence[float]
    balance: float
    unsettled_ratio: float
    #: Of the rates' median.
    median: Interval


@dataclass(frozen=True)
class Verdict:
    """Which mode wins in a setting: the fastest, the next, and those that are not shown to be slower."""

    setting: Setting
    fastest: str
    next: Comparison
    ties: tuple[str, ...]

    @property
    def words(self) -> str:
        """``EREW``, ``EREW or CREW``, ``inconclusive``."""
        if len(self.ties) == len(ACCESS_MODES) - 1:
            return "inconclusive"
        return " or ".join(access for access in ACCESS_MODES if access in (self.fastest, *self.ties))


@dataclass(frozen=True)
class Summary:
    """All of it, by access mode and setting."""

    cells: dict[tuple[str, Setting], Cell]
    comparisons: dict[tuple[Setting, str, str], Comparison]
    verdicts: list[Verdict]

    def settings(self, cores: int) -> list[Setting]:
        """Those in which every access mode was measured."""
        found = dict.fromkeys(setting for _, setting in self.cells if setting.cores == cores)
        return [one for one in found if all((access, one) in self.cells for access in ACCESS_MODES)]

    @property
    def peers(self) -> list[str]:
        """Structures by others that were measured."""
        return [peer for peer in PEERS if any(access == peer for access, _ in self.cells)]

    def ratio(self, setting: Setting, first: str, second: str) -> Comparison:
        """``first`` over ``second`` in a setting, for all comparisons of the study together."""
        return self.comparisons[setting, first, second]


def balance(access: str, setting: Setting, shares: Sequence[float] | None) -> float:
    """The part of what all cores did at full speed that clients can have who ask for keys as they were drawn.

    ``shares`` of all requests (under CREW: of writes) go to the core that owns the key, and the busiest one is full
    first; cores are taken to be equally fast. Under CREW reads go to any core that has time.
    """
    if access not in ("EREW", "CREW") or not shares:
        return 1.0
    bound = max(shares) * setting.cores * (setting.writes_percent / 100 if access == "CREW" else 1.0)
    return min(1.0, 1 / bound) if bound else 1.0


def summarise(outcome: Outcome) -> Summary:
    cells = {}
    for (access, setting), measured in sorted(
        outcome.measured.items(), key=lambda item: (item[0][1].order, (ACCESS_MODES + PEERS).index(item[0][0]))
    ):
        part = balance(access, setting, measured[0].shares)
        rates = [part * one.rate for one in measured]
        operations = sum(sum(one.operations) for one in measured)
        cells[access, setting] = Cell(
            access,
            setting,
            rates,
            part,
            sum(one.unsettled for one in measured) / operations if operations else 0.0,
            median_interval(rates),
        )
    summary = Summary(cells, {}, [])
    settings = [one for cores in sorted({setting.cores for _, setting in cells}) for one in summary.settings(cores)]
    pairs = [(one, a, b) for one in settings for a in ACCESS_MODES for b in ACCESS_MODES if a < b]
    pairs += [
        (one, mode, peer)
        for one in settings
        for peer in summary.peers
        for mode in COMPARED_WITH_PEERS
        if (peer, one) in cells
    ]
    compared = compare_pairs(
        {_name(access, setting): cell.rates for (access, setting), cell in cells.items()},
        [(_name(a, one), _name(b, one)) for one, a, b in pairs],
    )
    for (setting, a, b), comparison in zip(pairs, compared, strict=True):
        named = replace(comparison, first=a, second=b)
        summary.comparisons[setting, a, b] = named
        summary.comparisons[setting, b, a] = named.turned()
    summary.verdicts.extend(_verdict(summary, setting) for setting in settings)
    return summary


def _verdict(summary: Summary, setting: Setting) -> Verdict:
    order = sorted(ACCESS_MODES, key=lambda access: -statistics.mean(summary.cells[access, setting].rates))
    against = {other: summary.ratio(setting, order[0], other) for other in order[1:]}
    return Verdict(
        setting, order[0], against[order[1]], tuple(other for other, one in against.items() if not one.different)
    )


def _name(access: str, setting: Setting) -> str:
    return f"{access} {setting.cores} {setting.mix}"


def typical_writes(plan: Plan) -> int:
    """The share of writes that pictures over something else are drawn for."""
    return min(plan.writes, key=lambda writes: abs(writes - 50))
