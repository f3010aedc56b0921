"""Figures of a phase, and what is worth knowing besides the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rackscope.analysis import wording
from rackscope.analysis.context import Phase
from rackscope.analysis.findings import Evidence, Finding, pointing
from rackscope.analysis.histograms import select_histogram
from rackscope.analysis.rates import Series
from rackscope.analysis.resources import Judged
from rackscope.units import format_bytes, format_count, format_duration


def measure_figures(phase: Phase) -> dict[str, float]:
    """Named figures in base units; what is not known is absent."""
    operations = phase.total("operations")
    found: dict[str, float | None] = {
        "throughput_operations_per_second": phase.result("throughput_operations_per_second"),
        "response_p50_seconds": phase.result("response_p50_seconds"),
        "response_p99_seconds": phase.result("response_p99_seconds"),
        "response_p999_seconds": phase.result("response_p999_seconds"),
        "generator_idle_ratio": phase.result("generator_idle_ratio"),
        "hit_ratio": _share(phase.total("hits"), phase.total("misses")),
        "bytes_per_operation": _over(_sum(phase.total("bytes_sent"), phase.total("bytes_received")), operations),
        "cpu_seconds_per_operation": _over(phase.total("system_cpu_seconds"), operations),
        "kernel_share_ratio": phase.value("process_kernel_share_ratio", process="system"),
        "cpu_busy_ratio": phase.value("cpu_set_busy_ratio", set="system"),
        "cpu_kernel_share_ratio": phase.value("cpu_set_kernel_share_ratio", set="system"),
        "steal_ratio": phase.value("cpu_ratio", state="steal"),
        "context_switches_per_operation": _over(_context_switches(phase), operations),
        "resident_bytes": _last(phase, "process_resident_bytes", process="system"),
        "resident_growth_bytes_per_second": resident_growth(phase),
        "cycles_per_instruction": _perf(phase, "cycles_per_instruction"),
        "llc_misses_per_kilo_instruction": _perf(phase, "llc_misses_per_kilo_instruction"),
        "instructions_per_second": _perf(phase, "instructions_per_second"),
        "dram_read_bytes_per_second": _perf(phase, "dram_read_bytes_per_second"),
    }
    cost = found["cpu_seconds_per_operation"]
    if cost:
        found["operations_per_core_second"] = 1 / cost
    instructions = found["instructions_per_second"]
    if instructions is not None and operations:
        found["instructions_per_operation"] = instructions * phase.seconds / operations
    return {name: value for name, value in found.items() if value is not None}


def find_insights(phase: Phase, figures: dict[str, float], resources: Sequence[Judged]) -> list[Finding]:
    """What a measured phase teaches besides its verdict, the weightiest first."""
    found = [
        _cost(phase, figures),
        _kernel(phase, figures),
        _switches(phase, figures),
        _loopback(phase, figures),
        _misses(phase, figures),
        _growth(phase, figures),
        _tail(phase, figures),
        _slow_operation(phase),
        _memory_stalls(phase, figures),
        _single_thread(phase),
        *_bursts(phase, resources),
        *_queueing(phase, resources),
    ]
    return sorted((one for one in found if one is not None), key=lambda one: -one.importance)


def resident_growth(phase: Phase) -> float | None:
    """Bytes a second that the system's resident memory grew in the measured windows, by least squares of each."""

    series = phase.run.samples.find("process_resident_bytes", process="system")
    if series is None:
        return None
    slopes, lengths = [], []
    for window in phase.windows:
        points = series.bins((window,), max((window[1] - window[0]) / 50, 1e-3))
        if len(points) < 3:
            continue
        middles = np.array([(start + end) / 2 for start, end, _ in points])
        values = np.array([value for *_, value in points])
        slopes.append(float(np.polyfit(middles - middles.mean(), values, 1)[0]))
        lengths.append(window[1] - window[0])
    return float(np.average(slopes, weights=lengths)) if slopes else None


def _insight(phase: Phase, importance: int, sentence: str, evidence: Evidence, advice: str = "") -> Finding:
    return Finding("insight", importance, phase.name, pointing(sentence, (evidence,)), (evidence,), advice)


def _cost(phase: Phase, figures: dict[str, float]) -> Finding | None:
    cost = figures.get("cpu_seconds_per_operation")
    if not cost:
        return None
    sentence = (
        f"An operation costs {phase.run.facts.system} {format_duration(cost)} of CPU: at this cost one core does at "
        f"most {format_count(1 / cost)} operations/s."
    )
    evidence = phase.result_evidence(("system_cpu_seconds", "operations"), cost, "seconds")
    return _insight(phase, 60, sentence, evidence)


