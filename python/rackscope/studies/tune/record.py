"""What ``study tune`` found, as findings, tables, charts and a result for programs.

``result``: ``answer`` (knobs to set; empty when nothing helped), ``command``, ``ratio``, ``low`` and ``high`` (of the
answer to the default, with the 95 % interval over rounds), ``unit``, ``default_value``, ``answer_value``, ``changes``
(for each knob of the best found: knob, before, after, ratio, low, high, worth), ``did_not_matter`` (knobs shown to
make no difference within 2 %), ``left_alone`` (knob: reason), ``trials`` (configuration, value, failed), ``rounds``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.intervals import Interval
from rackscope.analysis.knobs_value import KnobWorth
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.study import Chart, Finding, StudyRecord, Table
from rackscope.studies.kit import Row, axis, capital, chart, finding, line, note, table, warning
from rackscope.studies.tune.search import ANSWER, BEST, DEFAULT, Tuned


@dataclass(frozen=True)
class Aim:
    """What is tuned, as sentences name it. ``base`` is the command line of a run as it was before."""

    system: str
    workload: str
    base: tuple[str, ...]
    #: ``throughput``, or ``the rate with p99 below 1 ms``.
    measure: str
    start_is_tuned: bool

    @property
    def start(self) -> str:
        """What changes are counted from."""
        return "the papers' tuned values" if self.start_is_tuned else "the defaults"

    def command(self, changes: Mapping[str, str]) -> str:
        """How to run it with the changes."""
        settings = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
        return shlex.join([*self.base, *settings])


def fill(record: StudyRecord, found: Tuned, aim: Aim) -> None:
    """Replace the record's findings, tables, charts, method and result by what is known now."""
    worths = found.worths()
    record.findings = [*_answer(found, aim), *_parts(found, worths), *_failures(found)]
    record.tables = [*_changes_table(found, worths), *_trials_table(found)]
    record.charts = _trials_chart(found, aim)
    record.method = _method(found, aim)
    record.result = _result(found, aim, worths)


def answer_changes(found: Tuned) -> dict[str, str]:
    """What there is to set in the end."""
    return found.space.changes(found.answer) if found.answer is not None else {}


def _label(found: Tuned) -> str:
    """Under which name the answer was confirmed."""
    return BEST if found.answer == found.best else ANSWER


def _answer(found: Tuned, aim: Aim) -> list[Finding]:
    changes = answer_changes(found)
    if found.answer is None:
        return [_unfinished(found, aim)]
    if not changes:
        return [_nothing_helped(found, aim)]
    label = _label(found)
    ratio = found.claim.ratio(label, DEFAULT)
    before, after = found.claim.mean(DEFAULT).estimate, found.claim.mean(label).estimate
    sentence = (
        f"With {_settings(changes)} {aim.system} gives {_change(ratio)} of {aim.measure} against {aim.start} under "
        f"{aim.workload}: {after:,.0f} against {before:,.0f} operations/s."
    )
    evidence = (
        f"95 % interval over {found.claim.count} rounds, each from a fresh start of both, none of them from the search."
    )
    return [
        finding(sentence, evidence),
        note(f"To run it: {aim.command(changes)}"),
    ]


def _nothing_helped(found: Tuned, aim: Aim) -> Finding:
    nothing = f"Nothing that was tried makes {aim.system} better than {aim.start} under {aim.workload}."
    if len(found.trials) < 2:
        sentence = f"The budget was too short to try anything but {aim.start}: choose a longer --budget."
        return warning(sentence)
    if not found.claim.values:
        return finding(nothing, f"{len(found.trials)} trials; none was worth confirming.")
    ratio = found.claim.ratio(BEST, DEFAULT)
    evidence = (
        f"The best of {len(found.trials)} trials, {_settings(found.space.changes(found.best or {}))}, came to "
        f"{_change(ratio)} when it was measured again in {found.claim.count} rounds."
    )
    if BEST in found.claim.failed:
        return finding(nothing, f"The best of the search failed later: {found.claim.failed[BEST]}.")
    if ratio.high is not None and ratio.high < 1 + packaged_thresholds().limit("comparison.equivalence"):
        return finding(nothing, evidence)
    return warning(
        f"No change was shown to make {aim.system} better than {aim.start} under {aim.workload}: the rounds vary too "
        "much to tell. Use a quieter host or a longer --budget.",
        evidence,
    )


