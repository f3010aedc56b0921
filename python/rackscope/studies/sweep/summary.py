"""The statistics of a sweep: intervals of every cell, comparisons, effects of the factors, answers to claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rackscope.analysis.factor_effects import Effects, Observation, estimate_effects
from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.multiple import Comparison, compare_all_pairs, compare_with_baseline
from rackscope.studies.bench.figures import Figures, known_of, least
from rackscope.studies.sweep.claims import Answer, answer_claims
from rackscope.studies.sweep.grid import Cell
from rackscope.studies.sweep.measure import Outcome
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.studies.sweep.presets import load_presets
from rackscope.workloads import find_workload


@dataclass(frozen=True)
class CellSummary:
    """A cell that was measured. ``hit_ratio`` and ``generator_idle_ratio`` are the lowest of its repetitions."""

    label: str
    levels: Mapping[str, str]
    throughput: Interval
    mean: Interval | None
    p50: Interval | None
    p99: Interval | None
    hit_ratio: float | None
    generator_idle_ratio: float | None
    stages: int


@dataclass(frozen=True)
class Summary:
    """All of it. Comparisons are of throughput, by the label of the cell that is compared."""

    cells: list[CellSummary]
    effects: Effects
    against_baseline: Mapping[str, Comparison]
    answers: list[Answer] = field(default_factory=list)
    throughputs: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def pairs_with(self, cell: CellSummary) -> list[Comparison]:
        """Every other cell with ``cell``, corrected for all pairs: which one it is was chosen by looking."""
        return [
            one.turned() if one.first == cell.label else one
            for one in compare_all_pairs(self.throughputs)
            if cell.label in (one.first, one.second)
        ]


def summarise(plan: SweepPlan, outcome: Outcome) -> Summary:
    """From what the runs gave to what is shown of them."""
    measured = [(cell, outcome.of(number)) for number, cell in enumerate(plan.cells) if outcome.of(number)]
    cells = [_summarise_cell(cell, figures, plan.options.workload) for cell, figures in measured]
    throughputs = {cell.label: [one.rate for one in figures] for cell, figures in measured}
    observations = [
        Observation(plan.cells[number].levels, repetition, figures.rate)
        for (number, repetition), figures in sorted(outcome.figures.items())
    ]
    compared = compare_with_baseline(throughputs, cells[0].label) if len(cells) > 1 else []
    claims = load_presets()[plan.preset].claims if plan.preset else ()
    return Summary(
        cells,
        estimate_effects(observations),
        {one.first: one for one in compared},
        answer_claims(plan, outcome, claims),
        throughputs,
    )


def _summarise_cell(cell: Cell, figures: Sequence[Figures], workload: str) -> CellSummary:
    def interval(name: str) -> Interval | None:
        known = known_of(figures, name)
        return mean_interval(known, at_least=0.0) if known else None

    return CellSummary(
        label=cell.label,
        levels=cell.levels,
        throughput=mean_interval([one.rate for one in figures], at_least=0.0),
        mean=interval("mean_seconds"),
        p50=interval("p50_seconds"),
        p99=interval("p99_seconds"),
        hit_ratio=least(figures, "hit_ratio"),
        generator_idle_ratio=least(figures, "idle_ratio"),
        stages=len(find_workload(cell.levels.get("workload", workload)).stages),
    )
