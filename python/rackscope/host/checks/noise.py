"""What makes one run differ from the next: clocks that move, neighbours, swapping."""

from __future__ import annotations

from rackscope.host.checks.check import Check, Examined, bad, limited, ok
from rackscope.host.cpu_time import read_cpu_time
from rackscope.units import format_bytes

_STEAL_SECONDS = 1.0
_SOME_STEAL = 0.01
_MUCH_STEAL = 0.05
#: Clocks that are read without a system call.
_FAST_CLOCKS = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen", "timebase"})


def clock_frequency(examined: Examined) -> Check:
    """The governor: who decides how fast cores run."""
    processor = examined.inventory.processor
    if processor.governor is None:
        return limited(
            "this kernel shows no core's frequency (no cpufreq driver)",
            "a change of the clock during a run is not seen",
            "Guests usually lack it; on bare metal enable it in the firmware.",
        )
    if processor.governor == "performance":
        return ok("the performance governor keeps cores at their highest clock")
    return limited(
        f"governor {processor.governor}: the clock follows the load",
        "light loads run at a lower clock than heavy ones, so latency at a low rate is too high",
        "As root: cpupower frequency-set -g performance.",
    )


def turbo(examined: Examined) -> Check | None:
    """Turbo depends on heat and on how many cores are busy."""
    on = examined.inventory.processor.turbo
    if on is None:
        return None
    if not on:
        return ok("off: the clock does not depend on temperature")
    return limited(
        "on: the clock depends on temperature and on how many cores are busy",
        "repetitions drift as the machine warms up",
        "For tight intervals switch it off (intel_pstate/no_turbo or cpufreq/boost under /sys/devices/system/cpu).",
    )


def steal(examined: Examined) -> Check | None:
    """Time that the hypervisor gave to other guests (steal) over the last second."""
    before = read_cpu_time(examined.tree)
    examined.pause(_STEAL_SECONDS)
    after = read_cpu_time(examined.tree)
    if before is None or after is None:
        return limited("/proc/stat cannot be read", "time given to other guests is not seen")
    ratio = after.steal_ratio_since(before)
    if ratio is None:
        return None
    text = f"{ratio:.1%} of the cores' time went to other guests in the last second"
    if ratio <= _SOME_STEAL:
        return ok(text)
    tell = bad if ratio > _MUCH_STEAL else limited
    return tell(
        text,
        "throughput and latency depend on other guests as much as on the system",
        "Use dedicated cores, or measure at another time.",
    )


def swap(examined: Examined) -> Check:
    """Swapped-out pages make a cache slow without a trace in its own counters."""
    memory = examined.inventory.memory
    if memory.swap_total_bytes is None or memory.swap_free_bytes is None:
        return limited("/proc/meminfo does not tell of swap", "swapping may go unseen")
    used = memory.swap_total_bytes - memory.swap_free_bytes
    if memory.swap_total_bytes == 0:
        return ok("none: memory that is not there is an error, not a delay")
    text = f"{format_bytes(used)} of {format_bytes(memory.swap_total_bytes)} in use"
    if used == 0:
        return ok(text)
    return limited(
        text,
        "pages that a run touches may first be read back from disk",
        "As root: swapoff -a and swapon -a brings them back, if memory is free.",
    )


def transparent_huge_pages(examined: Examined) -> Check:
    """Huge pages by themselves help throughput and hurt tail latency."""
    mode = examined.inventory.memory.transparent_huge_pages
    if mode is None:
        return ok("this kernel has no transparent huge pages")
    if mode != "always":
        return ok(f"transparent huge pages: {mode}")
    return limited(
        "transparent huge pages: always",
        "systems that fork (Redis saving) copy 2 MiB at a time, and defragmentation adds to tail latency",
        "As root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled.",
    )


def clock_source(examined: Examined) -> Check:
    """Reading the time must be cheap: it is done twice a request."""
    source = examined.inventory.clock_source
    if source is None:
        return limited("the clock source cannot be read", "reading the time may be slow")
    if source in _FAST_CLOCKS:
        return ok(f"clock source {source}")
    return limited(
        f"clock source {source}: reading the time is a system call or slower",
        "the load generator reaches fewer requests a second, and short latencies are too long",
        "Where /sys/devices/system/clocksource/clocksource0 offers tsc, boot with clocksource=tsc.",
    )
