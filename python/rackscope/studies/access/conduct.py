"""From what is asked of ``study access`` to what is measured and said."""

from __future__ import annotations

import os
from pathlib import Path

from rackscope.errors import UsageError
from rackscope.host.memory import read_memory
from rackscope.host.tree import Tree
from rackscope.studies.access.findings import describe
from rackscope.studies.access.measure import Outcome, carry_out
from rackscope.studies.access.plan import ACCESS_MODES, PEERS, Plan
from rackscope.studies.access.program import Program, program
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.interference import FUTILE_AFTER, Interference
from rackscope.studies.bench.loading import check_count, check_window
from rackscope.units import format_bytes, format_count, parse_count

_MOST_ITEMS = 16_000_000
_FEWEST_ITEMS = 10_000
#: What an item of 8 + 8 bytes takes at most, index and memory in the log included.
_ITEM_BYTES = 48
#: What one takes at most in structures by others, in stores of ours: a tree of half-full leaves.
_PEER_STORES = 4
#: Ids that are drawn for each skew, and what each core keeps of them while it works.
_DRAWN_BYTES = 512 * 1024**2
#: Of the memory that is available, how much may be taken without being asked for it, and at all.
_USUAL_FRACTION, _LARGEST_FRACTION = 0.4, 0.8
_SHORTEST_SECONDS = 0.02


def build_plan(request: Request) -> tuple[Plan, list[str]]:
    """What is asked, and what was chosen for this host. Raises UsageError."""
    values = request.values
    usable = len(os.sched_getaffinity(0))
    cores = (
        _counts(values["cores"], "--cores", 1, usable)
        if values["cores"]
        else tuple(2**power for power in range(usable.bit_length()))
    )
    writes = _counts(values["writes"], "--writes", 0, 100)
    check_count(values["repetitions"], "repetitions")
    check_window(values["window"], "400ms", _SHORTEST_SECONDS)
    stores = len(cores) * len(ACCESS_MODES) + (_PEER_STORES * len(PEERS) if values["peers"] else 0)
    items, notes = _items(values["items"], stores)
    plan = Plan(
        items=items,
        cores=cores,
        thetas=(None, 0.99),
        writes=writes,
        seconds=values["window"],
        repetitions=values["repetitions"],
        budget_seconds=values["budget"],
        with_peers=values["peers"],
    )
    return plan, notes


def _items(wanted: int | None, stores: int) -> tuple[int, list[str]]:
    """How many items each of so many stores of ours holds: those that were asked for, or what is usual and fits."""
    known = read_memory(Tree(Path("/"))).available_bytes
    available = float("inf") if known is None else known
    if wanted is None:
        most = min((available * _USUAL_FRACTION - _DRAWN_BYTES) / stores / _ITEM_BYTES, _MOST_ITEMS)
        if most == _MOST_ITEMS:
            return _MOST_ITEMS, []
        items = max(_FEWEST_ITEMS, int(most))
        return items, [
            f"{format_count(items)} items a store rather than {format_count(_MOST_ITEMS)}: all stores are held in "
            f"memory at once, and {format_bytes(available)} of memory were available."
        ]
    if wanted < _FEWEST_ITEMS:
        raise UsageError(f"{wanted} items fit into any CPU cache", f"Choose --items {_FEWEST_ITEMS} or more.")
    needed = stores * wanted * _ITEM_BYTES + _DRAWN_BYTES
    if needed > available * _LARGEST_FRACTION:
        raise UsageError(
            f"All stores of {format_count(wanted)} items take about {format_bytes(needed)}, and "
            f"{format_bytes(available)} of memory are available",
            "Ask for fewer --items, or for fewer numbers of --cores.",
        )
    return wanted, []


def _counts(text: str, option: str, least: int, most: int) -> tuple[int, ...]:
    """``1,2,4``, each once, rising. Raises UsageError."""
    try:
        found = [parse_count(part.strip().removesuffix("%").strip()) for part in text.split(",")]
    except UsageError as error:
        raise UsageError(f"{option} {text}: {error.what}", f"Write it like {option} {least},{most}.") from None
    wrong = [one for one in found if not least <= one <= most]
    if wrong:
        raise UsageError(
            f"{option} {text}: {wrong[0]} is not between {least} and {most}", f"Choose numbers from {least} to {most}."
        )
    return tuple(sorted(set(found)))


def conduct_access(conduct: Conduct, plan: Plan, bench: Program, notes: list[str]) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    outcome = Outcome(Interference(futile_after=FUTILE_AFTER), notes=list(notes))
    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, conduct.progress, save)


def conduct(conduct: Conduct) -> None:
    plan, notes = build_plan(conduct.request)
    with program(plan.items, conduct.folder / "access.log", plan.with_peers) as bench:
        conduct_access(conduct, plan, bench, notes)
