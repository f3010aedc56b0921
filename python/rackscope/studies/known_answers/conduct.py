"""From what is asked of ``study known-answers`` to what is measured and said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rackscope.analysis.classification import NONE, macro_f1, score_labels
from rackscope.analysis.pressure import PhaseJudgement, judge_phase
from rackscope.errors import UsageError, named
from rackscope.runs.options import Progress, RunOptions
from rackscope.runs.prepare import prepare
from rackscope.squeezes import find_squeezes
from rackscope.squeezes.dram_bandwidth import RegulatedChannel
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.session import Bench, on_the_bench
from rackscope.studies.kit import finding, interference_findings, picked, table_of, warning
from rackscope.studies.known_answers.cases import CASES, Case
from rackscope.studies.pressure.measure import Plan, check_lengths, measure_phase, parse_levels

#: Resources that the cases are about; a host's last-level cache cannot be made part of a known answer.
_JUDGED = ("cpu", "dram_capacity", "dram_bandwidth", "disk", "network")
#: One squeeze a resource and direction: a core count or a clock is no capacity of the small server.
_SQUEEZES = ("cpu_share", "dram_capacity", "disk_bandwidth", "disk_operations", "network_in", "network_out")


def conduct(conduct: Conduct) -> None:
    cases = _chosen(conduct.request.values["case"])
    repetitions = conduct.request.values["repeat"]
    rows: list[dict[str, Any]] = []
    for repetition in range(1, repetitions + 1):
        # All cases, then all again: what drifts on this host does not fall on one of them alone.
        for number, case in enumerate(cases):
            rows += _judge_case(conduct, case, repetition, 1 + 1000 * repetition + number)
            _write(conduct, rows, repetitions)


def check(request: Request) -> None:
    parse_levels(request.values["levels"], fewest=1)
    _chosen(request.values["case"])
    if request.values["repeat"] < 1:
        raise UsageError("invalid --repeat: the cases must be judged at least once", "Choose --repeat 1 or more.")
    check_lengths(request.values["window"], request.values["blocks"])


def _chosen(names: Sequence[str]) -> list[Case]:
    return named(names, CASES, "there is no case", "Cases")


def _judge_case(conduct: Conduct, case: Case, repetition: int, seed: int) -> list[dict[str, Any]]:
    values, label = conduct.request.values, f"{case.name}, repetition {repetition}"
    rows: list[dict[str, Any]] = []

    def progress(step: Progress) -> None:
        conduct.progress(replace(step, activity=f"{label}: {step.activity}"))

    prepared = prepare(_options(case, seed), progress)

    def work(bench: Bench) -> None:
        for number, stage in enumerate(prepared.plan.stages):
            plan = Plan(
                fractions=parse_levels(values["levels"], fewest=1),
                window_seconds=values["window"],
                blocks=values["blocks"],
                budget_seconds=values["budget"],
                seed=seed + number,
                seeks_slack=False,
            )
            measured = measure_phase(bench, stage, prepared.options.loop, plan)
            seen, bench.interference = bench.interference, Interference()
            rows.append(
                {
                    **_row(case, stage.name, repetition, judge_phase(measured.estimates, bench.resources)),
                    "windows": seen.windows - seen.discarded,
                    "disturbed": seen.kept,
                    "reasons": sorted(seen.reasons),
                }
            )

    folder = conduct.member(f"{case.name}-{repetition}", label)
    squeezes = [squeeze for squeeze in find_squeezes() if squeeze.name in _SQUEEZES]
    squeezes += [RegulatedChannel()] if case.channel else []
    on_the_bench(prepared, folder, case.limits, work, progress, squeezes=squeezes)
    return rows


def _options(case: Case, seed: int) -> RunOptions:
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


def _row(case: Case, phase: str, repetition: int, judgement: PhaseJudgement) -> dict[str, Any]:
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


def _and(labels: Sequence[str]) -> str:
    return " and ".join(labels) or "no verdict"


def _write(conduct: Conduct, rows: Sequence[dict[str, Any]], repetitions: int) -> None:
    record = conduct.record
    scores = score_labels([(row["expected"], row["found"]) for row in rows])
    mean = macro_f1(scores) or 0.0
    seen = Interference(
        windows=sum(row["windows"] for row in rows),
        kept=sum(row["disturbed"] for row in rows),
        reasons={reason for row in rows for reason in row["reasons"]},
    )
    right = sum(row["right"] for row in rows)
    record.findings = [
        finding(
            f"{right} of {len(rows)} phases with a known limit were judged correctly: macro-F1 {mean:.3f}",
            f"{len({row['case'] for row in rows})} workloads, {len(scores)} labels",
        ),
        *(
            warning(
                f"{row['case']}, {row['phase']}, repetition {row['repetition']}: expected {_and(row['expected'])}, "
                f"found {_and(row['found'])}",
                "; ".join(row["squeezes"]),
            )
            for row in rows
            if not row["right"]
        ),
        *interference_findings(seen, "Judge the verdicts on a quiet host."),
    ]
    record.tables = [
        *table_of(
            "labels",
            "Labels",
            scores,
            [
                ("label", lambda one: one.label),
                (("F1", ""), lambda one: one.f1),
                (("precision", ""), lambda one: one.precision),
                (("recall", ""), lambda one: one.recall),
            ],
        ),
        *table_of(
            "phases",
            "Phases",
            rows,
            [
                ("case", lambda row: row["case"]),
                ("phase", lambda row: row["phase"]),
                ("expected", lambda row: _and(row["expected"])),
                ("found", lambda row: _and(row["found"])),
                (("repetition", "count"), lambda row: row["repetition"]),
                ("right", lambda row: row["right"]),
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
        "labels": [picked(one, "label", "f1", "precision", "recall") for one in scores],
        "phases": list(rows),
    }
    conduct.save()
