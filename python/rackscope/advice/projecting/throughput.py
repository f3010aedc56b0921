"""Throughput on a server that is not here: which model the runs allow, and what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

import numpy as np
from scipy.special import stdtrit

from rackscope.advice.measured_runs import Measurements, Point
from rackscope.advice.projecting.answers import DRAWS, draws_of
from rackscope.advice.projecting.trained import Trained, why_not
from rackscope.analysis.intervals import student_quantile
from rackscope.analysis.latency_curve import CurvePoint
from rackscope.errors import RackscopeError
from rackscope.models import non_negative, throughput_ratio
from rackscope.models.catalogue import Server
from rackscope.models.core_scaling import CoreScalingModel, fit_core_scaling
from rackscope.models.estimates import LEVEL, ends_of
from rackscope.models.execution_time import ExecutionTimeModel, fit_execution_time
from rackscope.models.gates import ProjectionRefused, instruction_drift_gate, little_gate, require
from rackscope.models.throughput_ratio import Likeness, ThroughputRatioModel, fit_throughput_ratio
from rackscope.models.trained.redis_elsewhere import Ratio
from rackscope.models.uncertain import Array, Uncertain

#: Core counts and frequencies from which a model over them is fitted.
FEWEST_CORE_COUNTS, FEWEST_FREQUENCIES = 4, 3
#: Clocks within this of each other are one setting: none is held exactly.
_SAME_CLOCK = 0.03
#: How exactly the memory share of a fit over frequency is taken to be known, beyond its own scatter. Ours.
_SHARE_SLACK = 0.1
#: Ceilings of two calibrations of one host differ by this much, 90 % of them: neighbours, turbo, which core. Ours.
_CALIBRATION = 1.03
#: Logarithm of the furthest that a draw of what was measured may lie from it: far past any interval's end.
_FURTHEST = 50.0
#: A working set must fit with so much room for the rest of the server.
_ROOM = 1.05
_HERE = 1e-3

#: Ratio of a server by the ceiling that it is taken from; of latency less is more.
_BY_CEILING = {"dram_latency": "dram_latency_seconds", "dram_bandwidth": "dram_read_bytes_per_second"}
#: What the tables' servers have in common.
_AS_THERE = (
    "both do as servers of the tables, which are virtual machines with all hardware threads busy, redis beside its "
    "clients; where those had one processor from several providers, they differed by 4 to 20 %"
)
#: Compared only where they were squeezed.
_ONLY_SQUEEZED = {"network": "network_bytes_per_second", "disk": "disk_random_read_operations_per_second"}
_DOUBTED = {
    "elasticities": (
        "the elasticities measured here",
        "Longer squeezes would narrow it: 'rackscope study pressure --budget 5m'.",
    ),
    "calibration": ("what the servers were calibrated to give", "Calibrate there, on a quiet server."),
    "form": (
        "whether growth goes on as it began here",
        "It changes where another resource takes over; runs at more cores or on a server nearer to it would tell.",
    ),
    "memory share": (
        "how much of the cores' time waits for memory",
        "Runs at three frequencies, or hardware counters, would tell: up to the whole of it was allowed for.",
    ),
    "processor": (
        "that another server does this workload better or worse than its calibration says",
        "Only a run on that server narrows it: public servers lie that far from what their micro-benchmarks say.",
    ),
    "by processor": (
        "how far servers with these processors lie from others with the same in the tables",
        "Only a run on that server narrows it.",
    ),
    "by calibration": (
        "what sizes, DRAM bandwidth and caches do not say of processors that were never seen",
        "Tables with servers of both processors would narrow it, and so would a run there.",
    ),
    "measurement": ("how far repetitions here lie apart", "Repeat more, or make the host quieter."),
    "core scaling": ("the fit over cores", "Measure at more core counts, and nearer to that of the server."),
    "execution time": ("the fit over frequency", "Measure at more frequencies, and nearer to that of the server."),
}


@dataclass(frozen=True)
class Throughput:
    """Draws of operations a second on the server's cores, and of the factor of one of its cores over one here.

    ``unchanged``: the server is the host itself as far as is known.
    """

    drawn: Array
    speed: Array
    cores: int
    unchanged: bool
    extrapolated: bool
    basis: str
    stands_on: str
    changes_if: str
    notes: tuple[str, ...]
    core_scaling: CoreScalingModel | None = None
    execution_time: ExecutionTimeModel | None = None
    ratios: Mapping[str, Uncertain] = field(default_factory=dict)

    @cached_property
    def ends(self) -> tuple[float, float, float]:
        """Low, middle and high of operations a second: ends of 90 % of its draws, and their median."""
        return ends_of(self.drawn)

    @cached_property
    def pace(self) -> float:
        """Median of the factor of one core."""
        return float(np.median(self.speed))


def project_throughput(
    measured: Measurements, server: Server, cores: int | None, trained: Trained | None = None
) -> Throughput:
    """The maximum throughput of the system on ``cores`` of the server (by default the same fraction of them as here).

    With ``trained``, another processor is projected to by its tables where those know more than elasticities do.

    Raises ProjectionRefused where a gate fails or the runs do not span what is needed, RackscopeError where the server
    does not have what it would be compared by.
    """
    return _Throughput(measured, server, cores, trained).project()


@dataclass(frozen=True)
class _Elsewhere:
    """Draws of throughput there over here, ``None`` for the host itself, and what they come from."""

    ratios: Mapping[str, Uncertain]
    model: ThroughputRatioModel
    drawn: Array | None = None
    models: tuple[str, ...] = ()
    spread: Mapping[str, float] = field(default_factory=dict)
    trained: Ratio | None = None
    #: Why this model, and what it would take to use another.
    why: str = ""


class _Throughput:
    def __init__(self, measured: Measurements, server: Server, cores: int | None, trained: Trained | None) -> None:
        self._measured = measured
        self._trained = trained
        self._server = server
        self._source = measured.source
        self._same = is_same_processor(measured, server)
        self._notes: list[str] = []
        points = measured.closed
        if not points:
            raise ProjectionRefused(
                "no projection: no run measured the maximum throughput, only offered rates",
                "Add a run without --rate (a closed loop), or a 'study slo'.",
            )
        self._points = points
        require(little_gate([_curve_point(one) for one in points]))
        self._threads = threads_of(server, measured)
        most_here = max(one.cores for one in points)
        share = max(1, round(self._threads * most_here / self._source.cores))
        self._cores = share if cores is None else cores
        if not 1 <= self._cores <= self._threads:
            raise RackscopeError(
                f"{server.name} has {self._threads} hardware threads, so it cannot be {self._cores}",
                "Choose --cores between 1 and those.",
            )

    def project(self) -> Throughput:
        self._check_memory()
        spread: dict[str, float] = {}
        scaling = self._core_scaling()
        if scaling is not None:
            anchor = self._cores
            prediction = scaling.predict(anchor)
            drawn = draws_of(prediction, "core scaling")
            models, extrapolated = ["core_scaling"], prediction.extrapolated
            spread["core scaling"] = math.log(prediction.high / prediction.low) / 2
            group = at_top_clock(self._points)
            time = self._execution_time(self._nearest())
        else:
            nearest = self._nearest()
            time = self._execution_time(nearest)
            group = at_top_clock(nearest)
            anchor = group[0].cores
            if time is not None and self._at_frequency() is not None:
                # The fit says what is here, too: all clocks of it.
                drawn, half = np.full(DRAWS, anchor / time.predict(time.highest_hertz).value), 0.0
            else:
                drawn, half = _anchor(group)
            models, extrapolated = [], False
            spread["measurement"] = half
        elsewhere = self._elsewhere(anchor, time, group)
        ratios = elsewhere.ratios
        factor = np.ones(DRAWS)
        if time is not None and self._at_frequency() is not None:
            moved = self._over_frequency(time)
            factor *= moved
            models.append("execution_time")
            low, _, high = ends_of(moved)
            spread["execution time"] = math.log(high / low) / 2
        if elsewhere.drawn is not None:
            factor *= elsewhere.drawn
            models += elsewhere.models
            spread |= elsewhere.spread
        unchanged = elsewhere.drawn is None and scaling is None and (time is None or self._at_frequency() is None)
        by_cores = self._cores / anchor
        doubt = max(spread, key=lambda name: spread[name])
        words, advice = _DOUBTED[doubt]
        changes_if = f"Most of the doubt (±{100 * math.expm1(spread[doubt]):.0f} %) is {words}. {advice}"
        return Throughput(
            drawn=drawn * factor,
            speed=factor / by_cores,
            cores=self._cores,
            unchanged=unchanged,
            extrapolated=extrapolated or elsewhere.drawn is not None,
            basis=_basis(models, elsewhere.trained),
            stands_on=self._stands_on(models, group, elsewhere),
            changes_if=f"{changes_if} {elsewhere.why}".rstrip(),
            notes=tuple(self._notes),
            core_scaling=scaling,
            execution_time=time,
            ratios=ratios,
        )

    def _elsewhere(self, anchor: int, time: ExecutionTimeModel | None, group: Sequence[Point]) -> _Elsewhere:
        """The factor of throughput there over here, by whichever model was off the least on servers left out.

        Of redis, tables with both processors were off by less than half of what ``throughput_ratio`` was; without them
        that was off by no more than the regression, which then answers only where it refuses.
        """
        if self._trained is None or self._same:
            return self._by_elasticities(anchor, time, group)
        try:
            found = self._by_tables("by processor", anchor, time, group)
            return replace(found, why=self._compared(found, anchor, time, group))
        except RackscopeError as error:
            reason = why_not(error)
        surer = f"Servers of the tables with both processors would be surer, and were not used: {reason}."
        try:
            return replace(self._by_elasticities(anchor, time, group), why=surer)
        except RackscopeError as error:
            try:
                found = self._by_tables("by calibration", anchor, time, group)
            except RackscopeError as second:
                said = "; ".join(dict.fromkeys([reason, why_not(second)]))
                raise type(error)(error.what, f"{error.advice} The tables cannot tell either: {said}.") from None
            return replace(found, why=f"throughput_ratio was not used: {why_not(error)}. {surer}")

    def _by_elasticities(self, anchor: int, time: ExecutionTimeModel | None, group: Sequence[Point]) -> _Elsewhere:
        ratios = self._ratios(anchor, time, group)
        model = self._model(time, group)
        likeness = likeness_of(measured=self._measured, server=self._server)
        if likeness == "itself" and all(abs(math.log(one.middle)) <= _HERE for one in ratios.values()):
            return _Elsewhere(ratios, model)
        drawn = model.draw(ratios, likeness=likeness, draws=DRAWS)
        return _Elsewhere(ratios, model, drawn, ("throughput_ratio",), model.doubts(ratios, likeness=likeness))

    def _by_tables(self, way: str, anchor: int, time: ExecutionTimeModel | None, group: Sequence[Point]) -> _Elsewhere:
        """The processor by the tables; another number of cores by elasticities, as tables are of whole servers."""
        assert self._trained is not None
        pipelined = all(one.pipelined for one in group)
        ratio = self._trained.ratio(self._measured, self._server, self._threads, way=way, pipelined=pipelined)
        half = math.log(ratio.high / ratio.low) / 2
        drawn = Uncertain.lognormal(ratio.value, math.exp(half)).draw(f"tables {way}", DRAWS, 1)
        models, spread = [f"redis {way}"], {way: half}
        model, ratios = self._model(time, group), {}
        if self._cores != anchor:
            ratios = {"cores": Uncertain.certain(self._cores / anchor)}
            drawn = np.asarray(drawn * model.draw(ratios, likeness="itself", draws=DRAWS))
            models.append("throughput_ratio over cores")
            spread |= model.doubts(ratios, likeness="itself")
        self._notes.append(_AS_THERE)
        return _Elsewhere(ratios, model, drawn, tuple(models), spread, ratio)

    def _compared(self, found: _Elsewhere, anchor: int, time: ExecutionTimeModel | None, group: Sequence[Point]) -> str:
        """What elasticities would have said, beside the tables."""
        assert found.trained is not None
        notes = list(self._notes)
        off = f"on pairs of servers left out the tables were {100 * found.trained.left_out.median_error:.0f} % off"
        try:
            other = self._by_elasticities(anchor, time, group)
            assert other.drawn is not None
            low, middle, high = ends_of(other.drawn)
            said = f"{middle:.2f} ({low:.2f} to {high:.2f}) times what is done here"
            return f"throughput_ratio, not used, says {said}; {off}."
        except RackscopeError as error:
            return f"throughput_ratio was not used: {why_not(error)}. At the median, {off}."
        finally:
            # What elasticities would assume is not assumed.
            self._notes[:] = notes

    def _check_memory(self) -> None:
        needed = max((one.resident_bytes for one in self._points if one.resident_bytes), default=None)
        if self._server.memory_bytes is not None and needed is not None:
            if needed * _ROOM > self._server.memory_bytes:
                raise ProjectionRefused(
                    f"no projection: the system held {needed / 2**30:.2f} GiB here, which {self._server.name} "
                    f"({self._server.memory_bytes / 2**30:.2f} GiB) does not hold: it is past the wall",
                    "Name a server with more memory, or measure with a smaller data set.",
                )
        else:
            self._notes.append("assumed: the data set fits its memory")

    def _core_scaling(self) -> CoreScalingModel | None:
        points = at_top_clock(self._points)
        counts = sorted({one.cores for one in points})
        if len(counts) < FEWEST_CORE_COUNTS:
            if len(counts) > 1:
                listed = ", ".join(map(str, counts))
                self._notes.append(
                    f"runs at {len(counts)} core counts ({listed}) are too few to fit their law, which takes "
                    f"{FEWEST_CORE_COUNTS}"
                )
            return None
        require(
            instruction_drift_gate(
                [one.cores for one in points], [one.instructions_per_operation for one in points], "cores"
            )
        )
        physical = self._source.physical_cores
        return fit_core_scaling(
            [one.cores for one in points for _ in one.throughputs],
            [value for one in points for value in one.throughputs],
            physical_cores=physical if physical is not None and physical < self._source.cores else None,
        )

    def _nearest(self) -> list[Point]:
        count = min({one.cores for one in self._points}, key=lambda one: abs(math.log(one / self._cores)))
        group = [one for one in self._points if one.cores == count]
        return [one for one in group if not one.between_squeezes] or group

    def _execution_time(self, group: Sequence[Point]) -> ExecutionTimeModel | None:
        """Over frequency, where the runs of one core count were made at several."""
        known = [one for one in group if one.frequency_hertz is not None]
        count = _clocks([one.frequency_hertz for one in known if one.frequency_hertz is not None])
        if count < FEWEST_FREQUENCIES:
            target = self._server.frequency_hertz
            if count > 1 and target is not None and "instructions_per_second" not in self._server.ceilings:
                raise ProjectionRefused(
                    f"no projection over frequency: {count} frequencies of at least {FEWEST_FREQUENCIES}",
                    "Measure at more frequencies, or give [server.ceilings] instructions_per_second.",
                )
            return None
        return fit_execution_time(
            [one.frequency_hertz or 0.0 for one in known],
            [one.cores / one.throughput for one in known],
            instructions=[one.instructions_per_operation for one in known],
        )

    def _at_frequency(self) -> float | None:
        """The clock to go to, where only the clock differs."""
        target = self._server.frequency_hertz
        return target.middle if target is not None and self._same else None

    def _over_frequency(self, model: ExecutionTimeModel) -> Array:
        hertz = self._at_frequency()
        assert hertz is not None
        there = draws_of(model.predict(hertz), "execution time")
        return np.asarray(model.predict(model.highest_hertz).value / there)

    def _model(self, time: ExecutionTimeModel | None, group: Sequence[Point]) -> ThroughputRatioModel:
        share = (0.0, 1.0)
        if time is not None:
            at = time.memory_share(time.highest_hertz)
            share = (max(0.0, at - _SHARE_SLACK), min(1.0, at + _SHARE_SLACK))
        elif (squeezed := self._squeezed_share()) is not None:
            share = squeezed
        else:
            counted = [one.memory_share_high for one in group if one.memory_share_high is not None]
            if counted:
                share = (0.0, max(counted))
        pipelined = all(one.pipelined for one in group)
        return fit_throughput_ratio(self._measured.squeezed, memory_share=share, pipelined=pipelined)

    def _squeezed_share(self) -> tuple[float, float] | None:
        """What a slower clock costs, of what less time costs, is the cores' own; the rest of it waits for memory."""
        by_name = {one.squeeze: one for one in self._measured.squeezed if one.is_told}
        clock, time = by_name.get("core_frequency"), by_name.get("cpu_share")
        if clock is None or time is None or time.elasticity()[0] <= 0:
            return None
        _, low, high = clock.elasticity()
        own = time.elasticity()[0]

        def waiting(elasticity: float) -> float:
            return min(max(1 - elasticity / own, 0.0), 1.0)

        return waiting(high), waiting(low)

    def _ratios(self, anchor: int, time: ExecutionTimeModel | None, group: Sequence[Point]) -> dict[str, Uncertain]:
        found: dict[str, Uncertain] = {}
        if self._cores != anchor:
            found["cores"] = Uncertain.certain(self._cores / anchor)
        if time is None or self._at_frequency() is None:
            speed = self._core_speed(group)
            if speed is not None:
                found["core_speed"] = speed
        squeezed = {one.resource for one in self._measured.squeezed}
        for name, ceiling in (_BY_CEILING | _ONLY_SQUEEZED).items():
            if name in _ONLY_SQUEEZED and name not in squeezed:
                continue
            there, here = self._server.ceilings.get(ceiling), _ceiling(self._source.ceilings, ceiling)
            if there is not None and here is not None:
                found[name] = _over(there, here, inverse=name == "dram_latency")
            elif name in _BY_CEILING:
                where = self._server.name if there is None else "this host"
                what = name.replace("_", " ").replace("dram", "DRAM")
                self._notes.append(f"assumed: its {what} is as here; {ceiling} of {where} is not known")
        cache = self._server.last_level_cache_bytes
        if "last_level_cache" in squeezed and cache is not None and self._source.last_level_cache_bytes:
            found["last_level_cache"] = Uncertain.certain(cache / self._source.last_level_cache_bytes)
        absent = [name for name in ("last_level_cache", "network", "disk") if name not in found]
        said = {"last_level_cache": "last-level cache"}
        self._notes.append(
            f"assumed: its {', '.join(said.get(one, one) for one in absent)} and the clients are as fast as here"
        )
        # The host itself, as far as can be known: two readings of one figure are no difference.
        return {
            name: Uncertain.certain(1.0) if self._same and one.middle == 1.0 else one for name, one in found.items()
        }

    def _core_speed(self, group: Sequence[Point]) -> Uncertain | None:
        there = self._server.ceilings.get("instructions_per_second")
        here = _ceiling(self._source.ceilings, "instructions_per_second")
        if there is not None and here is not None:
            return _times(_over(there, here), self._source.cores / self._threads)
        if self._same:
            clock = self._server.frequency_hertz
            known = [one.frequency_hertz for one in group if one.frequency_hertz is not None]
            if clock is not None and known:
                return _times(clock, 1 / fmean(known))
            self._notes.append("assumed: its cores are as fast as here, as the processor is the same")
            return None
        if there is None:
            raise RackscopeError(
                f"{self._server.name} has no ceilings.instructions_per_second, and its processor is not the one here "
                f"({self._source.processor or 'unknown'})",
                "Run 'rackscope calibrate --quick' there and write what it shows below [server.ceilings].",
            )
        raise RackscopeError(
            "the runs know no instructions_per_second of their own host, so nothing can be compared with it",
            "Run 'rackscope calibrate --quick' here, and measure again.",
        )

    def _stands_on(self, models: Sequence[str], group: Sequence[Point], elsewhere: _Elsewhere) -> str:
        runs = ", ".join(dict.fromkeys(one.run for one in group))
        parts = [runs]
        if "throughput_ratio" in models:
            known = [
                f"{one.squeeze} {one.elasticity()[0]:.2f} ({one.elasticity()[1]:.2f} to {one.elasticity()[2]:.2f})"
                for one in elsewhere.model.squeezed.values()
            ]
            parts.append(f"elasticities: {', '.join(known)}" if known else "no elasticity")
            parts.append(f"ceilings of both ({self._server.source})")
        if elsewhere.trained is not None and self._trained is not None:
            parts.append(f"{self._trained.folder}: {elsewhere.trained.stands_on}")
        named = ", ".join(models)
        return "; ".join(parts) + (f"; models: {named}" if named else "; no model: it is this host itself")


