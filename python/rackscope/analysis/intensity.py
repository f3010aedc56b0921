"""How much of each resource a phase used, against the most that it can give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackscope.analysis import wording
from rackscope.analysis.findings import Evidence

if TYPE_CHECKING:
    from rackscope.analysis.context import Phase


@dataclass(frozen=True)
class Intensity:
    """Use, ceiling and their ratio; ``ratio`` is ``None`` with the reason when either is not known."""

    resource: str
    instance: str | None
    label: str
    use: float | None
    ceiling: float | None
    unit: str
    ceiling_source: str
    ratio: float | None
    reason: str = ""
    advice: str = ""
    evidence: tuple[Evidence, ...] = ()
    #: The busiest single part (a core; a disk's share of busy time) where the whole may hide it.
    peak: Evidence | None = None
    #: Whether signs of the whole host count for this instance.
    primary: bool = True


def measure_intensities(phase: Phase) -> list[Intensity]:
    """All resources of a phase."""
    return [
        _cpu_system(phase),
        *_cpu_host(phase),
        _dram_capacity(phase),
        _dram_bandwidth(phase),
        *_disks(phase),
        *_networks(phase),
    ]


def _unknown(
    resource: str,
    instance: str | None,
    label: str,
    unit: str,
    reason: str,
    advice: str,
    use: float | None = None,
    ceiling: float | None = None,
    evidence: tuple[Evidence, ...] = (),
    peak: Evidence | None = None,
    primary: bool = True,
) -> Intensity:
    return Intensity(resource, instance, label, use, ceiling, unit, "", None, reason, advice, evidence, peak, primary)


def _cpu_system(phase: Phase) -> Intensity:
    run, rule = phase.run, phase.run.thresholds.intensity["cpu_system"]
    count = run.system_core_count
    cores = run.facts.system_cores
    noun = "core" if count == 1 else "cores"
    label = f"{run.facts.system}'s {noun} ({wording.numbers(cores)})" if cores else f"the host's {count} {noun}"
    series = run.samples.find("cpu_set_busy_ratio", set="system")
    if series is None:
        reason, advice = run.missing("cpu_core_seconds_total", "cpu_seconds_total")
        return _unknown("cpu_system", None, label, "cores", reason, advice)
    reading = series.over(phase.windows)
    if reading.value is None:
        return _unknown("cpu_system", None, label, "cores", reading.reason, "")
    evidence = phase.evidence(series, reading.value, threshold="intensity.cpu_system.limit", threshold_value=rule.limit)
    return Intensity(
        "cpu_system",
        None,
        label,
        phase.value("cpu_set_busy_cores", set="system"),
        float(count),
        "cores",
        f"{count} {noun}, minus steal",
        reading.value,
        evidence=(evidence,),
        peak=_hottest_core(phase, rule.limit) if count > 1 else None,
    )


def _hottest_core(phase: Phase, line: float) -> Evidence | None:
    cores = {str(core) for core in phase.run.facts.system_cores}
    found: Evidence | None = None
    for series in phase.run.samples.find_all("cpu_core_busy_ratio"):
        if cores and series.labels["core"] not in cores:
            continue
        value = series.over(phase.windows).value
        if value is not None and (found is None or value > found.value):
            found = phase.evidence(series, value, threshold="intensity.cpu_system.limit", threshold_value=line)
    return found


def _cpu_host(phase: Phase) -> list[Intensity]:
    """The whole host, where the system was given only a part of it."""
    run = phase.run
    count = run.host_core_count
    if not run.facts.system_cores or run.system_core_count >= count:
        return []
    label = f"all {count} cores of the host"
    series = run.samples.find("cpu_busy_ratio")
    if series is None:
        reason, advice = run.missing("cpu_seconds_total")
        return [_unknown("cpu_host", None, label, "cores", reason, advice)]
    reading = series.over(phase.windows)
    if reading.value is None:
        return [_unknown("cpu_host", None, label, "cores", reading.reason, "")]
    rule = run.thresholds.intensity["cpu_host"]
    evidence = phase.evidence(series, reading.value, threshold="intensity.cpu_host.limit", threshold_value=rule.limit)
    return [
        Intensity(
            "cpu_host", None, label, phase.value("cpu_busy_cores"), float(count), "cores",
            f"{count} cores, minus steal", reading.value, evidence=(evidence,),
        )
    ]  # fmt: skip


def _dram_capacity(phase: Phase) -> Intensity:
    run = phase.run
    series = run.samples.find("memory_used_ratio")
    if series is None:
        reason, advice = run.missing("memory_bytes")
        return _unknown("dram_capacity", None, "memory", "bytes", reason, advice)
    reading = series.over(phase.windows)
    if reading.highest is None:
        return _unknown("dram_capacity", None, "memory", "bytes", reading.reason, "")
    total = phase.value("memory_part_bytes", part="total") or run.facts.memory_total_bytes
    rule = run.thresholds.intensity["dram_capacity"]
    evidence = phase.evidence(
        series, reading.highest, threshold="intensity.dram_capacity.limit", threshold_value=rule.limit
    )
    host = Intensity(
        "dram_capacity", None, "memory", None if total is None else total * reading.highest, total, "bytes",
        "memory of the host", reading.highest, evidence=(evidence,),
    )  # fmt: skip
    group = _group_memory(phase)
    return group if group is not None and (group.ratio or 0.0) > reading.highest else host


def _group_memory(phase: Phase) -> Intensity | None:
    """Memory of the fullest sampled control group against its limit, where one has a limit."""
    rule = phase.run.thresholds.intensity["dram_capacity"]
    found: Intensity | None = None
    for series in phase.run.samples.find_all("cgroup_memory_bytes", kind="current"):
        limit = phase.value("cgroup_memory_limit_bytes", cgroup=series.labels["cgroup"])
        use = series.over(phase.windows).highest
        if not limit or use is None or (found is not None and use / limit <= (found.ratio or 0.0)):
            continue
        evidence = phase.evidence(
            series, use / limit, threshold="intensity.dram_capacity.limit", threshold_value=rule.limit
        )
        label = f"memory of control group {series.labels['cgroup']}"
        found = Intensity(
            "dram_capacity", None, label, use, limit, "bytes", f"limit of {label}", use / limit, evidence=(evidence,)
        )
    return found


def _dram_bandwidth(phase: Phase) -> Intensity:
    run = phase.run
    label, metric = "DRAM bandwidth", "perf_dram_fills_total"
    series = run.samples.find("dram_read_bytes_per_second", scope="host") or run.samples.find(
        "dram_read_bytes_per_second"
    )
    if series is None:
        reason, advice = run.missing(metric)
        return _unknown("dram_bandwidth", None, label, "bytes/s", reason, advice)
    reading = series.over(phase.windows)
    doubt = run.distrust(metric)
    if reading.value is None or doubt:
        return _unknown("dram_bandwidth", None, label, "bytes/s", doubt or reading.reason, "")
    ceiling, why, advice = run.ceiling("dram_read_bytes_per_second", "this host's DRAM bandwidth was not measured")
    rule = run.thresholds.intensity["dram_bandwidth"]
    evidence = phase.evidence(
        series,
        reading.value,
        threshold="intensity.dram_bandwidth.limit",
        threshold_value=None if ceiling is None else rule.limit * ceiling,
    )
    if ceiling is None:
        return _unknown("dram_bandwidth", None, label, "bytes/s", why, advice, use=reading.value, evidence=(evidence,))
    return Intensity(
        "dram_bandwidth", None, label, reading.value, ceiling, "bytes/s", "read bandwidth measured by calibrate",
        reading.value / ceiling, evidence=(evidence,),
    )  # fmt: skip


def _disks(phase: Phase) -> list[Intensity]:
    run = phase.run
    devices = [series.labels["device"] for series in run.samples.find_all("disk_busy_ratio")]
    if not devices:
        reason, advice = run.missing("disk_read_bytes_total", "disk_busy_seconds_total")
        return [_unknown("disk", None, "disks", "bytes/s", reason, advice)]
    busy = {device: phase.value("disk_busy_ratio", device=device) or 0.0 for device in devices}
    primary = max(devices, key=lambda device: busy[device])
    used = [device for device in devices if busy[device] > 0 or device == primary]
    return [_disk(phase, device, primary=device == primary) for device in used]


def _disk(phase: Phase, device: str, *, primary: bool) -> Intensity:
    label = f"disk {device}"
    busy_series = phase.run.samples.find("disk_busy_ratio", device=device)
    busy_rule = phase.run.thresholds.intensity["disk_busy"]
    busy_value = phase.value("disk_busy_ratio", device=device)
    peak = None
    if busy_series is not None and busy_value is not None:
        peak = phase.evidence(
            busy_series, busy_value, threshold="intensity.disk_busy.limit", threshold_value=busy_rule.limit
        )
    sides = (
        _disk_side(phase, device, "bytes/s", "disk_{}_bytes_per_second", "disk_sequential_{}_bytes_per_second"),
        _disk_side(phase, device, "operations/s", "disk_{}s_per_second", "disk_random_{}_operations_per_second"),
    )
    known = [side for side in sides if side is not None and side.ratio is not None]
    if known:
        hardest = max(known, key=lambda side: side.ratio or 0.0)
        return Intensity(
            "disk", device, label, hardest.use, hardest.ceiling, hardest.unit, "measured by calibrate, for this mix",
            hardest.ratio, evidence=hardest.evidence, peak=peak, primary=primary,
        )  # fmt: skip
    measured = next((side for side in sides if side is not None), None)
    if measured is None:
        return _unknown(
            "disk", device, label, "bytes/s", "its counters were not read in this phase", "", peak=peak, primary=primary
        )
    return _unknown(
        "disk", device, label, measured.unit, measured.reason, measured.advice,
        use=measured.use, evidence=measured.evidence, peak=peak, primary=primary,
    )  # fmt: skip


@dataclass(frozen=True)
class _Side:
    """One way to look at a disk: its bytes or its requests."""

    use: float
    ceiling: float | None
    unit: str
    ratio: float | None
    evidence: tuple[Evidence, ...]
    reason: str = ""
    advice: str = ""


def _disk_side(phase: Phase, device: str, unit: str, quantity: str, ceiling_name: str) -> _Side | None:
    """Reads and writes each take their share of the device's time; together they must fit into it."""
    use, share, reason, advice = 0.0, 0.0, "", ""
    evidence = []
    for direction in ("read", "write"):
        series = phase.run.samples.find(quantity.format(direction), device=device)
        value = series.over(phase.windows).value if series else None
        if series is None or value is None:
            return None
        use += value
        evidence.append(phase.evidence(series, value))
        name = f'{ceiling_name.format(direction)}{{device="{device}"}}'
        ceiling, why, todo = phase.run.ceiling(name, f"the ceilings of {device} were not measured")
        if ceiling is not None:
            share += value / ceiling
        elif value > 0:
            reason, advice = why, todo
    if reason:
        return _Side(use, None, unit, None, tuple(evidence), reason, advice)
    return _Side(use, use / share if share > 0 else None, unit, share, tuple(evidence))


