"""The search for a better configuration, and what is left of it when it is measured again. Runs nothing by itself.

What is measured arrives as a function, so that the whole procedure can be tried on a made-up system. The best of many
noisy trials is better than it deserves to be (the winner's curse), so trials choose and never claim: every stage after
the search measures anew, all configurations of a stage in turns, each time from a fresh start.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.knobs_value import KnobPairs, KnobWorth, value_knobs
from rackscope.analysis.multiple import interleave
from rackscope.analysis.wording import listing
from rackscope.errors import RackscopeError, StudyError
from rackscope.studies.tune.knob_space import KnobSpace

Configuration = Mapping[str, str]
#: What a configuration gave, measured from a fresh start; higher is better. Raises RackscopeError when it broke.
Measure = Callable[[Configuration, str], float]

DEFAULT, BEST, ANSWER = "default", "best found", "answer"
#: The best found with the changes that the search saw nothing of, all of them together.
REST = "with the rest"
#: Shares of the budget up to whose end each stage may go on; the claim has the rest.
SEARCH_UNTIL, CHOICE_UNTIL, PARTS_UNTIL = 0.45, 0.53, 0.85
#: How many of the best trials are measured again.
_CANDIDATES = 3
#: So few configurations are all tried, without a model of them.
_FEW = 12
#: An interval of fewer rounds says next to nothing.
FEWEST_ROUNDS, MOST_ROUNDS = 3, 12
#: Changes whose effect in the search's trials is below this (of the logarithm) are put back before anything else.
_SEEN_IN_SEARCH = 0.01
#: Of two candidates this close the one with fewer changes is chosen.
_CLOSE = 0.02
#: Trials at random before the model guides them.
_RANDOM_TRIALS = 8


@dataclass(frozen=True)
class Trial:
    """One configuration, tried once: its value, or why it has none."""

    configuration: Configuration
    value: float | None
    failed: str = ""


@dataclass
class Rounds:
    """Values of several configurations that took turns, round by round; a round that broke holds ``None``."""

    values: dict[str, list[float | None]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Rounds that were begun and ended."""
        return max((len(values) for values in self.values.values()), default=0)

    def known(self, label: str) -> list[float]:
        """The values of one configuration."""
        return [value for value in self.values.get(label, []) if value is not None]

    def mean(self, label: str) -> Interval:
        """Mean of one configuration."""
        return mean_interval(self.known(label))

    def ratio(self, label: str, to: str) -> Interval:
        """How many times the value of ``to`` that of ``label`` is.

        The mean of the logarithms' differences within rounds, so that what changed between rounds falls out.
        """
        pairs = zip(self.values.get(label, []), self.values.get(to, []), strict=False)
        logs = [math.log(one / other) for one, other in pairs if one and other]
        interval = mean_interval(logs)
        if interval.low is None or interval.high is None:
            return Interval(math.exp(interval.estimate), None, None, 0.95, interval.count)
        low, middle, high = (math.exp(value) for value in (interval.low, interval.estimate, interval.high))
        return Interval(middle, low, high, 0.95, interval.count)


@dataclass
class Tuned:
    """Everything that was found, as far as it came."""

    space: KnobSpace
    trials: list[Trial] = field(default_factory=list)
    candidates: dict[str, Configuration] = field(default_factory=dict)
    choice: Rounds = field(default_factory=Rounds)
    best: Configuration | None = None
    #: Changes of the trial that ``best`` comes from, of which the search's trials showed nothing.
    rest: dict[str, str] = field(default_factory=dict)
    parts: Rounds = field(default_factory=Rounds)
    #: The changes that were shown to be worth something.
    kept: tuple[str, ...] = ()
    answer: Configuration | None = None
    claim: Rounds = field(default_factory=Rounds)

    def worths(self) -> list[KnobWorth]:
        """What each change of the best found is worth, most valuable first."""
        if self.best is None:
            return []
        changes = self.space.changes(self.best)
        pairs = []
        for name, after in changes.items():
            # Without its only change the best found is the default.
            alone = len(changes) == 1 and not self.parts.values
            rounds, other_label = (self.claim, DEFAULT) if alone else (self.parts, without(name))
            both = zip(rounds.values.get(BEST, []), rounds.values.get(other_label, []), strict=False)
            known = [(one, other) for one, other in both if one is not None and other is not None]
            pairs.append(KnobPairs(name, self.space.default[name], after, known))
        if REST in self.parts.values:
            both = zip(self.parts.values[REST], self.parts.values[BEST], strict=False)
            known = [(one, other) for one, other in both if one is not None and other is not None]
            before = ", ".join(self.space.default[name] for name in self.rest)
            pairs.append(KnobPairs(listing(list(self.rest)), before, ", ".join(self.rest.values()), known))
        return value_knobs(pairs)

    def best_trial(self) -> Trial | None:
        """The highest value so far, cursed as it is."""
        return max((trial for trial in self.trials if trial.value), key=lambda trial: trial.value or 0.0, default=None)


