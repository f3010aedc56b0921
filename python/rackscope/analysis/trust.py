"""What makes a run less believable, the gravest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackscope.analysis import wording
from rackscope.analysis.context import Phase, Run
from rackscope.analysis.findings import Evidence, Severity, TrustWarning, Verdict
from rackscope.analysis.intervals import mean_interval, note_outliers, relative_half_width
from rackscope.analysis.verdicts import generator_fullness, offered_was_met, other_cores
from rackscope.units import format_count, format_duration

_ORDER: dict[Severity, int] = {"wrong": 0, "doubt": 1, "note": 2}


def find_warnings(
    run: Run, phases: Sequence[tuple[Phase, Verdict]], others: Iterable[TrustWarning] = ()
) -> list[TrustWarning]:
    """All warnings of a run; those of phases only for the measured ones, but wrong values count anywhere.

    ``others`` were found elsewhere, and are put in their place.
    """
    found: list[TrustWarning | None] = []
    for phase, verdict in phases:
        found += [_wrong_values(phase), _errors(phase)]
        if phase.kind != "measure":
            continue
        found += [
            _generator_limit(phase, verdict),
            _generator_lag(phase),
            _offered_not_met(phase),
            _misses(phase),
            *_repetitions(phase),
            _short(phase),
            _drift(phase),
            _steal(phase),
            _throttling(phase),
            _others(phase),
        ]
    found += [
        _no_measured_phase(phases),
        _shared_cores(run),
        *_sampler(run),
        *_perf(run),
        *_untrusted(run),
        _discarded(run),
        *others,
    ]
    known = [warning for warning in found if warning is not None]
    return sorted(known, key=lambda warning: _ORDER[warning.severity])


def _wrong_values(phase: Phase) -> TrustWarning | None:
    wrong = sum(phase.result_values("wrong_values"))
    if not wrong:
        return None
    return TrustWarning(
        "wrong_values",
        "wrong",
        f"{wrong:.0f} values read in '{phase.name}' were not what had been written.",
        "Do not use this run; the system or the workload's verification is broken.",
        (phase.result_evidence(("wrong_values",), wrong, "1"),),
    )


def _generator_limit(phase: Phase, verdict: Verdict) -> TrustWarning | None:
    generator = generator_fullness(phase)
    if generator is None:
        return None
    idle = wording.percent(generator.value)
    if verdict.kind == "generator":
        return TrustWarning(
            "generator_limit",
            "wrong",
            f"The load generator was the limit in '{phase.name}' (it waited {idle} of the time): "
            f"the throughput is the generator's, not {phase.run.facts.system}'s.",
            "Give the load generator more cores (--client-cores), or the system fewer (--cores).",
            (generator,),
        )
    return TrustWarning(
        "generator_full",
        "doubt",
        f"The load generator was nearly saturated in '{phase.name}' (it waited {idle} of the time), and so were "
        f"{phase.run.facts.system}'s cores: a faster system would not have shown more.",
        "Give the load generator more cores (--client-cores).",
        (generator,),
    )


def _generator_lag(phase: Phase) -> TrustWarning | None:
    if phase.offered is None:
        return None
    lag, response = phase.result("lag_p99_seconds"), phase.result("response_p99_seconds")
    limits = phase.run.thresholds
    if lag is None:
        return None
    share = None if not response else lag / response
    # A system that cannot keep up holds requests back too: then the lag is its own doing and said elsewhere.
    if offered_was_met(phase) is False or lag < 1e-6:
        return None
    if lag < limits.limit("generator.lag_seconds") and (share is None or share < limits.limit("generator.lag_share")):
        return None
    part = "" if share is None else f", {wording.percent(min(share, 1.0))} of the response time's"
    return TrustWarning(
        "generator_lag",
        "doubt",
        f"Requests of '{phase.name}' were sent up to {format_duration(lag)} late (99th percentile{part}): response "
        "times include the generator's own delay.",
        "Use a lower --rate, more --connections, or more cores for the load generator (--client-cores).",
        (phase.result_evidence(("lag_p99_seconds",), lag, "seconds", "limit.generator.lag_seconds"),),
    )


def _offered_not_met(phase: Phase) -> TrustWarning | None:
    if offered_was_met(phase) is not False:
        return None
    reached = phase.result("throughput_operations_per_second") or 0.0
    offered = phase.offered or 0.0
    return TrustWarning(
        "offered_not_met",
        "doubt",
        f"'{phase.name}' was offered {format_count(offered)} operations/s and did {format_count(reached)}: requests "
        "queued ever longer, so its response times say how long the phase was, not how fast the system is.",
        "Use a lower --rate for response times; without --rate for the highest throughput.",
        (
            phase.result_evidence(
                ("throughput_operations_per_second", "offered_operations_per_second"),
                reached / offered if offered else 0.0,
                "ratio",
                "limit.generator.offered_met",
            ),
        ),
    )


def _errors(phase: Phase) -> TrustWarning | None:
    errors, operations = phase.total("errors"), phase.total("operations")
    if not errors:
        return None
    limits = phase.run.thresholds
    # Operations are those that were done; what failed comes on top.
    share = errors / (errors + (operations or 0.0))
    severity: Severity = "doubt" if share >= limits.limit("errors.ratio") else "note"
    if share >= limits.limit("errors.most"):
        severity = "wrong"
    first = phase.run.facts.first_errors.get(phase.name, "")
    said = f"; the first: {first.rstrip('.')}" if first else ""
    return TrustWarning(
        "errors",
        severity,
        f"{format_count(errors)} operations of '{phase.name}' failed ({wording.percent(share)}){said}.",
        "" if first else "Read the system's log in the run directory.",
        (phase.result_evidence(("errors", "operations"), share, "ratio", "limit.errors.ratio"),),
    )


def _misses(phase: Phase) -> TrustWarning | None:
    if not phase.run.facts.expects_hits:
        return None
    misses, hits = phase.total("misses"), phase.total("hits")
    if misses is None or hits is None or misses + hits == 0:
        return None
    share = misses / (misses + hits)
    if share < phase.run.thresholds.limit("misses.ratio"):
        return None
    refused = any(row.get("kind") == "load" and row.get("errors") for row in phase.run.results)
    cause = f"{phase.run.facts.system} did not store all of it" if refused else "they had been loaded, and evicted"
    most = share >= phase.run.thresholds.limit("misses.most")
    return TrustWarning(
        "misses",
        "wrong" if most else "doubt",
        f"{wording.percent(share)} of the reads in '{phase.name}' missed keys of the data set: {cause}, so this is the "
        f"throughput of a cache that answers 'not found'{'' if most else ' for a part'}.",
        "Give the system more memory, or load fewer or smaller values.",
        (phase.result_evidence(("misses", "hits"), share, "ratio", "limit.misses.ratio"),),
    )


def _repetitions(phase: Phase) -> Iterable[TrustWarning]:
    facts = phase.run.facts
    values = phase.result_values("throughput_operations_per_second")
    if not values:
        return
    interval = mean_interval(values, sequential=facts.sequential)
    width = relative_half_width(interval)
    evidence = phase.result_evidence(("throughput_operations_per_second",), interval.estimate, "operations/s")
    fewest = int(phase.run.thresholds.limit("repetitions.minimum"))
    if len(values) < fewest:
        what = "was measured once" if len(values) == 1 else f"was measured {len(values)} times only"
        yield TrustWarning(
            "too_few_repetitions",
            "doubt",
            f"'{phase.name}' {what}: how far its throughput would differ the next time is not known.",
            f"Repeat at least {fewest} times (--repeat {fewest}).",
            (evidence,),
        )
    elif width is not None and width > facts.wanted_half_width:
        yield TrustWarning(
            "wide_interval",
            "doubt",
            f"The 95 % interval of the throughput of '{phase.name}' is ±{wording.percent(width)} after {len(values)} "
            f"repetitions; ±{wording.percent(facts.wanted_half_width)} was wanted.",
            "Repeat more (--repeat), measure longer (--duration), or make the host quieter.",
            (evidence,),
        )
    note = note_outliers(values)
    if note:
        yield TrustWarning("outliers", "doubt", f"In '{phase.name}', {note}.", "", (evidence,))


def _short(phase: Phase) -> TrustWarning | None:
    shortest = min(end - start for start, end in phase.windows)
    if shortest >= phase.run.thresholds.limit("phase.seconds"):
        return None
    return TrustWarning(
        "short_phase",
        "doubt",
        f"A repetition of '{phase.name}' lasted {format_duration(shortest)} only: its figures rest on few samples.",
        "Measure longer (--duration).",
    )


def _drift(phase: Phase) -> TrustWarning | None:
    series = phase.run.samples.find("load_throughput_operations_per_second")
    if series is None:
        return None
    limit = phase.run.thresholds.limit("drift.ratio")
    changes = []
    for start, end in phase.windows:
        third = (end - start) / 3
        first, last = series.over(((start, start + third),)).value, series.over(((end - third, end),)).value
        if first and last is not None:
            changes.append(last / first - 1)
    # Noise goes either way; a drift goes the same way in every repetition.
    if not changes or not (min(changes) > limit or max(changes) < -limit):
        return None
    mean = sum(changes) / len(changes)
    word = "rose" if mean > 0 else "fell"
    return TrustWarning(
        "drift",
        "doubt",
        f"The throughput of '{phase.name}' still {word}, by {wording.percent(abs(mean))} from its first to its last "
        "third: it was not in a steady state.",
        "Warm up longer, or measure longer (--duration).",
        (phase.evidence(series, mean, "limit.drift.ratio"),),
    )


def _steal(phase: Phase) -> TrustWarning | None:
    found = phase.find("cpu_ratio", state="steal")
    if found is None or found[1] < phase.run.thresholds.limit("steal.doubt"):
        return None
    return TrustWarning(
        "steal",
        "doubt",
        f"The hypervisor gave {wording.percent(found[1])} of this host's CPU time to other guests in '{phase.name}' "
        "(steal): results would differ on a quiet host.",
        "Measure again at another time, or on a host of your own.",
        (phase.evidence(*found, "limit.steal.doubt"),),
    )


def _throttling(phase: Phase) -> TrustWarning | None:
    line = phase.run.thresholds.limit("throttled.doubt")
    for series in phase.run.samples.find_all("cgroup_throttled_ratio"):
        value = series.over(phase.windows).value
        if value is not None and value >= line:
            group = series.labels.get("cgroup", "")
            return TrustWarning(
                "throttled",
                "doubt",
                f"The CPU limit of control group '{group}' throttled its tasks {wording.percent(min(value, 1.0))} "
                f"of the time in '{phase.name}'.",
                "Raise the group's CPU limit if the host is to be measured rather than the limit.",
                (phase.evidence(series, value, "limit.throttled.doubt"),),
            )
    return None


def _others(phase: Phase) -> TrustWarning | None:
    """Work on the host that neither the system, nor the generator, nor the sampler did."""
    series, others = phase.run.samples.find("cpu_process_context_cores"), other_cores(phase)
    if series is None or others is None or others < phase.run.thresholds.limit("interference.cores"):
        return None
    return TrustWarning(
        "interference",
        "doubt",
        f"Other programs used {others:.2f} cores while '{phase.name}' was measured.",
        "Stop what else runs on this host, and measure again.",
        (phase.evidence(series, others, "limit.interference.cores"),),
    )


def _no_measured_phase(phases: Sequence[tuple[Phase, Verdict]]) -> TrustWarning | None:
    if any(phase.kind == "measure" for phase, _ in phases):
        return None
    return TrustWarning(
        "nothing_measured",
        "wrong",
        "No measured phase was completed: no result can be given.",
        "Run it again, and let it finish.",
    )


def _shared_cores(run: Run) -> TrustWarning | None:
    if not run.shares_cores:
        return None
    facts = run.facts
    both = sorted(set(facts.system_cores) & set(facts.client_cores))
    if both:
        noun = "core" if len(both) == 1 else "cores"
        sentence = f"{facts.system} and the load generator shared {noun} {wording.numbers(both)}"
    else:
        sentence = f"{facts.system} and the load generator were not kept on different cores"
    return TrustWarning(
        "shared_cores",
        "doubt",
        f"{facts.begin(sentence)}: each took CPU time from the other.",
        "Keep them apart with --cores and --client-cores, where the host has more than one core.",
    )


def _sampler(run: Run) -> Iterable[TrustWarning]:
    sampler = run.facts.sampler
    if sampler is None or sampler.ticks + sampler.missed_ticks == 0:
        return
    missed = sampler.missed_ticks / (sampler.ticks + sampler.missed_ticks)
    if missed >= run.thresholds.limit("sampler.missed_ratio"):
        yield TrustWarning(
            "missed_ticks",
            "doubt",
            f"The sampler missed {sampler.missed_ticks} of {sampler.ticks + sampler.missed_ticks} ticks "
            f"({wording.percent(missed)}): short events may not show.",
            "Sample less often, or leave a core free.",
            (_of_run(run, "sampler_missed_ticks", missed, "limit.sampler.missed_ratio"),),
        )
    cost = sampler.cpu_seconds / sampler.wall_seconds if sampler.wall_seconds > 0 else 0.0
    if cost >= run.thresholds.limit("sampler.cpu_ratio"):
        yield TrustWarning(
            "sampler_cost",
            "note",
            f"The sampler itself used {wording.percent(cost)} of a core.",
            "Sample less often.",
            (_of_run(run, "sampler_cpu_seconds", cost, "limit.sampler.cpu_ratio"),),
        )


def _perf(run: Run) -> Iterable[TrustWarning]:
    line = run.thresholds.limit("perf.running_ratio")
    for series in run.samples.find_all("perf_running_ratio"):
        windows = tuple(window for phase in run.phases() for window in phase.windows)
        lowest = series.over(tuple(sorted(windows))).lowest if windows else None
        if lowest is not None and lowest < line:
            scope = series.labels.get("scope", "")
            yield TrustWarning(
                "multiplexed",
                "doubt",
                f"The kernel multiplexed the hardware counters of scope '{scope}' (counting {wording.percent(lowest)} "
                "of the time at least): cycles, instructions and misses are scaled up from a part.",
                "Stop other users of hardware counters (perf, the NMI watchdog).",
                (Evidence(series.columns, windows, series.name, lowest, "ratio", "limit.perf.running_ratio", line),),
            )


def _untrusted(run: Run) -> Iterable[TrustWarning]:
    for probe in run.facts.probes:
        if probe.status == "untrusted":
            yield TrustWarning(
                "untrusted_probe",
                "note",
                f"Do not rely on probe '{probe.name}' reads here: {probe.reason or 'it failed its check'}.",
                f"It needs {probe.needs.rstrip('.')}." if probe.needs else "",
            )


def _discarded(run: Run) -> TrustWarning | None:
    rows = [row for row in run.results if row.get("discarded")]
    if not rows:
        return None
    why = "; ".join(dict.fromkeys(str(row["discarded"]) for row in rows))
    count = len(rows)
    return TrustWarning(
        "discarded",
        "note",
        f"{count} {'repetition was' if count == 1 else 'repetitions were'} discarded and not used: {why}.",
        "",
    )


def _of_run(run: Run, column: str, value: float, threshold: str) -> Evidence:
    return Evidence((column,), (), column, value, "ratio", threshold, run.thresholds.line(threshold))