def _unfinished(found: Tuned, aim: Aim) -> Finding:
    best = found.best_trial()
    default = found.trials[0].value if found.trials else None
    if best is None or best.value is None or default is None:
        return finding("No configuration was measured yet.")
    changes = found.space.changes(best.configuration)
    if not changes:
        return finding(f"The best of {len(found.trials)} trials so far is where it started: {aim.start}.")
    return warning(
        f"The best of {len(found.trials)} trials so far is {_settings(changes)}, with {best.value:,.0f} "
        f"operations/s against {default:,.0f} of {aim.start}: not confirmed, and the best of many is partly luck.",
        f"To try it: {aim.command(changes)}",
    )


def _parts(found: Tuned, worths: Sequence[KnobWorth]) -> list[Finding]:
    if found.answer is None:
        return []
    if not found.parts.values:
        if found.best is None or len(found.space.changes(found.best)) < 2:
            return []
        sentence = "The budget was too short to measure what each change contributes: choose a longer --budget."
        return [warning(sentence)]
    findings = [
        finding(capital(one.sentence), "This change alone was reverted, in turns with all changes together.")
        for one in worths
        if one.worth in ("better", "worse")
    ]
    same = [one.knob for one in worths if one.worth == "does not matter"]
    inconclusive = [one.knob for one in worths if one.worth in ("not shown", "too few pairs")]
    if same:
        findings.append(note(f"{capital(wording.listing(same))} did not matter: within 2 %."))
    if inconclusive:
        findings.append(note(f"Inconclusive for {wording.listing(inconclusive)}: choose a longer --budget."))
    return findings


def _failures(found: Tuned) -> list[Finding]:
    failed = [trial for trial in found.trials if trial.failed]
    if not failed:
        return []
    shown = "; ".join(f"{_settings(found.space.changes(one.configuration))}: {one.failed}" for one in failed[:3])
    more = f" (and {len(failed) - 3} more)" if len(failed) > 3 else ""
    return [note(f"{len(failed)} of {len(found.trials)} configurations failed: {shown}{more}.")]


def _changes_table(found: Tuned, worths: Sequence[KnobWorth]) -> list[Table]:
    answer = answer_changes(found)
    rows: list[Row] = [
        [
            one.knob,
            one.before,
            one.after,
            one.ratio.estimate if one.ratio.count else None,
            one.ratio.low,
            one.ratio.high,
            one.worth,
            "yes" if one.knob in answer else "no",
        ]
        for one in worths
    ]
    return table(
        "changes",
        "What each change of the best configuration contributes",
        [
            "knob",
            "from",
            "to",
            ("times", ""),
            ("low", "", "lower end of the 95 % interval"),
            ("high", "", "upper end of the 95 % interval"),
            "worth",
            ("kept", "text", "whether it is part of the recommended configuration"),
        ],
        rows,
        caption="Value with the change divided by value without it, all other changes in place.",
    )


def _trials_table(found: Tuned) -> list[Table]:
    ranked = sorted(found.trials, key=lambda trial: -(trial.value or 0.0))[:10]
    return table(
        "trials",
        "The best trials of the search",
        ["changes", ("value", "operations/s"), "failed"],
        [[_settings(found.space.changes(trial.configuration)), trial.value, trial.failed or None] for trial in ranked],
        caption="One measurement each. They only choose what is measured again.",
    )