def is_same_processor(measured: Measurements, server: Server) -> bool:
    """Whether the server's processor is, by name, the one that was measured."""
    own = " ".join(measured.source.processor.lower().split())
    return bool(own) and " ".join(server.processor.lower().split()) == own


def likeness_of(measured: Measurements, server: Server) -> Likeness:
    """The host itself where the server has its identity for a name, as ``project --describe`` writes it."""
    if not is_same_processor(measured, server):
        return "other processor"
    return "itself" if server.name == measured.source.identity else "same processor"


def threads_of(server: Server, measured: Measurements) -> int:
    """Hardware threads of the server; its cores where it has no other number. Raises RackscopeError for neither."""
    threads = server.threads or server.cores
    if threads is None:
        raise RackscopeError(
            f"{server.name} has neither cores nor threads", f"Write both; here are {measured.source.cores} threads."
        )
    return threads


def _curve_point(point: Point) -> CurvePoint:
    return CurvePoint(
        achieved=point.throughput,
        latency_seconds=point.mean_seconds or 0.0,
        mean_response_seconds=point.mean_seconds,
        mean_outstanding=float(point.outstanding) if point.mean_seconds else None,
    )


def _anchor(group: Sequence[Point]) -> tuple[Array, float]:
    """Draws of the next mean of as many repetitions, and half of the logarithm of the ends of its 90 %."""
    values = np.log([value for one in group for value in one.throughputs])
    if len(values) < 2:
        raise ProjectionRefused(
            "no projection: a single repetition shows no spread, so there would be no interval",
            "Repeat it: 'rackscope run ... --repeat 5'.",
        )
    # What is predicted is another run there, which scatters as this one did: hence twice the variance of the mean.
    error = float(np.std(values, ddof=1)) * math.sqrt(2 / len(values))
    uniform = Uncertain.uniform(0.0, 1.0).draw("measurement", DRAWS, 1)
    here = float(np.exp(values.mean()))
    half = student_quantile(len(values) - 1, LEVEL) * error
    deviates = stdtrit(len(values) - 1, np.clip(uniform, 1e-9, 1 - 1e-9))
    # Far out in the tails of two repetitions a rate would be zero or infinite, and no load a share of it.
    return np.asarray(here * np.exp(np.clip(error * deviates, -_FURTHEST, _FURTHEST))), half


