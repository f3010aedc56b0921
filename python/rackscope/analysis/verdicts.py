"""What held a phase back, in one sentence that points at its evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackscope.analysis import wording
from rackscope.analysis.context import Phase
from rackscope.analysis.findings import Evidence, Verdict, pointing
from rackscope.analysis.resources import Judged


def judge_phase(phase: Phase, resources: Sequence[Judged]) -> Verdict:
    """The verdict on one phase.

    The load generator comes first: where it was full and the system's cores were not, the numbers say nothing of the
    system. The host's cores as a whole decide only where the system's own were not read.
    """
    by_key = {judged.key: judged for judged in resources}
    cpu = by_key["cpu_system"]
    generator = generator_fullness(phase)
    if generator is not None and cpu.status != "limits":
        return _generator_verdict(phase, generator, cpu)
    limiting = sorted(
        (judged for judged in resources if judged.status == "limits" and _decides(judged, cpu)),
        key=lambda judged: judged.hardness,
        reverse=True,
    )
    if limiting:
        return _limited_verdict(phase, limiting, by_key, generator)
    if cpu.status == "unknown":
        return _no_cpu_verdict(phase, cpu)
    blind = [judged for judged in resources if not judged.was_sampled and judged.key != "dram_bandwidth"]
    if blind:
        return _blind_verdict(phase, blind)
    return _none_near_verdict(phase, resources)


def generator_fullness(phase: Phase) -> Evidence | None:
    """Evidence that the load generator could not have asked for more; ``None`` when it could, or is not known."""
    line = phase.run.thresholds.limit("generator.idle_minimum")
    idle = phase.result("generator_idle_ratio")
    if idle is not None:
        if idle >= line:
            return None
        return phase.result_evidence(("generator_idle_ratio",), idle, "ratio", "limit.generator.idle_minimum")
    found = phase.find("load_idle_ratio")
    return phase.evidence(*found, "limit.generator.idle_minimum") if found and found[1] < line else None


def offered_was_met(phase: Phase) -> bool | None:
    """Whether an open loop's rate was reached; ``None`` in a closed loop or where it is not known."""
    offered, reached = phase.offered, phase.result("throughput_operations_per_second")
    if offered is None or reached is None:
        return None
    # Arrivals at random are now more, now fewer: three standard deviations of a Poisson count are no shortfall.
    repetitions = max(len(phase.result_values("throughput_operations_per_second")), 1)
    expected = offered * phase.seconds / repetitions
    chance = 3 * math.sqrt(expected) / expected if expected > 0 else math.inf
    return reached >= min(phase.run.thresholds.limit("generator.offered_met"), 1 - chance) * offered


def other_cores(phase: Phase) -> float | None:
    """Cores that neither the system, nor the generator, nor the sampler used; ``None`` where it is not known."""
    total = phase.value("cpu_process_context_cores")
    system = phase.value("process_cpu_cores", process="system")
    generator = phase.total("generator_cpu_seconds")
    if total is None or system is None or generator is None:
        return None
    sampler = phase.run.facts.sampler
    own = sampler.cpu_seconds / sampler.wall_seconds if sampler and sampler.wall_seconds > 0 else 0.0
    return total - system - generator / phase.seconds - own


def _own_share(phase: Phase, busy_ratio: float) -> Evidence | None:
    """Evidence that much of what kept the system's cores busy was not the system; ``None`` when it was, or may be."""
    limit = phase.run.thresholds.limit
    own, others = phase.find("process_cpu_cores", process="system"), other_cores(phase)
    if own is None or others is None or others < limit("interference.cores"):
        return None
    share = own[1] / (busy_ratio * phase.run.system_core_count)
    return phase.evidence(own[0], share, "limit.own_share.minimum") if share < limit("own_share.minimum") else None


def _decides(judged: Judged, cpu: Judged) -> bool:
    return judged.key != "cpu_host" or cpu.status == "unknown"


def _generator_verdict(phase: Phase, generator: Evidence, cpu: Judged) -> Verdict:
    system = phase.run.facts.system
    busy = cpu.intensity.ratio
    if busy is None:
        beside = f"how busy {system}'s cores were is not known ({cpu.intensity.reason})"
    else:
        beside = f"{cpu.intensity.label} had {wording.percent(1 - busy)} left"
    sentence = (
        f"The load generator was the limit in '{phase.name}', not {system}: it waited for responses only "
        f"{wording.percent(generator.value)} of the time, and {beside}. No verdict on {system}."
    )
    evidence = (generator, *cpu.intensity.evidence)
    advice = "Give the load generator more cores (--client-cores), or the system fewer (--cores)."
    return Verdict("generator", (), pointing(sentence, evidence), evidence, advice)


