"""What ``study tune`` found, as findings, tables, charts and a result for programs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.intervals import Interval
from rackscope.analysis.knobs_value import KnobWorth
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.study import Chart, Finding, StudyRecord, Table
from rackscope.studies.kit import axis, capital, chart, finding, line, note, picked, plain, table_of, warning, when
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
    label, claim = _label(found), found.claim
    return [
        finding(
            f"With {_settings(changes)} {aim.system} gives {_change(claim.ratio(label, DEFAULT))} of {aim.measure} "
            f"against {aim.start} under {aim.workload}: {claim.mean(label).estimate:,.0f} against "
            f"{claim.mean(DEFAULT).estimate:,.0f} operations/s.",
            f"95 % interval over {claim.count} rounds, each from a fresh start of both, none of them from the search.",
        ),
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
        several = found.best is not None and len(found.space.changes(found.best)) > 1
        sentence = "The budget was too short to measure what each change contributes: choose a longer --budget."
        return when(several, warning(sentence))
    same = wording.listing([one.knob for one in worths if one.worth == "does not matter"])
    unclear = wording.listing([one.knob for one in worths if one.worth in ("not shown", "too few pairs")])
    return [
        *(
            finding(capital(one.sentence), "This change alone was reverted, in turns with all changes together.")
            for one in worths
            if one.worth in ("better", "worse")
        ),
        *when(same, note(f"{capital(same)} did not matter: within 2 %.")),
        *when(unclear, note(f"Inconclusive for {unclear}: choose a longer --budget.")),
    ]


def _failures(found: Tuned) -> list[Finding]:
    failed = [trial for trial in found.trials if trial.failed]
    if not failed:
        return []
    shown = "; ".join(f"{_settings(found.space.changes(one.configuration))}: {one.failed}" for one in failed[:3])
    more = f" (and {len(failed) - 3} more)" if len(failed) > 3 else ""
    return [note(f"{len(failed)} of {len(found.trials)} configurations failed: {shown}{more}.")]


def _changes_table(found: Tuned, worths: Sequence[KnobWorth]) -> list[Table]:
    return table_of(
        "changes",
        "What each change of the best configuration contributes",
        worths,
        [
            ("knob", lambda one: one.knob),
            ("from", lambda one: one.before),
            ("to", lambda one: one.after),
            (("times", ""), _times),
            (("low", "", "lower end of the 95 % interval"), lambda one: one.ratio.low),
            (("high", "", "upper end of the 95 % interval"), lambda one: one.ratio.high),
            ("worth", lambda one: one.worth),
            (
                ("kept", "text", "whether it is part of the recommended configuration"),
                lambda one: "yes" if one.knob in answer_changes(found) else "no",
            ),
        ],
        caption="Value with the change divided by value without it, all other changes in place.",
    )


def _times(one: KnobWorth) -> float | None:
    return one.ratio.estimate if one.ratio.count else None


def _trials_table(found: Tuned) -> list[Table]:
    return table_of(
        "trials",
        "The best trials of the search",
        sorted(found.trials, key=lambda trial: -(trial.value or 0.0))[:10],
        [
            ("changes", lambda one: _settings(found.space.changes(one.configuration))),
            (("value", "operations/s"), lambda one: one.value),
            ("failed", lambda one: one.failed or None),
        ],
        caption="One measurement each. They only choose what is measured again.",
    )


def _trials_chart(found: Tuned, aim: Aim) -> list[Chart]:
    known = [(float(number), trial.value) for number, trial in enumerate(found.trials, 1) if trial.value is not None]
    if len(known) < 2:
        return []
    x, values = zip(*known, strict=True)
    series = [line("trial", x, values, "points"), line("best so far", x, list(accumulate(values, max)))]
    caption = f"{aim.measure.capitalize()} of each trial, and the best until then."
    y = axis(aim.measure, "operations/s")
    return [chart("search", "The search", axis("trial"), y, series, caption=caption)]


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
    same = [one.knob for one in worths if one.worth == "does not matter"]
    return {
        "answer": changes if found.answer is not None else None,
        "command": aim.command(changes),
        "measure": aim.measure,
        "unit": "operations/s",
        "ratio": ratio and ratio.estimate,
        "low": ratio and ratio.low,
        "high": ratio and ratio.high,
        "default_value": _mean(found, DEFAULT),
        "answer_value": _mean(found, label),
        "changes": [
            {
                **picked(one, "knob", "before", "after", "worth"),
                "ratio": _times(one),
                **picked(one.ratio, "low", "high"),
            }
            for one in worths
        ],
        "did_not_matter": [name for knob in same for name in ([knob] if knob in found.space.default else found.rest)],
        "left_alone": dict(found.space.left_alone),
        "trials": [
            {"changes": found.space.changes(one.configuration), **picked(one, "value", "failed")}
            for one in found.trials
        ],
        "rounds": {stage: plain(getattr(found, stage)) for stage in ("choice", "parts", "claim")},
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
