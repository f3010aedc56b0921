"""``study pressure``: prove which resources limit a workload by squeezing them one at a time while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.errors import named
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rackscope.squeezes.base import Squeeze
    from rackscope.studies.bench.session import Bench


def _conduct(conduct: Conduct) -> None:
    from rackscope.runs.prepare import prepare
    from rackscope.studies.bench.session import on_the_bench
    from rackscope.studies.pressure.limits import parse_limits
    from rackscope.studies.pressure.measure import Plan, measure_phase, parse_levels, verify_idle
    from rackscope.studies.pressure.record import Account

    values = conduct.request.values
    fractions, limits = parse_levels(values["levels"]), parse_limits(values["limit"])
    prepared = prepare(conduct.request.asked, conduct.progress)
    stages = prepared.plan.stages
    account = Account(conduct, prepared, limits)

    def work(bench: Bench) -> None:
        loop = prepared.options.loop
        verify_idle(bench, fractions)
        bench.session.preload()
        bench.session.warm_up(loop)
        for number, stage in enumerate(stages):
            plan = Plan(
                fractions=fractions,
                window_seconds=values["window"],
                blocks=values["blocks"],
                budget_seconds=values["budget"] / len(stages),
                seed=prepared.options.seed + 1000 * number,
            )
            measure_phase(bench, stage, loop, plan, lambda measured: account.update(measured, bench))

    folder = conduct.member("squeezed", "free and squeezed windows")
    squeezes = _chosen(values["squeeze"])
    account.finish(on_the_bench(prepared, folder, limits, work, conduct.progress, squeezes))


def _check(request: Request) -> None:
    from rackscope.studies.pressure.limits import parse_limits
    from rackscope.studies.pressure.measure import check_lengths, parse_levels

    parse_levels(request.values["levels"])
    parse_limits(request.values["limit"])
    _chosen(request.values["squeeze"])
    check_lengths(request.values["window"], request.values["blocks"])


def _chosen(names: Sequence[str]) -> list[Squeeze]:
    """Those of these names; all where there are none. Raises UsageError."""
    from rackscope.squeezes import find_squeezes

    return named(names, find_squeezes(), "there is no squeeze", "Squeezes")


STUDY = Study(
    name="pressure",
    help="prove which resources limit a workload, by squeezing one at a time",
    description=(
        "Runs the workload and, window by window, takes away a known part of one resource after the other.\n"
        "If throughput drops, that resource is a bottleneck; the effect (its elasticity) has a 95 % interval. What\n"
        "can be taken away without loss is slack.\n\n"
        "Examples:\n"
        "  rackscope study pressure cache ycsb-b\n"
        "  rackscope study pressure redis redis-stages --limit link=1g --limit memory=512m"
    ),
    conduct=_conduct,
    check=_check,
    options=(
        Option(
            "levels", "text", "fractions of a resource that squeezes leave, largest first", "0.8,0.4", metavar="LIST"
        ),
        Option("squeeze", "text", "make only this squeeze; may be given again", repeated=True, metavar="NAME"),
        Option("window", "duration", "length of one window", "400ms"),
        Option("blocks", "count", "blocks with all squeezes; later blocks only have those still inconclusive", "4"),
        Option("budget", "duration", "measuring time for all stages together", "120s"),
        Option(
            "limit",
            "text",
            "simulate a smaller server: cpu=1.5 (cores), memory=1g, disk=100m (bytes/s), disk-operations=5k, "
            "link=1g (bits/s); may be given again for another",
            repeated=True,
            metavar="NAME=VALUE",
        ),
    ),
    run_defaults={"warm_up_seconds": 2.0, "sample_interval_seconds": 0.05, "repetitions": 1},
)
