"""How much of each resource a phase used, against the most that it can give."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rackscope.analysis import wording
from rackscope.analysis.context import Phase
from rackscope.analysis.findings import Evidence
from rackscope.analysis.rates import Series


@dataclass(frozen=True)
class Intensity:
    """Use, ceiling and their ratio; ``ratio`` is ``None`` with the reason when either is not known."""

    resource: str
    label: str
    unit: str
    instance: str | None = None
    use: float | None = None
    ceiling: float | None = None
    ceiling_source: str = ""
    ratio: float | None = None
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


def _cpu_system(phase: Phase) -> Intensity:
    run = phase.run
    count, cores = run.system_core_count, run.facts.system_cores
    noun = "core" if count == 1 else "cores"
    label = f"{run.facts.system}'s {noun} ({wording.numbers(cores)})" if cores else f"the host's {count} {noun}"
    series = run.samples.find("cpu_set_busy_ratio", set="system")
    found = _cores(phase, "cpu_system", label, count, series, ("cpu_core_seconds_total", "cpu_seconds_total"))
    if found.ratio is None:
        return found
    used = phase.value("cpu_set_busy_cores", set="system")
    return replace(found, use=used, peak=_hottest_core(phase) if count > 1 else None)


def _cpu_host(phase: Phase) -> list[Intensity]:
    """The whole host, where the system was given only a part of it."""
    run, count = phase.run, phase.run.host_core_count
    if not run.facts.system_cores or run.system_core_count >= count:
        return []
    series = run.samples.find("cpu_busy_ratio")
    found = _cores(phase, "cpu_host", f"all {count} cores of the host", count, series, ("cpu_seconds_total",))
    return [found if found.ratio is None else replace(found, use=phase.value("cpu_busy_cores"))]


def _cores(
    phase: Phase, resource: str, label: str, count: int, series: Series | None, metrics: tuple[str, ...]
) -> Intensity:
    """How busy ``count`` cores were."""
    if series is None:
        reason, advice = phase.run.missing(*metrics)
        return Intensity(resource, label, "cores", reason=reason, advice=advice)
    reading = series.over(phase.windows)
    if reading.value is None:
        return Intensity(resource, label, "cores", reason=reading.reason)
    evidence = phase.evidence(series, reading.value, f"intensity.{resource}.limit")
    source = f"{count} {'core' if count == 1 else 'cores'}, minus steal"
    return Intensity(
        resource, label, "cores", ceiling=float(count), ceiling_source=source, ratio=reading.value, evidence=(evidence,)
    )


def _hottest_core(phase: Phase) -> Evidence | None:
    cores = {str(core) for core in phase.run.facts.system_cores}
    found: Evidence | None = None
    for series in phase.run.samples.find_all("cpu_core_busy_ratio"):
        if cores and series.labels["core"] not in cores:
            continue
        value = series.over(phase.windows).value
        if value is not None and (found is None or value > found.value):
            found = phase.evidence(series, value, "intensity.cpu_system.limit")
    return found


def _dram_capacity(phase: Phase) -> Intensity:
    run = phase.run
    series = run.samples.find("memory_used_ratio")
    if series is None:
        reason, advice = run.missing("memory_bytes")
        return Intensity("dram_capacity", "memory", "bytes", reason=reason, advice=advice)
    reading = series.over(phase.windows)
    if reading.highest is None:
        return Intensity("dram_capacity", "memory", "bytes", reason=reading.reason)
    total = phase.value("memory_part_bytes", part="total") or run.facts.memory_total_bytes
    host = Intensity(
        "dram_capacity",
        "memory",
        "bytes",
        use=None if total is None else total * reading.highest,
        ceiling=total,
        ceiling_source="memory of the host",
        ratio=reading.highest,
        evidence=(phase.evidence(series, reading.highest, "intensity.dram_capacity.limit"),),
    )
    group = _group_memory(phase)
    return group if group is not None and (group.ratio or 0.0) > reading.highest else host


def _group_memory(phase: Phase) -> Intensity | None:
    """Memory of the fullest sampled control group against its limit, where one has a limit."""
    found: Intensity | None = None
    for series in phase.run.samples.find_all("cgroup_memory_bytes", kind="current"):
        limit = phase.value("cgroup_memory_limit_bytes", cgroup=series.labels["cgroup"])
        use = series.over(phase.windows).highest
        if not limit or use is None or (found is not None and use / limit <= (found.ratio or 0.0)):
            continue
        label = f"memory of control group {series.labels['cgroup']}"
        found = Intensity(
            "dram_capacity",
            label,
            "bytes",
            use=use,
            ceiling=limit,
            ceiling_source=f"limit of {label}",
            ratio=use / limit,
            evidence=(phase.evidence(series, use / limit, "intensity.dram_capacity.limit"),),
        )
    return found


def _dram_bandwidth(phase: Phase) -> Intensity:
    run, metric = phase.run, "perf_dram_fills_total"
    found = Intensity("dram_bandwidth", "DRAM bandwidth", "bytes/s")
    series = run.samples.find("dram_read_bytes_per_second", scope="host") or run.samples.find(
        "dram_read_bytes_per_second"
    )
    if series is None:
        reason, advice = run.missing(metric)
        return replace(found, reason=reason, advice=advice)
    reading = series.over(phase.windows)
    doubt = run.distrust(metric)
    if reading.value is None or doubt:
        return replace(found, reason=doubt or reading.reason)
    ceiling, why, advice = run.ceiling("dram_read_bytes_per_second", "this host's DRAM bandwidth was not measured")
    evidence = phase.evidence(series, reading.value, "intensity.dram_bandwidth.limit")
    line = None if ceiling is None else run.thresholds.intensity["dram_bandwidth"].limit * ceiling
    found = replace(found, use=reading.value, evidence=(replace(evidence, threshold_value=line),))
    if ceiling is None:
        return replace(found, reason=why, advice=advice)
    source = "read bandwidth measured by calibrate"
    return replace(found, ceiling=ceiling, ceiling_source=source, ratio=reading.value / ceiling)


def _disks(phase: Phase) -> list[Intensity]:
    run = phase.run
    devices = [series.labels["device"] for series in run.samples.find_all("disk_busy_ratio")]
    if not devices:
        reason, advice = run.missing("disk_read_bytes_total", "disk_busy_seconds_total")
        return [Intensity("disk", "disks", "bytes/s", reason=reason, advice=advice)]
    busy = {device: phase.value("disk_busy_ratio", device=device) or 0.0 for device in devices}
    primary = max(devices, key=lambda device: busy[device])
    used = [device for device in devices if busy[device] > 0 or device == primary]
    return [_disk(phase, device, primary=device == primary) for device in used]


def _disk(phase: Phase, device: str, *, primary: bool) -> Intensity:
    busy = phase.find("disk_busy_ratio", device=device)
    peak = phase.evidence(*busy, "intensity.disk_busy.limit") if busy else None
    sides = (
        _disk_side(phase, device, "bytes/s", "disk_{}_bytes_per_second", "disk_sequential_{}_bytes_per_second"),
        _disk_side(phase, device, "operations/s", "disk_{}s_per_second", "disk_random_{}_operations_per_second"),
    )
    measured = [side for side in sides if side is not None]
    found = max(measured, key=lambda side: -1.0 if side.ratio is None else side.ratio, default=None)
    if found is None:
        found = Intensity("disk", "", "bytes/s", reason="its counters were not read in this phase")
    return replace(found, label=f"disk {device}", instance=device, peak=peak, primary=primary)


def _disk_side(phase: Phase, device: str, unit: str, quantity: str, ceiling_name: str) -> Intensity | None:
    """A disk's bytes or its requests: reads and writes each take their share of the device's time."""
    use, share, reason, advice = 0.0, 0.0, "", ""
    evidence = []
    for direction in ("read", "write"):
        found = phase.find(quantity.format(direction), device=device)
        if found is None:
            return None
        value = found[1]
        use += value
        evidence.append(phase.evidence(*found))
        name = f'{ceiling_name.format(direction)}{{device="{device}"}}'
        ceiling, why, todo = phase.run.ceiling(name, f"the ceilings of {device} were not measured")
        if ceiling is not None:
            share += value / ceiling
        elif value > 0:
            reason, advice = why, todo
    side = Intensity("disk", "", unit, use=use, reason=reason, advice=advice, evidence=tuple(evidence))
    if reason:
        return side
    source = "measured by calibrate, for this mix"
    return replace(side, ratio=share, ceiling=use / share if share > 0 else None, ceiling_source=source)


def _networks(phase: Phase) -> list[Intensity]:
    run = phase.run
    interfaces = [series.labels["interface"] for series in run.samples.find_all("network_transmit_bytes_per_second")]
    wanted = run.facts.interface
    if not interfaces:
        if wanted is None:
            return []
        reason, advice = run.missing("network_transmit_bytes_total")
        return [Intensity("network", _interface_label(wanted), "bytes/s", wanted, reason=reason, advice=advice)]
    found = []
    for interface in interfaces:
        intensity = _network(phase, interface, primary=interface == (wanted or interfaces[0]))
        if interface == wanted or (intensity.use or 0.0) > 0:
            found.append(intensity)
    return found


def _network(phase: Phase, interface: str, *, primary: bool) -> Intensity:
    run, loopback = phase.run, interface == "lo"
    intensity = Intensity("network", _interface_label(interface), "bytes/s", interface, primary=primary)
    # What loopback sends it also receives: one direction is all there is.
    directions = ("transmit",) if loopback else ("transmit", "receive")
    readings = [phase.find(f"network_{direction}_bytes_per_second", interface=interface) for direction in directions]
    evidence = [phase.evidence(*reading) for reading in readings if reading is not None]
    if not evidence:
        return replace(intensity, reason="its counters were not read in this phase")
    hardest = max(evidence, key=lambda one: one.value)
    intensity = replace(intensity, use=hardest.value, evidence=(hardest,))
    name = "loopback_bytes_per_second" if loopback else f'network_bytes_per_second{{interface="{interface}"}}'
    ceiling, why, advice = run.ceiling(name, f"the ceiling of {interface} is not known")
    if ceiling is None:
        return replace(intensity, reason=why, advice=advice) if hardest.value > 0 else replace(intensity, ratio=0.0)
    source = "loopback rate measured by calibrate" if loopback else "speed of the link"
    return replace(intensity, ceiling=ceiling, ceiling_source=source, ratio=hardest.value / ceiling)


def _interface_label(interface: str) -> str:
    return "loopback (lo: memory copies by the kernel, no wire)" if interface == "lo" else f"network {interface}"


def key(intensity: Intensity) -> str:
    """``disk:vda`` or ``cpu_system``."""
    return f"{intensity.resource}:{intensity.instance}" if intensity.instance else intensity.resource