def _kernel(phase: Phase, figures: dict[str, float]) -> Finding | None:
    share = figures.get("kernel_share_ratio")
    series = phase.run.samples.find("process_kernel_share_ratio", process="system")
    if share is None or series is None or share < phase.run.thresholds.limit("kernel.heavy"):
        return None
    sentence = (
        f"{wording.percent(share)} of {phase.run.facts.system}'s CPU time is spent in the kernel and "
        f"{wording.percent(1 - share)} in its own code: the system calls around a request cost more than the request."
    )
    advice = "Pipelining, multi-get, or a unix socket make fewer or cheaper system calls for the same operations."
    return _insight(phase, 55, sentence, phase.evidence(series, share), advice)


def _switches(phase: Phase, figures: dict[str, float]) -> Finding | None:
    switches = figures.get("context_switches_per_operation")
    series = phase.run.samples.find("process_context_switches_per_second", process="system", kind="voluntary")
    if switches is None or series is None or switches < phase.run.thresholds.limit("switches.heavy"):
        return None
    sentence = (
        f"{phase.run.facts.system} switched context {switches:.2f} times for each operation: it goes to sleep and is "
        "woken for nearly every request."
    )
    advice = "More requests at a time (connections, pipelining) keep it from going to sleep."
    return _insight(phase, 50, sentence, phase.evidence(series, switches), advice)


def _loopback(phase: Phase, figures: dict[str, float]) -> Finding | None:
    facts, line = phase.run.facts, phase.run.thresholds.limit("loopback.requests_near")
    ceiling, _, _ = phase.run.ceiling("loopback_requests_per_second", "")
    reached = figures.get("throughput_operations_per_second")
    if ceiling is None or reached is None or facts.interface != "lo" or facts.pipeline > 1 or facts.multiget > 1:
        return None
    share = reached / ceiling
    # The ceiling is of one core on either side: more cores may pass it, and then it says nothing.
    if not line <= share <= 1.05:
        return None
    sentence = (
        f"{format_count(reached)} operations/s are {wording.percent(share)} of what this generator reaches against a "
        "responder that does nothing: sockets and the loopback path are most of what this run measures."
    )
    evidence = phase.result_evidence(("throughput_operations_per_second",), reached, "operations/s")
    return _insight(phase, 65, sentence, evidence, "Pipeline requests to see more of the system itself.")


def _misses(phase: Phase, figures: dict[str, float]) -> Finding | None:
    ratio = figures.get("hit_ratio")
    if ratio is None:
        return None
    sentence = f"{_exact_percent(ratio)} of reads found their key."
    evidence = phase.result_evidence(("hits", "misses"), ratio, "ratio")
    return _insight(phase, 30, sentence, evidence)


def _growth(phase: Phase, figures: dict[str, float]) -> Finding | None:
    growth, resident = figures.get("resident_growth_bytes_per_second"), figures.get("resident_bytes")
    series = phase.run.samples.find("process_resident_bytes", process="system")
    if growth is None or not resident or series is None or growth <= 0:
        return None
    if growth * phase.seconds < phase.run.thresholds.limit("memory_growth.ratio") * resident:
        return None
    sentence = f"Resident memory grew by {format_bytes(growth)}/s while measured, to {format_bytes(resident)}"
    available = _last(phase, "memory_part_bytes", part="available")
    if available is not None and available > 0:
        sentence += f"; at this pace the memory that is left lasts {_long_duration(available / growth)}"
    return _insight(phase, 52, f"{sentence}.", phase.evidence(series, growth))


def _tail(phase: Phase, figures: dict[str, float]) -> Finding | None:
    median, tail = figures.get("response_p50_seconds"), figures.get("response_p99_seconds")
    if not median or tail is None or tail / median < phase.run.thresholds.limit("tail.ratio"):
        return None
    sentence = (
        f"The 99th percentile of response times ({format_duration(tail)}) is {tail / median:.0f} times the median "
        f"({format_duration(median)}): more than queueing alone explains."
    )
    evidence = phase.result_evidence(
        ("response_p99_seconds", "response_p50_seconds"), tail / median, "1", "limit.tail.ratio"
    )
    return _insight(phase, 48, sentence, evidence, "Look for pauses: evictions, timers, another process on its cores.")


def _slow_operation(phase: Phase) -> Finding | None:
    """One kind of operation whose tail is far beyond the others'."""
    latency = phase.run.latency
    if "operation" not in latency.columns or "phase" not in latency.columns:
        return None
    tails: dict[str, float] = {}
    for operation in latency.filter(latency["phase"] == phase.name)["operation"].unique(maintain_order=True):
        try:
            histogram = select_histogram(latency, phase=phase.name, operation=operation)
        except ValueError:
            # The report, which shows the distributions, says that the file is damaged.
            return None
        tail = histogram.quantile_seconds(0.99) if histogram is not None else None
        if tail:
            tails[operation] = tail
    if len(tails) < 2:
        return None
    slowest, fastest = max(tails, key=tails.__getitem__), min(tails, key=tails.__getitem__)
    times = tails[slowest] / tails[fastest]
    if times < phase.run.thresholds.limit("operations.apart"):
        return None
    sentence = (
        f"The 99th percentile of '{slowest}' ({format_duration(tails[slowest])}) is {times:.1f} times that of "
        f"'{fastest}' ({format_duration(tails[fastest])})."
    )
    evidence = phase.result_evidence(("index", "count"), times, "1", "limit.operations.apart")
    return _insight(phase, 46, sentence, evidence)