class Budget:
    """A length of time, and how much of it is gone; ``clock`` gives seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._start = clock()

    def spent(self) -> float:
        """Share of it that is gone."""
        return (self._clock() - self._start) / self.seconds

    def now(self) -> float:
        """The clock."""
        return self._clock()


class Tuning:
    """The stages, one after the other; ``found`` holds what is known, whatever ends them."""

    def __init__(
        self,
        space: KnobSpace,
        measure: Measure,
        budget: Budget,
        *,
        first: Sequence[Configuration] = (),
        seed: int = 1,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.found = Tuned(space)
        self._measure = measure
        self._budget = budget
        self._first = list(first)
        self._seed = seed
        self._on_change = on_change
        self._longest = 0.0

    def run(self) -> Tuned:
        """Search, choose, take apart, claim. Raises RackscopeError when the default itself cannot be measured."""
        self._search()
        self._choose()
        if self.found.best is not None and self.found.space.changes(self.found.best):
            self._take_apart()
            self._claim()
        else:
            self.found.answer = self.found.space.default
        return self.found

    def _search_until(self) -> float:
        """Share of the budget at which the search ends: sooner where the claim would not fit after it."""
        needed = 1 + 2 * FEWEST_ROUNDS
        return min(SEARCH_UNTIL, 1 - needed * self._longest / self._budget.seconds)

    def _search(self) -> None:
        default = self.found.space.default
        for configuration in _distinct([default, *self._first]):
            self._try(configuration, "first trials")
        if self.found.trials[0].failed:
            raise StudyError(
                f"the configuration to start from cannot be measured: {self.found.trials[0].failed}",
                "Make 'rackscope run' of it work first.",
            )
        if self.found.space.size <= _FEW:
            self._try_all()
        else:
            self._try_guided()

    def _try_all(self) -> None:

        import numpy as np

        dimensions = self.found.space.dimensions
        every = [
            dict(zip((dimension.name for dimension in dimensions), values, strict=True))
            for values in itertools.product(*(dimension.values for dimension in dimensions))
        ]
        tried = [dict(trial.configuration) for trial in self.found.trials]
        for index in np.random.default_rng(self._seed).permutation(len(every)):
            if every[index] not in tried and self._has_time(self._search_until()):
                self._try(every[index], "search")

    def _try_guided(self) -> None:
        optimizer = _optimizer(self._seed)
        told: dict[tuple[str, ...], float | None] = {}
        for trial in self.found.trials:
            self._enqueue(optimizer, trial.configuration)
        repeats = 0
        while self._has_time(self._search_until()) and len(told) < self.found.space.size:
            asked = optimizer.ask()
            configuration = self._suggested(asked)
            key = tuple(configuration.values())
            if key not in told:
                known = next((trial for trial in self.found.trials if trial.configuration == configuration), None)
                trial = known or self._try(configuration, "search")
                told[key] = trial.value
                repeats = 0
            else:
                repeats += 1
            self._tell(optimizer, asked, told[key])
            if repeats >= _RANDOM_TRIALS:
                # The model has made up its mind: something not yet tried tells more than the same again.
                self._enqueue(optimizer, self._at_random(told))
                repeats = 0

    def _suggested(self, asked: Any) -> dict[str, str]:
        configuration = {}
        for dimension in self.found.space.dimensions:
            if dimension.ordered:
                configuration[dimension.name] = dimension.values[
                    asked.suggest_int(dimension.name, 0, len(dimension.values) - 1)
                ]
            else:
                configuration[dimension.name] = asked.suggest_categorical(dimension.name, dimension.values)
        return configuration

    def _enqueue(self, optimizer: Any, configuration: Configuration) -> None:
        optimizer.enqueue_trial(
            {
                dimension.name: dimension.values.index(configuration[dimension.name])
                if dimension.ordered
                else configuration[dimension.name]
                for dimension in self.found.space.dimensions
            }
        )

    def _tell(self, optimizer: Any, asked: Any, value: float | None) -> None:
        from optuna.trial import TrialState

        if value is None:
            optimizer.tell(asked, state=TrialState.FAIL)
        else:
            optimizer.tell(asked, value)

    def _at_random(self, told: Mapping[tuple[str, ...], Any]) -> Configuration:
        import numpy as np

        generator = np.random.default_rng([self._seed, len(told)])
        while True:
            drawn = {d.name: d.values[generator.integers(len(d.values))] for d in self.found.space.dimensions}
            if tuple(drawn.values()) not in told:
                return drawn

    def _try(self, configuration: Configuration, purpose: str) -> Trial:
        value, failed = self._attempt(configuration, f"{purpose}, trial {len(self.found.trials) + 1}")
        trial = Trial(dict(configuration), value, failed)
        self.found.trials.append(trial)
        self._on_change()
        return trial

    def _attempt(self, configuration: Configuration, purpose: str) -> tuple[float | None, str]:
        started = self._budget.now()
        try:
            value = self._measure(configuration, purpose)
        except RackscopeError as error:
            return None, error.what
        finally:
            self._longest = max(self._longest, self._budget.now() - started)
        return (value, "") if value > 0 else (None, "no rate was within the bound")

    def _has_time(self, until: float, measurements: int = 1) -> bool:
        return self._budget.spent() + measurements * self._longest / self._budget.seconds <= until

    def _choose(self) -> None:
        """Measure the best few again, in turns with the default: the best of these goes on."""
        default = self.found.space.default
        ranked = sorted((t for t in self.found.trials if t.value), key=lambda t: -(t.value or 0.0))
        few = [t.configuration for t in ranked if t.configuration != default][:_CANDIDATES]
        if not few:
            self.found.candidates = {DEFAULT: default}
            return
        plain = self._without_the_unseen(few[0])
        pool = _distinct([plain, *few]) if plain != default else few
        self.found.candidates = {f"candidate {number}": one for number, one in enumerate(pool, 1)}
        chosen = pool[0] if len(pool) == 1 else self._best_of(self.found.candidates)
        if chosen is None:
            return
        self.found.best = chosen
        if chosen == plain:
            self.found.rest = {
                name: value for name, value in self.found.space.changes(few[0]).items() if plain[name] != value
            }

    def _best_of(self, candidates: Mapping[str, Configuration]) -> Configuration | None:
        """The best when measured again, in turns; of those close to it the one with the fewest changes.

        The first of them where the budget leaves no time for that.
        """
        self._rounds(self.found.choice, candidates, CHOICE_UNTIL, fewest=0, purpose="choosing")
        means = {
            label: self.found.choice.mean(label).estimate
            for label in candidates
            if label not in self.found.choice.failed and self.found.choice.known(label)
        }
        if not means:
            left = [label for label in candidates if label not in self.found.choice.failed]
            return candidates[left[0]] if left else None
        close = [label for label, mean in means.items() if mean >= max(means.values()) * (1 - _CLOSE)]
        return candidates[
            min(close, key=lambda label: (len(self.found.space.changes(candidates[label])), -means[label]))
        ]

    def _without_the_unseen(self, configuration: Configuration) -> Configuration:
        """Only the changes whose effect shows over all trials of the search (least squares, one term a value).

        It sees what many trials have in common and no interactions: good enough to choose what is measured again.
        """
        import numpy as np

        known = [trial for trial in self.found.trials if trial.value]
        terms = [
            (dimension.name, value)
            for dimension in self.found.space.dimensions
            for value in dimension.values
            if value != dimension.default
        ]
        if len(known) < 2 * len(terms):
            return configuration
        rows = [[1.0, *(float(trial.configuration[name] == value) for name, value in terms)] for trial in known]
        values = [math.log(trial.value) for trial in known if trial.value]
        effects = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0][1:]
        seen = {term for term, effect in zip(terms, effects, strict=True) if effect >= _SEEN_IN_SEARCH}
        default = self.found.space.default
        return {name: value if (name, value) in seen else default[name] for name, value in configuration.items()}

    def _take_apart(self) -> None:
        """Put one change at a time back: what is lost without it is what it is worth."""
        best = self.found.best
        assert best is not None
        default = self.found.space.default
        changed = list(self.found.space.changes(best))
        configurations = {BEST: best, **{without(name): {**best, name: default[name]} for name in changed}}
        if self.found.rest:
            configurations[REST] = {**best, **self.found.rest}
        claim = 2 * FEWEST_ROUNDS * self._longest / self._budget.seconds
        if len(configurations) <= 2 or not self._has_time(1 - claim, FEWEST_ROUNDS * len(configurations)):
            # Without its one change it is the default, which the claim compares it with.
            self.found.kept = tuple(changed)
            return
        self._rounds(self.found.parts, configurations, PARTS_UNTIL, fewest=FEWEST_ROUNDS, purpose="taking apart")
        needed = {one.knob for one in self.found.worths() if one.worth == "better"}
        # What does not even run without a change needs it.
        failed = self.found.parts.failed
        self.found.kept = tuple(name for name in changed if name in needed or without(name) in failed)

    def _claim(self) -> None:
        """The default, everything that was found, and what is left of that, measured once more in turns."""
        best, default = self.found.best, self.found.space.default
        assert best is not None
        kept = {name: best[name] if name in self.found.kept else value for name, value in default.items()}
        configurations = {DEFAULT: default, BEST: best}
        if kept not in (default, best):
            configurations[ANSWER] = kept
        self._rounds(self.found.claim, configurations, 1.0, fewest=FEWEST_ROUNDS, purpose="confirming")
        self.found.answer = self._answer(configurations)

    def _answer(self, configurations: Mapping[str, Configuration]) -> Configuration:
        """The fewest changes that are as good as all of them, where those are better than none."""
        claim = self.found.claim
        few = configurations.get(ANSWER)
        if few is not None and ANSWER not in claim.failed:
            more = claim.ratio(BEST, ANSWER).low
            if more is None or more <= 1:
                return few if _is_better(claim, ANSWER) else self._all_or_nothing(configurations)
        return self._all_or_nothing(configurations)

    def _all_or_nothing(self, configurations: Mapping[str, Configuration]) -> Configuration:
        return configurations[BEST] if _is_better(self.found.claim, BEST) else configurations[DEFAULT]

    def _rounds(
        self, rounds: Rounds, configurations: Mapping[str, Configuration], until: float, *, fewest: int, purpose: str
    ) -> None:
        """Turns of all configurations, each second round backwards, until the share of the budget is spent.

        ``fewest`` are made whatever the budget says. One that breaks is left out from then on.
        """
        order = interleave(list(configurations), MOST_ROUNDS, self._seed)
        size = len(configurations)
        for number in range(MOST_ROUNDS):
            if number >= fewest and not self._has_time(until, size):
                break
            got: dict[str, float | None] = {}
            for label in order[number * size : (number + 1) * size]:
                if label in rounds.failed:
                    got[label] = None
                    continue
                what = f"{purpose}: {label}, round {number + 1}"
                got[label], failed = self._attempt(configurations[label], what)
                if failed:
                    rounds.failed[label] = failed
            for label, value in got.items():
                rounds.values.setdefault(label, []).append(value)
            self._on_change()


def without(name: str) -> str:
    """Label of the best found with one knob put back."""
    return f"without {name}"


def _is_better(claim: Rounds, label: str) -> bool:
    low = claim.ratio(label, DEFAULT).low
    return label not in claim.failed and low is not None and low > 1


def _distinct(configurations: Sequence[Configuration]) -> list[Configuration]:
    distinct: list[Configuration] = []
    for configuration in configurations:
        if configuration not in distinct:
            distinct.append(configuration)
    return distinct


def _optimizer(seed: int) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # That a multivariate model may change in a later version is of no interest to users.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=_RANDOM_TRIALS)
    return optuna.create_study(direction="maximize", sampler=sampler)
