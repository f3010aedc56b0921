"""What ``study peers`` found, for programs: ``StudyRecord.result``.

``result``::

    {"subject", "baseline", "best_rate_operations_per_second", "versions": {system: str}, "missing": {system: str},
     "settings": [{"name", "label", "systems": {system: {"rates_operations_per_second": [float], "rate": interval,
                   "server_cpu_seconds_per_million", "client_cpu_seconds_per_million": interval, "idle_ratio",
                   "hit_ratio", "ratio": interval, "outcome"}}}],
     "loads": [{"load", "systems": {system: {"offered_operations_per_second", "rate", "p50_seconds", "p99_seconds":
                interval, "keeps_up", "p99_ratio": interval, "outcome"}}}],
     "memory": {system: {"items", "empty_bytes", "full_bytes", "hit_ratio", "bytes_of_10m_items", "scaled": bool}},
     "failures": [{"what", "system", "reason"}]}

An interval is ``{"estimate", "low", "high", "count"}``. ``ratio`` is the subject's throughput over that system's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackscope.analysis.intervals import Interval
    from rackscope.analysis.multiple import Comparison
    from rackscope.studies.peers.carry_out import Outcome
    from rackscope.studies.peers.plan import Plan
    from rackscope.studies.peers.summary import Summary


def result_of(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    """Everything that was measured, and how it compares."""
    return {
        "subject": plan.subject,
        "baseline": plan.baseline,
        "best_rate_operations_per_second": outcome.best_rate,
        "missing": dict(plan.missing),
        "settings": [
            {
                "name": setting.name,
                "label": setting.label,
                "systems": {
                    name: {
                        "rates_operations_per_second": [one.rate for one in outcome.closed[setting.name, name]],
                        "rate": _interval(cell.rate),
                        "server_cpu_seconds_per_million": _interval(cell.server_cpu),
                        "client_cpu_seconds_per_million": _interval(cell.client_cpu),
                        "idle_ratio": cell.idle_ratio,
                        "hit_ratio": cell.hit_ratio,
                        **_compared("ratio", summary.ratios.get((setting.name, name))),
                    }
                    for name in plan.systems
                    if (cell := summary.cells.get((setting.name, name))) is not None
                },
            }
            for setting in summary.settings
        ],
        "loads": [
            {
                "load": load,
                "systems": {
                    name: {
                        "offered_operations_per_second": load * (outcome.best_rate or 0.0),
                        "rate": _interval(cell.rate),
                        "p50_seconds": _interval(cell.p50),
                        "p99_seconds": _interval(cell.p99),
                        "keeps_up": cell.keeps_up,
                        **_compared("p99_ratio", summary.tails.get((load, name))),
                    }
                    for name in plan.systems
                    if (cell := summary.loaded.get((load, name))) is not None
                },
            }
            for load in plan.loads
            if any((load, name) in summary.loaded for name in plan.systems)
        ],
        "memory": {
            name: {
                "items": use.items,
                "empty_bytes": use.empty_bytes,
                "full_bytes": use.full_bytes,
                "hit_ratio": use.hit_ratio,
                "bytes_of_10m_items": summary.memory[name][0],
                "scaled": not summary.memory[name][1],
            }
            for name, use in outcome.memory.items()
        },
        "failures": [{"what": what, "system": name, "reason": reason} for what, name, reason in outcome.failures],
    }


def _compared(name: str, comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {}
    return {name: _interval(comparison.ratio), "outcome": comparison.outcome}


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high, "count": interval.count}
