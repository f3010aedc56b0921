"""How often the measured stages run: a fixed number, or until each interval is tight or the budget is spent."""

from __future__ import annotations

from rackscope.analysis.intervals import StoppingDecision, decide_stopping, mean_interval, relative_half_width
from rackscope.runs.manifest import RepetitionPart
from rackscope.runs.options import RunOptions
from rackscope.workloads import PhasePlan

#: Below three repetitions an interval says next to nothing.
_FEWEST = 3


class Repetition:
    """Counts repetitions of all stages and decides when there are enough."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._throughputs: dict[str, list[float]] = {}
        self._begun = 0
        self._spent_seconds = 0.0
        self._reason = ""

    @staticmethod
    def minimum(options: RunOptions) -> int:
        """The fewest repetitions that this run makes."""
        return options.repetitions or _FEWEST

    def begin(self) -> int:
        """Number of the repetition that starts now, from 1."""
        self._begun += 1
        return self._begun

    def add(self, stage: str, throughput: float, seconds: float) -> None:
        """What one stage of the repetition gave."""
        self._throughputs.setdefault(stage, []).append(throughput)
        self._spent_seconds += seconds

    def is_over(self) -> bool:
        """Whether no further repetition is needed or affordable."""
        done, fixed = self._begun, self._options.repetitions
        if fixed is not None:
            if done < fixed:
                return False
            self._reason = f"{fixed} repetitions were asked for"
            return True
        if done < _FEWEST:
            return False
        decisions = [self._decide(values) for values in self._throughputs.values()]
        if all(decision.stop for decision in decisions):
            self._reason = max(decisions, key=lambda decision: decision.half_width or 0.0).reason
            return True
        per_repetition = self._spent_seconds / done
        if self._spent_seconds + per_repetition > self._options.budget_seconds * 1.001:
            self._reason = f"the budget of {self._options.budget_seconds:g} s of measuring was spent"
            return True
        return False

    def half_width(self) -> float | None:
        """Relative half width of the widest stage's 95 % interval; ``None`` while some stage has none."""
        sequential = self._options.repetitions is None
        widths = [
            relative_half_width(mean_interval(values, sequential=sequential)) for values in self._throughputs.values()
        ]
        known = [width for width in widths if width is not None]
        return max(known) if known and len(known) == len(widths) else None

    def describe(self, part: RepetitionPart) -> None:
        """Write what happened into the manifest's part."""
        part.achieved = min((len(values) for values in self._throughputs.values()), default=0)
        part.stopping_reason = self._reason
        part.relative_half_width = self.half_width()

    def activity(self, plan: PhasePlan, repetition: int) -> str:
        """What the progress line calls a repetition of a stage."""
        fixed = self._options.repetitions
        return f"{plan.name}, repetition {repetition}" + (f" of {fixed}" if fixed else "")

    def _decide(self, values: list[float]) -> StoppingDecision:
        return decide_stopping(
            values, wanted_half_width=self._options.target_relative_half_width, minimum=_FEWEST, maximum=None
        )
