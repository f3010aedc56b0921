"""What ``study access --peers`` says of structures by others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rackscope.analysis.wording import listing
from rackscope.runs.study import Finding, Table
from rackscope.studies.access.measure import Outcome
from rackscope.studies.access.plan import Setting
from rackscope.studies.access.summary import COMPARED_WITH_PEERS, Summary
from rackscope.studies.kit import counted, finding, ratio_words, table_of

METHOD = (
    "Structures by others, which all cores read and write: papaya is a hash table by open addressing (crate papaya), "
    "masstree a trie of B+-trees (crate masstree, an independent implementation of EuroSys'12). They get the same "
    "keys and values in the same bursts, and their values are checked; a burst is asked for under one guard. They "
    "hold items and do no more: nothing is evicted or expires, and no read is noted. Partitions fetch what a burst "
    "needs ahead, which these have no interface for. Overhead is what became resident while they were filled."
)


def settings_beside(summary: Summary, peer: str) -> list[Setting]:
    """Those in which a peer was compared, the most cores first."""
    found = [one for one, first, second in summary.comparisons if (first, second) == ("EREW", peer)]
    return sorted(found, key=lambda one: (-one.cores, *one.order[1:]))


def peer_findings(outcome: Outcome, summary: Summary) -> list[Finding]:
    """For each peer, on the most cores: how often and by how much partitions are ahead, and what an item takes."""
    findings = []
    for peer in summary.peers:
        settings = settings_beside(summary, peer)
        settings = [one for one in settings if one.cores == settings[0].cores]
        if not settings or summary.ratio(settings[0], "EREW", peer).p_value is None:
            continue
        parts = [_ahead(summary, mode, peer, settings) for mode in COMPARED_WITH_PEERS]
        least = min(settings, key=lambda one: summary.ratio(one, "EREW", peer).ratio.estimate)
        evidence = f"EREW is closest with {least.mix}: {ratio_words(summary.ratio(least, 'EREW', peer).ratio)}"
        overheads = {
            name: one.overhead_bytes
            for (name, cores), one in outcome.filled.items()
            if cores == settings[0].cores and name in ("EREW", peer) and one.overhead_bytes is not None
        }
        if len(overheads) == len(("EREW", peer)):
            evidence += (
                f"; beside key and value an item takes {overheads['EREW']:.1f} bytes in partitions and "
                f"{overheads[peer]:.1f} in {peer}"
            )
        sentence = f"Beside {peer}, on {counted(settings[0].cores, 'core')}: {listing(parts)}."
        findings.append(finding(sentence, f"{evidence}."))
    return findings


def _ahead(summary: Summary, mode: str, peer: str, settings: Sequence[Setting]) -> str:
    compared = [summary.ratio(one, mode, peer) for one in settings]
    faster = sum(one.different and one.ratio.estimate > 1 for one in compared)
    slower = sum(one.different and one.ratio.estimate < 1 for one in compared)
    span = sorted(one.ratio.estimate for one in compared)
    times = f"{span[0]:.2f}" if len(span) == 1 else f"{span[0]:.2f} to {span[-1]:.2f}"
    behind = f" and slower in {slower}" if slower else ""
    mixes = f"{faster}{behind} of {len(settings)} mixes"
    return f"{mode} is shown to be faster in {mixes}, with {times} times its rate over all of them"


def peer_tables(summary: Summary) -> list[Table]:
    """Rates of every peer, and what partitions do beside it."""

    def rate(peer: str, one: Setting) -> float:
        return summary.cells[peer, one].median.estimate

    def beside(mode: str, peer: str, one: Setting) -> str:
        return ratio_words(summary.ratio(one, mode, peer).ratio)

    tables: list[Table] = []
    for peer in summary.peers:
        columns: list[tuple[str | Sequence[str], Callable[[Setting], Any]]] = [
            ("cores, keys, writes", lambda one: f"{one.cores}, {one.keys}, {one.writes_percent} %"),
            ((peer, "operations/s"), partial(rate, peer)),
            *((f"{mode} / {peer}", partial(beside, mode, peer)) for mode in COMPARED_WITH_PEERS),
        ]
        caption = "Median over rounds; ratios of means, with intervals that hold for all comparisons of this study."
        tables += table_of(f"beside-{peer}", f"Beside {peer}", settings_beside(summary, peer), columns, caption)
    return tables
