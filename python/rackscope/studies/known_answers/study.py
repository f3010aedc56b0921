"""``study known-answers``: whether rackscope's own verdicts are right, on workloads whose limit is built in.

``StudyRecord.result``::

    {"macro_f1", "repetitions",
     "labels": [{"label", "f1", "precision", "recall"}],
     "phases": [{"case", "phase", "repetition", "expected": [label], "found": [label], "right": bool,
                 "sentence", "inconclusive": [resource], "squeezes": [sentence], "windows", "disturbed", "reasons"}]}

Labels are resources of ``squeezes/base.py`` and ``none``. ``disturbed`` is how many of the ``windows`` that count
were measured under interference, which ``reasons`` describe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study
from rackscope.studies.kit import finding, interference_findings, table, warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rackscope.analysis.pressure import PhaseJudgement
    from rackscope.runs.options import RunOptions
    from rackscope.studies.bench.session import Bench
    from rackscope.studies.known_answers.cases import Case

#: Resources that the cases are about; a host's last-level cache cannot be made part of a known answer.
_JUDGED = ("cpu", "dram_capacity", "dram_bandwidth", "disk", "network")


def _conduct(conduct: Conduct) -> None:
    cases = _chosen(conduct.request.values["case"])
    repetitions = conduct.request.values["repeat"]
    rows: list[dict[str, Any]] = []
    for repetition in range(1, repetitions + 1):
        # All cases, then all again: what drifts on this host does not fall on one of them alone.
        for number, case in enumerate(cases):
            seed = 1 + 1000 * repetition + number
            rows += _judge_case(conduct, case, repetition, seed)
            _write(conduct, rows, repetitions)


def _check(request: Request) -> None:
    from rackscope.studies.pressure.measure import check_lengths, parse_levels

    parse_levels(request.values["levels"], fewest=1)
    _chosen(request.values["case"])
    if request.values["repeat"] < 1:
        raise UsageError("invalid --repeat: the cases must be judged at least once", "Choose --repeat 1 or more.")
    check_lengths(request.values["window"], request.values["blocks"])


def _chosen(names: Sequence[str]) -> list[Case]:
    from rackscope.studies.known_answers.cases import CASES

    by_name = {case.name: case for case in CASES}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise UsageError(f"there is no case '{unknown[0]}'", f"Cases are {', '.join(by_name)}.")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(CASES)


def _judge_case(conduct: Conduct, case: Case, repetition: int, seed: int) -> list[dict[str, Any]]:
    from rackscope.analysis.pressure import judge_phase
    from rackscope.runs.options import Progress
    from rackscope.runs.prepare import prepare
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.bench.session import on_the_bench
    from rackscope.studies.pressure.measure import Plan, measure_phase, parse_levels

    values = conduct.request.values
    rows: list[dict[str, Any]] = []

    def progress(step: Progress) -> None:
        conduct.progress(replace(step, activity=f"{case.name}, repetition {repetition}: {step.activity}"))

    prepared = prepare(_options(case, seed), progress)

    def work(bench: Bench) -> None:
        loop = prepared.options.loop
        for number, stage in enumerate(prepared.plan.stages):
            plan = Plan(
                fractions=parse_levels(values["levels"], fewest=1),
                window_seconds=values["window"],
                blocks=values["blocks"],
                budget_seconds=values["budget"],
                seed=seed + number,
                seeks_slack=False,
            )
            measured = measure_phase(bench, stage, loop, plan)
            resources = {name: one.squeeze.resource for name, one in bench.squeezables.items()}
            judgement = judge_phase(measured.estimates, resources)
            seen = bench.interference
            bench.interference = Interference()
            rows.append(
                {
                    **_row(case, stage.name, repetition, judgement),
                    "windows": seen.windows - seen.discarded,
                    "disturbed": seen.kept,
                    "reasons": sorted(seen.reasons),
                }
            )

    folder = conduct.member(f"{case.name}-{repetition}", f"{case.name}, repetition {repetition}")
    on_the_bench(prepared, folder, case.limits, work, progress, squeezes=_squeezes(case))
    return rows


def _options(case: Case, seed: int) -> RunOptions:
    from rackscope.runs.options import RunOptions

    return RunOptions(
        system="synthetic",
        workload=case.workload,
        settings=case.settings,
        connections=case.connections,
        warm_up_seconds=0.0,
        repetitions=1,
        sample_interval_seconds=0.05,
        seed=seed,
        verify=False,
        fetch=False,
    )


def _squeezes(case: Case) -> list[Any]:
    from rackscope.squeezes import find_squeezes
    from rackscope.squeezes.dram_bandwidth import RegulatedChannel

    # One squeeze a resource and direction: a core count or a clock is no capacity of the small server.
    wanted = ("cpu_share", "dram_capacity", "disk_bandwidth", "disk_operations", "network_in", "network_out")
    squeezes: list[Any] = [squeeze for squeeze in find_squeezes() if squeeze.name in wanted]
    return [*squeezes, RegulatedChannel()] if case.channel else squeezes


def _row(case: Case, phase: str, repetition: int, judgement: PhaseJudgement) -> dict[str, Any]:
    from rackscope.analysis.classification import NONE

    expected = sorted(case.expected[phase]) or [NONE]
    found = sorted(set(judgement.limits) & set(_JUDGED)) or ([NONE] if judgement.none_limits else [])
    return {
        "case": case.name,
        "phase": phase,
        "repetition": repetition,
        "expected": expected,
        "found": found,
        "right": expected == found,
        "sentence": judgement.sentence,
        "inconclusive": [one.resource for one in judgement.resources if one.verdict == "inconclusive"],
        "squeezes": [one.sentence for one in judgement.squeezes],
    }


def _write(conduct: Conduct, rows: Sequence[dict[str, Any]], repetitions: int) -> None:
    from rackscope.analysis.classification import macro_f1, score_labels
    from rackscope.studies.bench.interference import Interference

    record = conduct.record
    scores = score_labels([(row["expected"], row["found"]) for row in rows])
    mean = macro_f1(scores) or 0.0
    right = sum(row["right"] for row in rows)
    record.findings = [
        finding(
            f"{right} of {len(rows)} phases with a known limit were judged correctly: macro-F1 {mean:.3f}",
            f"{len({row['case'] for row in rows})} workloads, {len(scores)} labels",
        )
    ]
    record.findings += [
        warning(
            f"{row['case']}, {row['phase']}, repetition {row['repetition']}: expected "
            f"{' and '.join(row['expected'])}, found {' and '.join(row['found']) or 'no verdict'}",
            "; ".join(row["squeezes"]),
        )
        for row in rows
        if not row["right"]
    ]
    disturbed, windows = sum(row["disturbed"] for row in rows), sum(row["windows"] for row in rows)
    seen = Interference(windows=windows, kept=disturbed, reasons={reason for row in rows for reason in row["reasons"]})
    record.findings += interference_findings(seen, "Judge the verdicts on a quiet host.")
    record.tables = [
        *table(
            "labels",
            "Labels",
            [
                "label",
                ("F1", ""),
                ("precision", ""),
                ("recall", ""),
            ],
            [[score.label, score.f1, score.precision, score.recall] for score in scores],
        ),
        *table(
            "phases",
            "Phases",
            ["case", "phase", "expected", "found", ("repetition", "count"), "right"],
            [
                [
                    *(row["case"], row["phase"], " and ".join(row["expected"])),
                    *(" and ".join(row["found"]) or "no verdict", row["repetition"], row["right"]),
                ]
                for row in rows
            ],
        ),
    ]
    record.method = [
        "Each workload runs as if on a small server, whose capacities are set by control groups and a token bucket, "
        "and is squeezed as in 'study pressure'. Memory bandwidth is that of a regulated channel which the workload "
        "draws from byte by byte: the cores of many hosts cannot exhaust their DRAM.",
        "A label is true or found phase by phase; macro-F1 is the unweighted mean of the labels' F1. An inconclusive "
        "verdict counts as not found.",
    ]
    record.result = {
        "macro_f1": mean,
        "repetitions": repetitions,
        "labels": [
            {"label": one.label, "f1": one.f1, "precision": one.precision, "recall": one.recall} for one in scores
        ],
        "phases": list(rows),
    }
    conduct.save()


STUDY = Study(
    name="known-answers",
    help="check the verdicts of 'study pressure' on workloads with a known limit",
    description=(
        "Runs workloads that are limited by a known resource, or by none, and judges them as 'study pressure' does.\n"
        "The fraction of correct verdicts shows how far verdicts on this host can be trusted."
    ),
    conduct=_conduct,
    check=_check,
    subject="none",
    options=(
        Option("repeat", "count", "number of times all cases are judged", "1"),
        Option("case", "text", "only this case; may be repeated", repeated=True, metavar="NAME"),
        Option(
            "levels", "text", "fractions of a resource that squeezes leave; the largest decides", "0.6", metavar="LIST"
        ),
        Option("window", "duration", "length of one window", "250ms"),
        Option("blocks", "count", "blocks with all squeezes; later blocks only have those still inconclusive", "3"),
        Option("budget", "duration", "measuring time of one phase", "60s"),
    ),
)