def at_top_clock(points: Sequence[Point]) -> list[Point]:
    """Where the runs were made at several clocks, those at the highest, which is what calibrations are made at."""
    highest = max((one.frequency_hertz or 0.0 for one in points), default=0.0)
    if _clocks([one.frequency_hertz for one in points if one.frequency_hertz is not None]) < 2:
        return list(points)
    return [one for one in points if (one.frequency_hertz or 0.0) * (1 + _SAME_CLOCK) >= highest]


def _clocks(frequencies: Sequence[float]) -> int:
    count, last = 0, 0.0
    for one in sorted(frequencies):
        if one > last * (1 + _SAME_CLOCK):
            count, last = count + 1, one
    return count


def _ceiling(ceilings: Mapping[str, float], name: str) -> float | None:
    """By its name, or that of the one device that has it."""
    found = [value for key, value in ceilings.items() if key.partition("{")[0] == name]
    return found[0] if len(found) == 1 else None


def _times(value: Uncertain, factor: float) -> Uncertain:
    return Uncertain(value.shape, value.low * factor, value.middle * factor, value.high * factor)


def _over(there: Uncertain, here: float, *, inverse: bool = False) -> Uncertain:
    """A ratio, as uncertain as calibrations are where the catalogue says nothing else."""
    if inverse:
        there = Uncertain(there.shape, 1 / there.high, 1 / there.middle, 1 / there.low)
        here = 1 / here
    middle = there.middle / here
    if there.shape == "certain":
        return Uncertain.certain(1.0) if abs(middle - 1) < 1e-6 else Uncertain.lognormal(middle, _CALIBRATION)
    return _times(there, 1 / here)


def _basis(models: Sequence[str], trained: Ratio | None = None) -> str:
    parts = {
        "core_scaling": f"over cores: {non_negative.BASIS}",
        "execution_time": f"over frequency: {non_negative.BASIS}",
        "throughput_ratio": f"to the other server: {throughput_ratio.BASIS}",
        "throughput_ratio over cores": f"over cores: {throughput_ratio.BASIS}",
    }
    said = [parts[name] for name in models if name in parts]
    if trained is not None:
        outside = f"; {trained.outside} outside of the servers that were fitted on" if trained.outside else ""
        said.append(trained.basis + outside)
    return "; ".join(said) if said else "Student's t over repetitions, for another run like these"
