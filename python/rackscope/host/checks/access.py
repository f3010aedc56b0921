"""What this process may see: hardware counters, pressure, control groups, other processes."""

from __future__ import annotations

import os
import re
import resource

from rackscope.host.checks.check import Check, Examined, lacking_probe, limited, ok
from rackscope.host.checks.power import PREFIX as POWER_METERS
from rackscope.mounts import read_mounts

_EVENT_SOURCES = "sys/bus/event_source/devices"
#: Names of processors' counters: x86, hybrid x86, Arm, and the old Arm name.
_CORE_PMU = re.compile(r"cpu(_core|_atom)?|armv\d.*|apple_.*_pmu|arm_.*_pmu")
_PARANOIA = "proc/sys/kernel/perf_event_paranoid"
#: Connections of a run, and what Python and the system have open besides.
_ENOUGH_FILES = 4096
#: Probes whose absence has a check of its own, which knows what to do about it.
_HAVE_OWN_CHECKS = ("perf", "pressure", "frequency")
_PERF_EFFECT = "no cycles, instructions, CPI, cache misses or DRAM bandwidth"


def perf_events(examined: Examined) -> Check:
    """Hardware counters: there, and allowed."""
    tree = examined.tree
    paranoia = tree.integer(_PARANOIA)
    if paranoia is None:
        return limited("this kernel has no perf events", _PERF_EFFECT, "Use a kernel built with CONFIG_PERF_EVENTS.")
    present = [name for name in tree.names(_EVENT_SOURCES) if _CORE_PMU.fullmatch(name)]
    if not present:
        guest = examined.inventory.virtualisation.guest
        what = "this guest is shown no hardware counters" if guest else "the kernel knows no counters of this processor"
        advice = "Have the hypervisor pass them through (KVM: pmu=on), or measure on bare metal." if guest else ""
        return limited(what, _PERF_EFFECT, advice)
    counters = f"counters of {', '.join(present)}"
    # CAP_PERFMON would do as well as root: the probes, asked below, know.
    if examined.user_id == 0 or paranoia <= 0:
        return ok(f"{counters}, for the whole host")
    if paranoia <= 2:
        return limited(
            f"{counters}, for own processes only (kernel.perf_event_paranoid is {paranoia})",
            "no DRAM bandwidth or CPI of the host as a whole",
            "Set it to 0 (sysctl -w kernel.perf_event_paranoid=0), or run as root.",
        )
    return limited(
        f"{counters}, forbidden (kernel.perf_event_paranoid is {paranoia})",
        _PERF_EFFECT,
        "Set it to 0 (sysctl -w kernel.perf_event_paranoid=0), or run as root.",
    )


def probes(examined: Examined) -> list[Check]:
    """What the sampler itself says that it cannot read."""
    checks, working = [], []
    for probe in examined.found_probes():
        name = str(probe["name"])
        if name.startswith(POWER_METERS):
            continue
        if probe["status"] == "ok":
            working.append(name)
        elif probe["status"] != "missing" or not name.startswith(_HAVE_OWN_CHECKS):
            checks.append(lacking_probe(f"probe {name}", probe, "what it reads is missing from runs"))
    if working:
        checks.insert(0, ok(f"{', '.join(working)} can be read"))
    return checks


def pressure(examined: Examined) -> Check:
    """Pressure stall information."""
    if examined.tree.text("proc/pressure/cpu") is not None:
        return ok("the kernel tells how long tasks wait for CPU, memory and disks")
    return limited(
        "no pressure stall information",
        "saturation of memory and disks is judged from queues alone",
        "Boot with psi=1 (the kernel needs CONFIG_PSI).",
    )


def cgroups(examined: Examined) -> Check:
    """Which control groups, and whether groups can be made below ours."""
    group = examined.inventory.cgroup
    if group.layout is None:
        return limited(
            "no control groups are mounted",
            "no use per group, and no resource can be limited",
            "Mount /sys/fs/cgroup (systemd does).",
        )
    folder = group.folder
    if folder is not None and os.access(examined.tree.path(folder), os.W_OK):
        return ok(f"{group.layout}, groups can be made below {group.path}")
    return limited(
        f"{group.layout}, groups cannot be made below {group.path or 'an unknown group'}",
        "a system's own use is read per process only, and no resource can be taken away from it",
        "Run as root, or in a delegated group (systemd-run --user --scope -p Delegate=yes rackscope ...).",
    )


def processes(examined: Examined) -> Check:
    """Whether other users' processes are hidden."""
    proc = next((mount for mount in read_mounts(examined.tree.text("proc/self/mountinfo") or "")
                 if mount.mount_point == "/proc"), None)  # fmt: skip
    hidden = re.search(r"hidepid=(\w+)", proc.super_options) if proc else None
    if hidden is None or hidden[1] in ("0", "off") or examined.user_id == 0:
        return ok("the processes of all users are visible")
    return limited(
        f"other users' processes are hidden (/proc is mounted with hidepid={hidden[1]})",
        "a system that runs as another user has no per-process figures",
        "Run as that user or as root.",
    )


def file_descriptors(examined: Examined) -> Check:
    """A connection is a file."""
    del examined
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
    if hard == resource.RLIM_INFINITY or hard >= _ENOUGH_FILES:
        return ok(f"up to {most} (now {soft}, raised when a run needs more)")
    return limited(
        f"at most {hard} files can be open",
        f"about {max(0, hard - 256)} connections are possible",
        "Raise it with ulimit -Hn as root, or in /etc/security/limits.conf.",
    )