def _trials_chart(found: Tuned, aim: Aim) -> list[Chart]:
    known = [(number, trial.value) for number, trial in enumerate(found.trials, 1) if trial.value is not None]
    if len(known) < 2:
        return []
    highest: list[float | None] = []
    for _, value in known:
        highest.append(max(value, *(one for one in highest[-1:] if one is not None), 0.0))
    x = [float(number) for number, _ in known]
    return [
        chart(
            "search",
            "The search",
            axis("trial"),
            axis(aim.measure, "operations/s"),
            [
                line("trial", x, [value for _, value in known], "points"),
                line("best so far", x, highest),
            ],
            caption=f"{aim.measure.capitalize()} of each trial, and the best until then.",
        )
    ]


def _method(found: Tuned, aim: Aim) -> list[str]:
    space = found.space
    searched = wording.listing([f"{one.name} ({', '.join(one.values)})" for one in space.dimensions])
    lines = [
        f"The aim was {aim.measure}; searched were {searched}. {len(found.trials)} trials, each a fresh start of "
        f"{aim.system}: first the defaults and the papers' tuned values, then what a tree-structured Parzen estimator "
        "proposed (optuna, seeded), or every configuration where they are few.",
    ]
    if space.left_alone:
        reasons: dict[str, list[str]] = {}
        for name, reason in space.left_alone.items():
            reasons.setdefault(reason, []).append(name)
        left = "; ".join(f"{wording.listing(names)} ({reason})" for reason, names in reasons.items())
        lines.append(f"Left alone: {left}.")
    lines.append(
        f"The best few were measured again in turns ({found.choice.count} rounds), the changes of the winner were "
        f"reverted one at a time ({found.parts.count} rounds), and what is claimed was measured once more against "
        f"{aim.start} ({found.claim.count} rounds, ABBA order, ratios within rounds, Student's t over rounds)."
    )
    return lines


def _result(found: Tuned, aim: Aim, worths: Sequence[KnobWorth]) -> dict[str, Any]:
    changes = answer_changes(found)
    label = _label(found) if found.answer is not None and changes else DEFAULT
    ratio = found.claim.ratio(label, DEFAULT) if found.claim.values and changes else None
    return {
        "answer": changes if found.answer is not None else None,
        "command": aim.command(changes),
        "measure": aim.measure,
        "unit": "operations/s",
        "ratio": ratio.estimate if ratio else None,
        "low": ratio.low if ratio else None,
        "high": ratio.high if ratio else None,
        "default_value": _mean(found, DEFAULT),
        "answer_value": _mean(found, label),
        "changes": [
            {
                "knob": one.knob,
                "before": one.before,
                "after": one.after,
                "ratio": one.ratio.estimate if one.ratio.count else None,
                "low": one.ratio.low,
                "high": one.ratio.high,
                "worth": one.worth,
            }
            for one in worths
        ],
        "did_not_matter": [
            name
            for one in worths
            if one.worth == "does not matter"
            for name in ([one.knob] if one.knob in found.space.default else found.rest)
        ],
        "left_alone": dict(found.space.left_alone),
        "trials": [
            {"changes": found.space.changes(trial.configuration), "value": trial.value, "failed": trial.failed}
            for trial in found.trials
        ],
        "rounds": {
            stage: {"values": dict(rounds.values), "failed": dict(rounds.failed)}
            for stage, rounds in (("choice", found.choice), ("parts", found.parts), ("claim", found.claim))
        },
    }


def _mean(found: Tuned, label: str) -> float | None:
    return found.claim.mean(label).estimate if found.claim.known(label) else None


def _settings(changes: Mapping[str, str]) -> str:
    return wording.listing([f"{name}={value}" for name, value in changes.items()]) or "no change"


def _change(ratio: Interval) -> str:
    """``12 % more (8.1 % to 16 %)``."""
    if ratio.count == 0:
        return "nothing that could be compared"
    away = ratio.estimate - 1
    said = f"{wording.percent(abs(away))} {'more' if away >= 0 else 'less'}"
    if ratio.low is None or ratio.high is None:
        return said
    return f"{said} ({(ratio.low - 1) * 100:+.1f} % to {(ratio.high - 1) * 100:+.1f} %)"
