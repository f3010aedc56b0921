"""The door: a run's frames and facts in, its characterisation out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.analysis.findings import Characterisation

if TYPE_CHECKING:
    import polars as pl

    from rackscope.analysis.facts import RunFacts


def characterise(
    facts: RunFacts, samples: pl.DataFrame, results: pl.DataFrame, latency: pl.DataFrame
) -> Characterisation:
    """What held each phase back, with evidence; what makes the run less believable; what else is worth knowing.

    The frames are those of ARCHITECTURE.md; any of them may be empty or lack columns: what is then not known is said.
    """
    del facts, samples, results, latency
    return Characterisation(findings=(), warnings=(), phases=())
