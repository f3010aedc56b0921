"""``study access``: EREW against CREW against CRCW in process, over cores, skew and write share.

``StudyRecord.result`` is described in ``studies/access/findings.py``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study
from rackscope.units import format_bytes, format_count, parse_count

if TYPE_CHECKING:
    from rackscope.studies.access.plan import Plan
    from rackscope.studies.access.program import Bench

_MOST_ITEMS = 16_000_000
_FEWEST_ITEMS = 10_000
#: What an item of 8 + 8 bytes takes at most, index and room in the log included.
_ITEM_BYTES = 48
#: Ids that are drawn for each skew, and what each core keeps of them while it works.
_DRAWN_BYTES = 512 * 1024**2
#: Of the memory that is available, how much may be taken without being asked for it, and at all.
_USUAL_SHARE, _LARGEST_SHARE = 0.4, 0.8
_SHORTEST_SECONDS = 0.02


def build_plan(request: Request) -> tuple[Plan, list[str]]:
    """What is asked, and what was chosen for this host. Raises UsageError."""
    from rackscope.studies.access.plan import ACCESS_MODES, Plan

    values = request.values
    usable = len(os.sched_getaffinity(0))
    cores = _counts(values["cores"], "--cores", 1, usable) if values["cores"] else _powers_of_two(usable)
    writes = _counts(values["writes"], "--writes", 0, 100)
    if not 1 <= values["repetitions"] <= 1000:
        raise UsageError(f"{values['repetitions']} repetitions are out of bounds", "Choose between 1 and 1000.")
    if values["window"] < _SHORTEST_SECONDS:
        raise UsageError(f"a window must last at least {1000 * _SHORTEST_SECONDS:.0f} ms", "Choose --window 400ms.")
    items, notes = _items(values["items"], len(cores) * len(ACCESS_MODES))
    plan = Plan(
        items=items,
        cores=cores,
        thetas=(None, 0.99),
        writes=writes,
        seconds=values["window"],
        repetitions=values["repetitions"],
        budget_seconds=values["budget"],
    )
    return plan, notes


def _items(wanted: int | None, stores: int) -> tuple[int, list[str]]:
    """How many items each of so many stores holds: those that were asked for, or what is usual and fits."""
    from rackscope.host.memory import read_memory
    from rackscope.host.tree import Tree

    available = read_memory(Tree(Path("/"))).available_bytes
    room = float("inf") if available is None else available
    if wanted is None:
        most = max(_FEWEST_ITEMS, int((room * _USUAL_SHARE - _DRAWN_BYTES) / stores / _ITEM_BYTES)) if available else 0
        if available is None or most >= _MOST_ITEMS:
            return _MOST_ITEMS, []
        return most, [
            f"{format_count(most)} items a store rather than {format_count(_MOST_ITEMS)}: {stores} stores are held at "
            f"a time, and {format_bytes(room)} of memory were available."
        ]
    if wanted < _FEWEST_ITEMS:
        raise UsageError(f"{wanted} items fit into any cache", f"Choose --items {_FEWEST_ITEMS} or more.")
    needed = stores * wanted * _ITEM_BYTES + _DRAWN_BYTES
    if needed > room * _LARGEST_SHARE:
        raise UsageError(
            f"{stores} stores of {format_count(wanted)} items take about {format_bytes(needed)}, and "
            f"{format_bytes(room)} of memory are available",
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
        raise UsageError(f"{option} {text}: {wrong[0]} is not between {least} and {most}", "Leave it out.")
    return tuple(sorted(set(found)))


def _powers_of_two(most: int) -> tuple[int, ...]:
    return tuple(2**power for power in range(most.bit_length()))


def conduct_access(conduct: Conduct, plan: Plan, bench: Bench, notes: list[str]) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.access.carry_out import Outcome, carry_out
    from rackscope.studies.access.findings import describe
    from rackscope.studies.bench.interference import Interference

    outcome = Outcome(Interference(), notes=list(notes))
    try:
        carry_out(plan, conduct, bench, outcome)
    finally:
        describe(conduct.record, plan, outcome)


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.access.program import program

    plan, notes = build_plan(conduct.request)
    with program(plan.items, conduct.folder / "access.log") as bench:
        conduct_access(conduct, plan, bench, notes)


def _check(request: Request) -> None:
    build_plan(request)


STUDY = Study(
    name="access",
    help="EREW against CREW against CRCW in process: which mode of access wins where",
    description=(
        "Measures the partitions of the cache engine without any socket: a core works on its own partition only\n"
        "(EREW), reads all and writes to its own (CREW), or reads and writes all (CRCW), over numbers of cores,\n"
        "uniform and zipfian keys, and shares of writes. Every value that is read is checked. All combinations take\n"
        "turns, round after round.\n\n"
        "Examples:\n"
        "  rackscope study access\n"
        "  rackscope study access --cores 2 --writes 50 --items 4m --repetitions 12"
    ),
    conduct=_conduct,
    subject="none",
    options=(
        Option("items", "count", "items of 8 + 8 bytes in each store (default 16m, or what memory has room for)"),
        Option(
            "cores",
            "text",
            "numbers of cores to measure with (default: 1, 2, 4, ... as many as there are)",
            metavar="N,N",
        ),
        Option("writes", "text", "writes among 100 operations", "0,5,50,100", metavar="N,N"),
        Option("window", "duration", "length of one measurement", "400ms"),
        Option("repetitions", "count", "rounds over all combinations", "7"),
        Option("budget", "duration", "time after which no further round begins; filling aside", "10m"),
    ),
    title=lambda _: "EREW, CREW and CRCW in process",
    check=_check,
)