def _networks(phase: Phase) -> list[Intensity]:
    run = phase.run
    interfaces = [series.labels["interface"] for series in run.samples.find_all("network_transmit_bytes_per_second")]
    wanted = run.facts.interface
    if not interfaces:
        if wanted is None:
            return []
        reason, advice = run.missing("network_transmit_bytes_total")
        return [_unknown("network", wanted, _interface_label(wanted), "bytes/s", reason, advice)]
    found = []
    for interface in interfaces:
        intensity = _network(phase, interface, primary=interface == (wanted or interfaces[0]))
        if interface == wanted or (intensity.use or 0.0) > 0:
            found.append(intensity)
    return found


def _network(phase: Phase, interface: str, *, primary: bool) -> Intensity:
    run, label = phase.run, _interface_label(interface)
    loopback = interface == "lo"
    # What loopback sends it also receives: one direction is all there is.
    directions = ("transmit",) if loopback else ("transmit", "receive")
    evidence: list[Evidence] = []
    for direction in directions:
        series = run.samples.find(f"network_{direction}_bytes_per_second", interface=interface)
        value = series.over(phase.windows).value if series else None
        if series is not None and value is not None:
            evidence.append(phase.evidence(series, value))
    if not evidence:
        reason = "its counters were not read in this phase"
        return _unknown("network", interface, label, "bytes/s", reason, "", primary=primary)
    hardest = max(evidence, key=lambda one: one.value)
    name = "loopback_bytes_per_second" if loopback else f'network_bytes_per_second{{interface="{interface}"}}'
    ceiling, why, advice = run.ceiling(name, f"the ceiling of {interface} is not known")
    if ceiling is None and hardest.value > 0:
        return _unknown(
            "network", interface, label, "bytes/s", why, advice, use=hardest.value, evidence=(hardest,), primary=primary
        )
    source = "loopback rate measured by calibrate" if loopback else "speed of the link"
    ratio = 0.0 if ceiling is None else hardest.value / ceiling
    return Intensity(
        "network", interface, label, hardest.value, ceiling, "bytes/s", source if ceiling else "", ratio,
        evidence=(hardest,), primary=primary,
    )  # fmt: skip


def _interface_label(interface: str) -> str:
    return "loopback (lo: memory copies by the kernel, no wire)" if interface == "lo" else f"network {interface}"


def key(intensity: Intensity) -> str:
    """``disk:vda`` or ``cpu_system``."""
    return f"{intensity.resource}:{intensity.instance}" if intensity.instance else intensity.resource
