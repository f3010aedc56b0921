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

import numpy as np

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.knobs_value import KnobPairs, KnobWorth, value_knobs
from rackscope.analysis.wording import listing
from rackscope.errors import RackscopeError, StudyError
from rackscope.studies.bench.turns import rounds_of
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
        return [value for value in self.values.get(label, []) if value is not None]

    def mean(self, label: str) -> Interval:
        return mean_interval(self.known(label))

    def pairs(self, label: str, to: str) -> list[tuple[float, float]]:
        """The values of two configurations in the rounds in which both have one."""
        both = zip(self.values.get(label, []), self.values.get(to, []), strict=False)
        return [(one, other) for one, other in both if one is not None and other is not None]

    def ratio(self, label: str, to: str) -> Interval:
        """How many times the value of ``to`` that of ``label`` is: by differences of logarithms within rounds."""
        return mean_interval([math.log(one / other) for one, other in self.pairs(label, to)]).exponential()


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
        changes, default = self.space.changes(self.best), self.space.default
        # Without its only change the best found is the default.
        alone = len(changes) == 1 and not self.parts.values
        pairs = [
            KnobPairs(
                name,
                default[name],
                after,
                self.claim.pairs(BEST, DEFAULT) if alone else self.parts.pairs(BEST, without(name)),
            )
            for name, after in changes.items()
        ]
        if REST in self.parts.values:
            before = ", ".join(default[name] for name in self.rest)
            after = ", ".join(self.rest.values())
            pairs.append(KnobPairs(listing(list(self.rest)), before, after, self.parts.pairs(REST, BEST)))
        return value_knobs(pairs)

    def best_trial(self) -> Trial | None:
        """The highest value so far, cursed as it is."""
        return max((trial for trial in self.trials if trial.value), key=lambda trial: trial.value or 0.0, default=None)


@dataclass
class Budget:
    """A length of time, and how much of it is gone; ``clock`` gives seconds."""

    seconds: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.start = self.clock()

    def spent(self) -> float:
        """Share of it that is gone."""
        return (self.clock() - self.start) / self.seconds