def _limited_verdict(
    phase: Phase, limiting: Sequence[Judged], by_key: dict[str, Judged], generator: Evidence | None
) -> Verdict:
    sentences, evidence = [], []
    for place, judged in enumerate(limiting):
        text, proof = _describe_limit(phase, judged)
        effect = _effect(phase, judged) if place == 0 else "it limits as well"
        sentences.append(pointing(f"{text}: {effect}.", proof))
        evidence += proof
    if generator is not None:
        sentences.append(
            f"The load generator was nearly saturated too: it waited {wording.percent(generator.value)} of the time."
        )
        evidence.append(generator)
    busy, advice = limiting[0].intensity.ratio, _advice(phase, limiting[0])
    foreign = _own_share(phase, busy) if limiting[0].key == "cpu_system" and busy else None
    bandwidth = by_key.get("dram_bandwidth")
    if foreign is not None and not phase.run.shares_cores:
        own = f"Only {wording.percent(foreign.value)} of that was {phase.run.facts.system} itself"
        sentences.append(pointing(f"{own}: other programs ran on its cores.", [foreign]))
        evidence.append(foreign)
        advice = "Stop what else runs on this host, and measure again."
    elif limiting[0].key == "cpu_system" and bandwidth is not None and bandwidth.intensity.ratio is None:
        sentences.append(
            "Whether its cores worked or waited for memory is not known: "
            f"DRAM bandwidth could not be judged ({bandwidth.intensity.reason})."
        )
    keys = tuple(judged.key for judged in limiting)
    return Verdict("limited", keys, " ".join(sentences), tuple(evidence), advice)


def _effect(phase: Phase, judged: Judged) -> str:
    name = _name(judged)
    met = offered_was_met(phase)
    if met is True:
        return f"the offered rate was met, and {name} is the first limit that a higher one would meet"
    if met is False:
        return f"{name} kept '{phase.name}' from the offered rate, so that its response times grow with its length"
    return f"{name} limits throughput in '{phase.name}'"


def _name(judged: Judged) -> str:
    instance = judged.intensity.instance
    if judged.intensity.resource == "disk":
        return f"disk {instance}" if instance else "the disk"
    if judged.intensity.resource == "network":
        return "the loopback" if instance == "lo" else f"network {instance}" if instance else "the network"
    return {
        "cpu_system": "CPU",
        "cpu_host": "the host's CPU",
        "dram_capacity": "memory capacity",
        "dram_bandwidth": "DRAM bandwidth",
    }[judged.intensity.resource]


def _describe_limit(phase: Phase, judged: Judged) -> tuple[str, list[Evidence]]:
    intensity, saturation = judged.intensity, judged.saturation
    if intensity.resource in ("cpu_system", "cpu_host"):
        return _describe_cpu(phase, judged)
    strongest = saturation.signs[0] if saturation.signs else None
    proof = list(intensity.evidence)
    name = _name(judged)
    if intensity.ratio is not None and intensity.use is not None:
        used = wording.quantity(intensity.use, intensity.unit)
        whole = "what it was measured to give" if intensity.resource == "disk" else f"the {intensity.ceiling_source}"
        text = f"{wording.capital(name)} was used at {used}, {wording.percent(intensity.ratio)} of {whole}"
    elif intensity.peak is not None:
        text = f"{wording.capital(name)} was busy {wording.percent(intensity.peak.value)} of the time"
        proof.append(intensity.peak)
    else:
        text = wording.capital(name)
    if strongest is not None:
        text += f", and {strongest.words}" if proof else f": {strongest.words}"
        proof.append(strongest.evidence)
    return text, proof


def _describe_cpu(phase: Phase, judged: Judged) -> tuple[str, list[Evidence]]:
    intensity, saturation = judged.intensity, judged.saturation
    system, rule = phase.run.facts.system, phase.run.thresholds.intensity[intensity.resource]
    ratio, peak = intensity.ratio, intensity.peak
    proof = list(intensity.evidence)
    whole = phase.run.system_core_count if intensity.resource == "cpu_system" else phase.run.host_core_count
    if ratio is not None and ratio >= rule.limit:
        return f"{_who(phase, judged)} busy {wording.percent(ratio)} of the time{_kernel_share(phase)}", proof
    if saturation.decides:
        sign = next(sign for sign in saturation.signs if sign.rule.decides)
        return f"Of {system}, {sign.words}", [sign.evidence]
    if peak is not None and peak.value >= rule.limit and ratio is not None:
        core = describe_core(peak)
        text = (
            f"{wording.capital(core)} was busy {wording.percent(peak.value)} of the time while all {whole} cores "
            f"together were busy {wording.percent(ratio)}; a single thread seems to do the work"
        )
        return text, [peak, *proof]
    words = saturation.signs[0].words if saturation.signs else "tasks queued for it"
    proof += [sign.evidence for sign in saturation.signs[:1]]
    busy = f"busy {wording.percent(ratio)} of the time" if ratio is not None else "in demand"
    return f"{_who(phase, judged)} {busy}, and {words}", proof


def describe_core(evidence: Evidence) -> str:
    """``core 2`` of evidence about one core."""
    return "core " + evidence.quantity.partition('core="')[2].partition('"')[0]


