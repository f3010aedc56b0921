"""What the windows of ``study peers`` come to: figures with intervals, and the subject over each of its peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rackscope.analysis.multiple import Comparison, compare_pairs
from rackscope.studies.bench.cells import Cell, cell_of
from rackscope.studies.bench.figures import Figures
from rackscope.studies.peers.measure import MemoryUse, Outcome
from rackscope.studies.peers.plan import MEMORY_ITEMS, Plan, Setting

_Key = TypeVar("_Key", str, float)


@dataclass(frozen=True)
class Summary:
    """``ratios`` are throughputs of the subject over a peer's, and ``costs`` CPU times of the servers, by setting and
    peer; ``tails`` are ratios of p99, by load and peer."""

    settings: Sequence[Setting]
    cells: Mapping[tuple[str, str], Cell]
    ratios: Mapping[tuple[str, str], Comparison]
    costs: Mapping[tuple[str, str], Comparison]
    loaded: Mapping[tuple[float, str], Cell]
    tails: Mapping[tuple[float, str], Comparison]
    #: Bytes that hold MEMORY_ITEMS items, each with whether they were measured or are scaled.
    memory: Mapping[str, tuple[float, bool]]

    @property
    def memory_is_scaled(self) -> bool:
        """Whether memory was measured with fewer items."""
        return any(not measured for _, measured in self.memory.values())

    def ratios_with(self, peer: str) -> list[tuple[Setting, Comparison]]:
        """In the settings in which both were measured."""
        return [
            (setting, self.ratios[setting.name, peer])
            for setting in self.settings
            if (setting.name, peer) in self.ratios
        ]


def summarise(plan: Plan, outcome: Outcome) -> Summary:
    """From what the windows gave to what can be said of them."""
    settings = [
        setting for setting in plan.settings if any((setting.name, name) in outcome.closed for name in plan.systems)
    ]
    return Summary(
        settings=settings,
        cells={key: cell_of(figures) for key, figures in outcome.closed.items()},
        ratios=_compare(plan, outcome.closed, lambda one: one.rate),
        costs=_compare(plan, outcome.closed, lambda one: one.cpu_per_million(one.cores)),
        loaded={key: cell_of(figures) for key, figures in outcome.loaded.items()},
        tails=_compare(plan, outcome.loaded, lambda one: one.p99_seconds),
        memory={name: scaled(use) for name, use in outcome.memory.items()},
    )


def scaled(use: MemoryUse) -> tuple[float, bool]:
    """Bytes with MEMORY_ITEMS items, and whether that many were there; what fewer take is scaled to that many."""
    each = (use.full_bytes - use.empty_bytes) / use.items
    return use.empty_bytes + each * MEMORY_ITEMS, use.items == MEMORY_ITEMS


def _compare(
    plan: Plan, measured: Mapping[tuple[_Key, str], Sequence[Figures]], of: Callable[[Figures], float | None]
) -> dict[tuple[_Key, str], Comparison]:
    """The subject over each peer wherever both were measured, corrected for all of them."""
    values = {
        f"{name} {key}": [value for one in figures if (value := of(one)) is not None]
        for (key, name), figures in measured.items()
    }
    both = [
        (key, name)
        for key, name in measured
        if name != plan.subject and values[f"{name} {key}"] and values.get(f"{plan.subject} {key}")
    ]
    compared = compare_pairs(values, [(f"{plan.subject} {key}", f"{name} {key}") for key, name in both])
    return {
        (key, name): replace(one, first=plan.subject, second=name)
        for (key, name), one in zip(both, compared, strict=True)
    }