@dataclass
class Tuning:
    """The stages, one after the other; ``found`` holds what is known, whatever ends them."""

    space: KnobSpace
    measure: Measure
    budget: Budget
    #: Configurations to try before the search.
    first: Sequence[Configuration] = ()
    seed: int = 1
    on_change: Callable[[], None] = lambda: None
    longest: float = 0.0

    def __post_init__(self) -> None:
        self.found = Tuned(self.space)

    def run(self) -> Tuned:
        """Search, choose, take apart, claim. Raises RackscopeError when the default itself cannot be measured."""
        self._search()
        self._choose()
        if self.found.best is not None and self.space.changes(self.found.best):
            self._take_apart()
            self._claim()
        else:
            self.found.answer = self.space.default
        return self.found

    def _search_until(self) -> float:
        """Share of the budget at which the search ends: sooner where the claim would not fit after it."""
        needed = 1 + 2 * FEWEST_ROUNDS
        return min(SEARCH_UNTIL, 1 - needed * self.longest / self.budget.seconds)

    def _search(self) -> None:
        default = self.space.default
        for configuration in _distinct([default, *self.first]):
            self._try(configuration, "first trials")
        if self.found.trials[0].failed:
            raise StudyError(
                f"the configuration to start from cannot be measured: {self.found.trials[0].failed}",
                "Make 'rackscope run' of it work first.",
            )
        if self.space.size <= _FEW:
            self._try_all()
        else:
            self._try_guided()

    def _try_all(self) -> None:
        dimensions = self.space.dimensions
        names = [dimension.name for dimension in dimensions]
        every = [
            dict(zip(names, values, strict=True)) for values in itertools.product(*(one.values for one in dimensions))
        ]
        tried = [dict(trial.configuration) for trial in self.found.trials]
        for index in np.random.default_rng(self.seed).permutation(len(every)):
            if every[index] not in tried and self._has_time(self._search_until()):
                self._try(every[index], "search")

    def _try_guided(self) -> None:
        model = _Model(self.space, self.seed)
        told: dict[tuple[str, ...], float | None] = {}
        for trial in self.found.trials:
            model.learn(trial)
            told[tuple(trial.configuration.values())] = trial.value
        repeats = 0
        while self._has_time(self._search_until()) and len(told) < self.space.size:
            configuration, tell = model.ask()
            key = tuple(configuration.values())
            repeats = repeats + 1 if key in told else 0
            if key not in told:
                told[key] = self._try(configuration, "search").value
            tell(told[key])
            if repeats >= _RANDOM_TRIALS:
                # The model has made up its mind: something not yet tried tells more than the same again.
                model.suggest(self._at_random(told))
                repeats = 0

    def _at_random(self, told: Mapping[tuple[str, ...], Any]) -> Configuration:
        generator = np.random.default_rng([self.seed, len(told)])
        while True:
            drawn = {d.name: d.values[generator.integers(len(d.values))] for d in self.space.dimensions}
            if tuple(drawn.values()) not in told:
                return drawn

    def _try(self, configuration: Configuration, purpose: str) -> Trial:
        value, failed = self._attempt(configuration, f"{purpose}, trial {len(self.found.trials) + 1}")
        trial = Trial(dict(configuration), value, failed)
        self.found.trials.append(trial)
        self.on_change()
        return trial

    def _attempt(self, configuration: Configuration, purpose: str) -> tuple[float | None, str]:
        started = self.budget.clock()
        try:
            value = self.measure(configuration, purpose)
        except RackscopeError as error:
            return None, error.what
        finally:
            self.longest = max(self.longest, self.budget.clock() - started)
        return (value, "") if value > 0 else (None, "no rate was within the bound")

    def _has_time(self, until: float, measurements: int = 1) -> bool:
        return self.budget.spent() + measurements * self.longest / self.budget.seconds <= until

    def _choose(self) -> None:
        """Measure the best few again, in turns with the default: the best of these goes on."""
        default = self.space.default
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
                name: value for name, value in self.space.changes(few[0]).items() if plain[name] != value
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
        return candidates[min(close, key=lambda label: (len(self.space.changes(candidates[label])), -means[label]))]

    def _without_the_unseen(self, configuration: Configuration) -> Configuration:
        """Only changes whose effect shows over all trials (least squares), to choose what is measured again."""
        known = [trial for trial in self.found.trials if trial.value]
        terms = [
            (dimension.name, value)
            for dimension in self.space.dimensions
            for value in dimension.values
            if value != dimension.default
        ]
        if len(known) < 2 * len(terms):
            return configuration
        rows = [[1.0, *(float(trial.configuration[name] == value) for name, value in terms)] for trial in known]
        values = [math.log(trial.value) for trial in known if trial.value]
        effects = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0][1:]
        seen = {term for term, effect in zip(terms, effects, strict=True) if effect >= _SEEN_IN_SEARCH}
        default = self.space.default
        return {name: value if (name, value) in seen else default[name] for name, value in configuration.items()}

    def _take_apart(self) -> None:
        """Put one change at a time back: what is lost without it is what it is worth."""
        best = self.found.best
        assert best is not None
        default = self.space.default
        changed = list(self.space.changes(best))
        configurations = {BEST: best, **{without(name): {**best, name: default[name]} for name in changed}}
        if self.found.rest:
            configurations[REST] = {**best, **self.found.rest}
        claim = 2 * FEWEST_ROUNDS * self.longest / self.budget.seconds
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
        best, default = self.found.best, self.space.default
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
        label = BEST
        if ANSWER in configurations and ANSWER not in claim.failed:
            more = claim.ratio(BEST, ANSWER).low
            if (more is None or more <= 1) and _is_better(claim, ANSWER):
                label = ANSWER
        return configurations[label if _is_better(claim, label) else DEFAULT]

    def _rounds(
        self, rounds: Rounds, configurations: Mapping[str, Configuration], until: float, *, fewest: int, purpose: str
    ) -> None:
        """Turns of all configurations, each second round backwards, until the share of the budget is spent.

        ``fewest`` are made whatever the budget says. One that breaks is left out from then on.
        """
        for number, order in enumerate(rounds_of(list(configurations), MOST_ROUNDS, self.seed), 1):
            if number > fewest and not self._has_time(until, len(order)):
                break
            for label in order:
                value: float | None = None
                if label not in rounds.failed:
                    value, failed = self._attempt(configurations[label], f"{purpose}: {label}, round {number}")
                    if failed:
                        rounds.failed[label] = failed
                rounds.values.setdefault(label, []).append(value)
            self.on_change()


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


class _Model:
    """A tree-structured Parzen estimator (optuna): learns from trials, and proposes the next."""

    def __init__(self, space: KnobSpace, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            # That a multivariate model may change in a later version is of no interest to users.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=_RANDOM_TRIALS)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._states = optuna.trial.TrialState
        self._ordered = {one.name: one.values for one in space.dimensions if one.ordered}
        self._distributions: dict[str, Any] = {
            one.name: optuna.distributions.IntDistribution(0, len(one.values) - 1)
            if one.ordered
            else optuna.distributions.CategoricalDistribution(one.values)
            for one in space.dimensions
        }

    def learn(self, trial: Trial) -> None:
        """Take in a trial that was made."""
        from optuna.trial import create_trial

        state = self._states.FAIL if trial.value is None else self._states.COMPLETE
        parameters = self._parameters(trial.configuration)
        made = create_trial(state=state, value=trial.value, params=parameters, distributions=self._distributions)
        self._study.add_trial(made)

    def suggest(self, configuration: Configuration) -> None:
        """Have it proposed next."""
        self._study.enqueue_trial(self._parameters(configuration))

    def ask(self) -> tuple[dict[str, str], Callable[[float | None], None]]:
        """A configuration, and what takes in its value; ``None`` where it failed."""
        asked = self._study.ask(self._distributions)
        shown = {name: self._ordered[name][at] if name in self._ordered else at for name, at in asked.params.items()}

        def tell(value: float | None) -> None:
            self._study.tell(asked, value, state=self._states.FAIL if value is None else None)

        return {name: shown[name] for name in self._distributions}, tell

    def _parameters(self, configuration: Configuration) -> dict[str, Any]:
        ordered = {name: values.index(configuration[name]) for name, values in self._ordered.items()}
        return {**configuration, **ordered}