def _memory_stalls(phase: Phase, figures: dict[str, float]) -> Finding | None:
    cycles = figures.get("cycles_per_instruction")
    series = _perf_series(phase, "cycles_per_instruction")
    if cycles is None or series is None:
        return None
    misses = figures.get("llc_misses_per_kilo_instruction")
    beside = "" if misses is None else f", with {misses:.2f} last-level cache misses for 1000 instructions"
    high = cycles >= phase.run.thresholds.limit("cpi.high")
    sentence = f"An instruction took {cycles:.2f} cycles{beside}" + (
        ": the cores mostly wait, as a rule for memory." if high else "."
    )
    return _insight(phase, 45 if high else 25, sentence, phase.evidence(series, cycles))


def _single_thread(phase: Phase) -> Finding | None:
    limit, found = phase.run.thresholds.limit, phase.find("process_cpu_cores", process="system")
    if found is None or phase.run.system_core_count < 2:
        return None
    series, cores = found
    if not limit("single_thread.low") <= cores <= limit("single_thread.high"):
        return None
    sentence = (
        f"{phase.run.facts.system} used {cores:.2f} of its {phase.run.system_core_count} cores: that is what one "
        "thread that never waits uses."
    )
    advice = "If one thread does the work, more cores will not help; more instances or more threads might."
    return _insight(phase, 58, sentence, phase.evidence(series, cores), advice)


def _bursts(phase: Phase, resources: Sequence[Judged]) -> list[Finding]:
    """Resources that were at their limit for a part of the phase only, which the mean hides."""
    found = []
    for judged in resources:
        ratio, ceiling = judged.intensity.ratio, judged.intensity.ceiling
        if ratio is None or not ceiling or judged.status == "limits" or judged.intensity.resource == "dram_capacity":
            continue
        name = f"intensity.{judged.intensity.resource}.limit"
        series = next((_series_named(phase, one.quantity) for one in judged.intensity.evidence), None)
        if series is None:
            continue
        scale = 1.0 if series.quantity.unit == "ratio" else ceiling
        windows = phase.windows_above(series, phase.run.thresholds.line(name) * scale)
        seconds = sum(end - start for start, end in windows)
        if seconds < 2 * phase.run.thresholds.limit("window.seconds"):
            continue
        sentence = (
            f"{phase.run.facts.begin(judged.intensity.label)}: at the limit for {seconds:.1f} of "
            f"{phase.seconds:.1f} s, though not on average ({wording.percent(ratio)})."
        )
        found.append(
            _insight(phase, 54, sentence, phase.evidence(series, seconds / phase.seconds, name, seconds=windows))
        )
    return found


def _queueing(phase: Phase, resources: Sequence[Judged]) -> list[Finding]:
    """Signs of saturation of resources that are not what the verdict names."""
    found = []
    for judged in resources:
        if judged.status == "limits" or not judged.saturation.signs:
            continue
        sign = judged.saturation.signs[0]
        evidence = tuple(one.evidence for one in judged.saturation.signs)
        text = pointing(f"{phase.run.facts.begin(judged.intensity.label)}: {judged.saturation.reason}.", evidence)
        found.append(Finding("saturation", 70 if sign.level == "strong" else 42, phase.name, text, evidence))
    return found


def _context_switches(phase: Phase) -> float | None:
    kinds = phase.run.samples.find_all("process_context_switches_per_second", process="system")
    return _sum(*(series.growth(phase.windows) for series in kinds))


def _perf_series(phase: Phase, quantity: str) -> Series | None:
    return phase.run.samples.find(quantity, scope="system") or phase.run.samples.find(quantity, scope="host")


def _perf(phase: Phase, quantity: str) -> float | None:
    series = _perf_series(phase, quantity)
    return series.over(phase.windows).value if series else None


def _series_named(phase: Phase, name: str) -> Series | None:
    quantity = name.partition("{")[0]
    return next((series for series in phase.run.samples.find_all(quantity) if series.name == name), None)


def _last(phase: Phase, quantity: str, **labels: str) -> float | None:
    reading = phase.read(quantity, **labels)
    return reading.last if reading else None


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None


def _share(part: float | None, rest: float | None) -> float | None:
    whole = _sum(part, rest)
    return part / whole if part is not None and whole else None


def _exact_percent(ratio: float) -> str:
    """Percent that says 100 only for all."""
    if ratio in (0.0, 1.0):
        return f"{ratio * 100:.0f} %"
    return f"{min(max(ratio * 100, 0.001), 99.999):.3f} %"


def _long_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
