"""Is the machine enough: kernel, cores, memory, disk, and who else is on it."""

from __future__ import annotations

import re
import shutil

from rackscope.host.checks.check import Check, Examined, bad, limited, ok
from rackscope.units import format_bytes

_OLDEST_KERNEL = (5, 10)
_ENOUGH_MEMORY_BYTES = 1 << 30
_ENOUGH_DISK_BYTES = 1 << 30


def kernel(examined: Examined) -> Check:
    """The oldest kernel that rackscope is made for."""
    release = examined.inventory.kernel
    match = re.match(r"(\d+)\.(\d+)", release or "")
    if match is None:
        return limited("the kernel's version cannot be read", "no probe is known to work")
    if (int(match[1]), int(match[2])) >= _OLDEST_KERNEL:
        return ok(f"Linux {release}")
    wanted = ".".join(map(str, _OLDEST_KERNEL))
    return limited(
        f"Linux {release} is older than {wanted}",
        "some probes may be missing; rackscope is not tested here",
        f"Use a kernel from {wanted} on.",
    )


def cores(examined: Examined) -> Check:
    """Two cores keep client and system apart; isolated ones keep everyone else away."""
    usable = examined.inventory.usable_cores or examined.inventory.processor.online
    isolated = examined.inventory.processor.isolated or ()
    if len(usable) < 2:
        return limited(
            f"this process may use {len(usable) or 'no known'} core{'' if len(usable) == 1 else 's'}",
            "client and system compete for the core: throughput is far too low and latency too high",
            "Give it two cores or more (taskset, cpuset, a larger machine).",
        )
    whole = [group for group in examined.inventory.processor.siblings if set(usable) & set(group)]
    if len(whole) == 1:
        return limited(
            f"the {len(usable)} usable cores are threads of one physical core",
            "client and system slow each other down",
            "Give it two physical cores or more.",
        )
    apart = f"{len(isolated)} of them isolated" if isolated else "none isolated, so other processes may run there too"
    return ok(f"{len(usable)} usable cores, {apart}")


def cpu_limit(examined: Examined) -> Check:
    """A quota of CPU time throttles in bursts."""
    limit = examined.inventory.cgroup.cpu_limit_cores
    if limit is None:
        return ok("no quota on CPU time is set for this process's control group")
    return limited(
        f"the control group may use {limit:g} cores' worth of time",
        "system and client are stopped for the rest of a period once it is spent: tail latency is the quota's",
        "Run without a CPU quota (docker run without --cpus, no cpu.max).",
    )


def virtual_machine(examined: Examined) -> Check | None:
    """A guest shares its machine."""
    found = examined.inventory.virtualisation
    if found.guest:
        return limited(
            f"this is a guest{f' of {found.hypervisor}' if found.hypervisor else ''}",
            "neighbours share caches, memory bandwidth and disks unseen: results change with what they do",
            "Compare runs side by side, or measure on bare metal.",
        )
    return None if found.guest is None else ok("bare metal")


def container(examined: Examined) -> Check | None:
    """A container shares its kernel."""
    engine = examined.inventory.virtualisation.container
    if not engine:
        return None
    return limited(
        f"this is a {engine} container",
        "host-wide figures include what runs outside it; some of the host may be hidden",
        "Run on the host itself where that matters.",
    )


def memory(examined: Examined) -> Check:
    """Room for a system, its data and the client."""
    available, limit = examined.inventory.memory.available_bytes, examined.inventory.cgroup.memory_limit_bytes
    if available is None:
        return limited("/proc/meminfo does not say how much is available", "a run may not fit")
    within = f" and the control group allows {format_bytes(limit)}" if limit is not None else ""
    text = f"{format_bytes(available)} available{within}"
    if min(available, limit or available) >= _ENOUGH_MEMORY_BYTES:
        return ok(text)
    return limited(text, "data sets must be small, and may stay in caches", "End something, or add some.")


def disk_space(examined: Examined) -> Check:
    """Room for run directories."""
    storage = examined.inventory.working_folder
    try:
        free = shutil.disk_usage(examined.folder).free
    except OSError as error:
        return bad(
            f"{examined.folder} cannot be looked at: {error.strerror}",
            "run directories cannot be written there",
            "Choose another folder with --out.",
        )
    where = f"in {examined.folder} ({storage.file_system or 'unknown file system'})"
    if free >= _ENOUGH_DISK_BYTES:
        return ok(f"{format_bytes(free)} free {where}")
    return limited(
        f"{format_bytes(free)} free {where}",
        "a long run may not fit; disks cannot be calibrated",
        "Free some space, or choose another folder with --out.",
    )
