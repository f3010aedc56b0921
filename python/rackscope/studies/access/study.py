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
#: What an item of 8 + 8 bytes takes at most, index and memory in the log included.
_ITEM_BYTES = 48
#: Ids that are drawn for each skew, and what each core keeps of them while it works.
_DRAWN_BYTES = 512 * 1024**2
#: Of the memory that is available, how much may be taken without being asked for it, and at all.
_USUAL_FRACTION, _LARGEST_FRACTION = 0.4, 0.8
_SHORTEST_SECONDS = 0.02


def build_plan(request: Request) -> tuple[Plan, list[str]]:
    """What is asked, and what was chosen for this host. Raises UsageError."""
    from rackscope.studies.access.plan import ACCESS_MODES, Plan
    from rackscope.studies.bench.loading import check_count, check_window

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

    known = read_memory(Tree(Path("/"))).available_bytes
    available = float("inf") if known is None else known
    if wanted is None:
        most = min((available * _USUAL_FRACTION - _DRAWN_BYTES) / stores / _ITEM_BYTES, _MOST_ITEMS)
        if most == _MOST_ITEMS:
            return _MOST_ITEMS, []
        items = max(_FEWEST_ITEMS, int(most))
        return items, [
            f"{format_count(items)} items a store rather than {format_count(_MOST_ITEMS)}: {stores} stores are held in "
            f"memory at once, and {format_bytes(available)} of memory were available."
        ]
    if wanted < _FEWEST_ITEMS:
        raise UsageError(f"{wanted} items fit into any CPU cache", f"Choose --items {_FEWEST_ITEMS} or more.")
    needed = stores * wanted * _ITEM_BYTES + _DRAWN_BYTES
    if needed > available * _LARGEST_FRACTION:
        raise UsageError(
            f"{stores} stores of {format_count(wanted)} items take about {format_bytes(needed)}, and "
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


def conduct_access(conduct: Conduct, plan: Plan, bench: Bench, notes: list[str]) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.access.findings import describe
    from rackscope.studies.access.measure import Outcome, carry_out
    from rackscope.studies.bench.interference import Interference

    outcome = Outcome(Interference(), notes=list(notes))
    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, conduct.progress, save)


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.access.program import program

    plan, notes = build_plan(conduct.request)
    with program(plan.items, conduct.folder / "access.log") as bench:
        conduct_access(conduct, plan, bench, notes)


STUDY = Study(
    name="access",
    help="compare the access modes EREW, CREW and CRCW of a partitioned store, without a network",
    description=(
        "Measures the partitions of the cache engine without sockets. A core accesses only its own partition (EREW),\n"
        "reads all partitions and writes its own (CREW), or reads and writes all of them (CRCW). Varies the number of\n"
        "cores, the key distribution (uniform, zipfian) and the percentage of writes. All values read are checked.\n"
        "All combinations are measured in turns, round after round.\n\n"
        "Examples:\n"
        "  rackscope study access\n"
        "  rackscope study access --cores 2 --writes 50 --items 4m --repetitions 12"
    ),
    conduct=_conduct,
    subject="none",
    options=(
        Option("items", "count", "items of 8 + 8 bytes in each store (default 16m, or what memory has memory for)"),
        Option(
            "cores",
            "text",
            "numbers of cores to measure with (default: 1, 2, 4, ... up to all)",
            metavar="N,N",
        ),
        Option("writes", "text", "percentages of writes", "0,5,50,100", metavar="N,N"),
        Option("window", "duration", "length of one measurement", "400ms"),
        Option("repetitions", "count", "rounds over all combinations", "7"),
        Option("budget", "duration", "time for all rounds, without filling the stores", "10m"),
    ),
    title=lambda _: "EREW, CREW and CRCW in process",
    check=build_plan,
)