def _who(phase: Phase, judged: Judged) -> str:
    facts = phase.run.facts
    if judged.intensity.resource == "cpu_host" or not facts.system_cores:
        return f"All {facts.host_cores} cores of the host were" if facts.host_cores > 1 else "The host's one core was"
    count = len(facts.system_cores)
    noun = "core was" if count == 1 else f"{count} cores were"
    shared = set(facts.system_cores) & set(facts.client_cores)
    if shared:
        which = "core " if count == 1 else "cores "
        return facts.begin(f"{facts.system} and the load generator shared {which}") + (
            f"{wording.numbers(facts.system_cores)}, " + ("which was" if count == 1 else "which were")
        )
    return facts.begin(f"{facts.system}'s {noun}")


def _kernel_share(phase: Phase) -> str:
    share = phase.value("cpu_set_kernel_share_ratio", set="system")
    return "" if share is None else f" ({wording.percent(share)} of that in the kernel)"


def _advice(phase: Phase, judged: Judged) -> str:
    resource = judged.intensity.resource
    if resource in ("cpu_system", "cpu_host"):
        share = phase.value("cpu_set_kernel_share_ratio", set="system") or 0.0
        lighter = "use less CPU time for each operation"
        if share >= phase.run.thresholds.limit("kernel.heavy"):
            lighter = "do more with each system call (pipelining, multi-get), as most of the CPU time is the kernel's"
        return f"Give the system more cores (--cores) if it can use them, or {lighter}."
    if resource == "dram_capacity":
        return "Give it more memory, or a data set that fits."
    if resource == "dram_bandwidth":
        return "More cores will not help: use more memory channels, or touch less memory for each operation."
    if resource == "disk":
        return "Use a faster disk or several, or keep more of the data in memory."
    return "Use a faster link, or send less for each operation."


def _no_cpu_verdict(phase: Phase, cpu: Judged) -> Verdict:
    sentence = f"No verdict on '{phase.name}': the CPU was not measured ({cpu.intensity.reason})."
    return Verdict("no_verdict", (), sentence, (), cpu.intensity.advice)


def _blind_verdict(phase: Phase, blind: Sequence[Judged]) -> Verdict:
    names = wording.listing([_name(judged) for judged in blind])
    reasons = "; ".join(dict.fromkeys(judged.intensity.reason for judged in blind))
    were = "was" if len(blind) == 1 else "were"
    sentence = (
        f"No verdict on '{phase.name}': no measured resource is near its limit, but {names} {were} not measured "
        f"({reasons})."
    )
    advice = next((judged.intensity.advice for judged in blind if judged.intensity.advice), "")
    return Verdict("no_verdict", (), sentence, (), advice)


#: What may limit where nothing that was measured does.
_UNMEASURED = "the limit was not measured; it may be locks, wake-ups, round trips or synchronous writes"


def _none_near_verdict(phase: Phase, resources: Sequence[Judged]) -> Verdict:
    facts = phase.run.facts
    cpu = next(judged for judged in resources if judged.key == "cpu_system")
    near = [judged for judged in resources if judged.status == "near" and _decides(judged, cpu)]
    unjudged = [
        judged
        for judged in resources
        # Waiting for DRAM shows as a busy core: where cores have time left, bandwidth does not limit.
        if judged.status == "unknown" and judged.key != "dram_bandwidth"
    ]
    evidence = [one for judged in (cpu, *near) for one in judged.intensity.evidence]
    busy = cpu.intensity.ratio or 0.0
    sentence = (
        f"No measured resource is at its limit in '{phase.name}': {cpu.intensity.label} "
        f"{'was' if phase.run.system_core_count == 1 else 'were'} busy {wording.percent(busy)} of the time"
    )
    if near:
        sentence += f", and {wording.listing([_name(judged) for judged in near])} came near"
    met = offered_was_met(phase)
    advice = ""
    if met is True:
        sentence += "; the offered rate was met"
    elif met is False:
        sentence += f"; but the offered rate was not met: {_UNMEASURED}"
        advice = "Profile the system, or look at its own statistics in the manifest."
    elif phase.offered is None:
        outstanding = (facts.connections or 0) * max(facts.pipeline, 1)
        low = outstanding and outstanding < phase.run.thresholds.limit("load.concurrency_low") * max(
            phase.run.system_core_count, 1
        )
        sentence += (
            f"; a closed loop of {outstanding} outstanding requests leaves it waiting for the next one"
            if low
            else f"; {_UNMEASURED}"
        )
        advice = "Raise --connections to see whether more can be served." if low else "Profile the system."
    sentence = pointing(f"{sentence}.", evidence)
    if unjudged:
        names = wording.listing([_name(judged) for judged in unjudged])
        reasons = "; ".join(dict.fromkeys(judged.intensity.reason for judged in unjudged))
        sentence += f" Not judged: {names} ({reasons})."
        advice = next((judged.intensity.advice for judged in unjudged if judged.intensity.advice), advice)
    return Verdict("none_near", (), sentence, tuple(evidence), advice)
