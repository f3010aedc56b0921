"""Processors: model, topology, caches, NUMA nodes, clock."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rackscope.host.tree import Tree, core_list, integer, keyed_lines, kibibytes

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"

#: Implementer and part of the Main ID Register (Arm Architecture Reference Manual, MIDR_EL1), which is all that Linux
#: shows of a 64-bit Arm core; names as in util-linux lscpu.
_ARM_CORES = {
    (0x41, 0xD03): "Arm Cortex-A53",
    (0x41, 0xD07): "Arm Cortex-A57",
    (0x41, 0xD08): "Arm Cortex-A72",
    (0x41, 0xD0B): "Arm Cortex-A76",
    (0x41, 0xD0C): "Arm Neoverse-N1",
    (0x41, 0xD40): "Arm Neoverse-V1",
    (0x41, 0xD49): "Arm Neoverse-N2",
    (0x41, 0xD4F): "Arm Neoverse-V2",
    (0x41, 0xD84): "Arm Neoverse-V3",
    (0x41, 0xD8E): "Arm Neoverse-N3",
    (0x43, 0x0AF): "Cavium ThunderX2",
    (0x46, 0x001): "Fujitsu A64FX",
    (0x48, 0xD01): "HiSilicon TaiShan v110",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1a",
}
_ARM_IMPLEMENTERS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA",
    0x50: "APM", 0x51: "Qualcomm", 0x61: "Apple", 0x6D: "Microsoft", 0xC0: "Ampere",
}  # fmt: skip


@dataclass(frozen=True)
class Cache:
    """One kind of cache: ``size_bytes`` of each instance, and how many instances the online cores have."""

    level: int
    kind: str
    size_bytes: int | None
    instances: int
    shared_by_cores: int
    line_bytes: int | None


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node: its cores and its memory."""

    number: int
    cores: tuple[int, ...]
    memory_bytes: int | None


@dataclass(frozen=True)
class Processor:
    """The processors of a host. What its kernel does not tell is ``None``."""

    model: str | None
    vendor: str | None
    architecture: str | None
    family: str | None
    model_number: str | None
    stepping: str | None
    microcode: str | None
    sockets: int | None
    physical_cores: int | None
    threads_per_core: int | None
    online_cores: int
    online: tuple[int, ...]
    isolated: tuple[int, ...] | None
    caches: tuple[Cache, ...]
    numa_nodes: tuple[NumaNode, ...]
    maximum_hertz: float | None
    base_hertz: float | None
    governor: str | None
    frequency_driver: str | None
    turbo: bool | None
    flags: frozenset[str]
    #: Hardware threads of each physical core.
    siblings: tuple[tuple[int, ...], ...]

    def last_level_cache(self) -> Cache | None:
        """The outermost data cache."""
        data = [cache for cache in self.caches if cache.kind != "instruction" and cache.size_bytes]
        return max(data, key=lambda cache: cache.level, default=None)

    def last_level_cache_bytes(self) -> int | None:
        """Bytes of all its instances together."""
        outermost = self.last_level_cache()
        return (outermost.size_bytes or 0) * outermost.instances if outermost else None


def read_processor(tree: Tree) -> Processor:
    """Read ``/proc/cpuinfo`` and ``/sys/devices/system/cpu``."""
    text = tree.text("proc/cpuinfo") or ""
    info = keyed_lines(text)
    online = _online(tree, text)
    packages, siblings = _topology(tree, online)
    base = tree.integer(f"{_CPU}/cpu{online[0]}/cpufreq/base_frequency") if online else None
    return Processor(
        model=_model(info),
        vendor=info.get("vendor_id") or _ARM_IMPLEMENTERS.get(_hexadecimal(info.get("CPU implementer")) or -1),
        architecture=_architecture(tree, info),
        family=info.get("cpu family") or info.get("CPU architecture"),
        model_number=info.get("model") or info.get("CPU part"),
        stepping=info.get("stepping") or _arm_revision(info),
        microcode=info.get("microcode"),
        sockets=len(packages) or None,
        physical_cores=len(siblings) or None,
        threads_per_core=max((len(threads) for threads in siblings), default=None),
        online_cores=len(online),
        online=online,
        isolated=core_list(tree.text(f"{_CPU}/isolated") or "") if tree.exists(f"{_CPU}/isolated") else None,
        caches=_caches(tree, online),
        numa_nodes=_numa_nodes(tree),
        maximum_hertz=_highest_hertz(tree, online),
        base_hertz=None if base is None else base * 1e3,
        governor=_shared_text(tree, online, "scaling_governor"),
        frequency_driver=_shared_text(tree, online, "scaling_driver"),
        turbo=_turbo(tree),
        flags=frozenset((info.get("flags") or info.get("Features") or "").split()),
        siblings=tuple(sorted(siblings)),
    )


def _model(info: dict[str, str]) -> str | None:
    name = info.get("model name") or info.get("cpu model") or info.get("cpu") or info.get("uarch")
    if name:
        return re.sub(r"\s+", " ", name)
    implementer, part = _hexadecimal(info.get("CPU implementer")), _hexadecimal(info.get("CPU part"))
    if implementer is None or part is None:
        return None
    maker = _ARM_IMPLEMENTERS.get(implementer, f"implementer {implementer:#04x}")
    return _ARM_CORES.get((implementer, part), f"{maker} part {part:#05x}")


def _architecture(tree: Tree, info: dict[str, str]) -> str | None:
    named = tree.text("proc/sys/kernel/arch")
    if named:
        return named
    if "CPU implementer" in info:
        return "aarch64"
    return "x86_64" if "lm" in info.get("flags", "").split() else None


def _arm_revision(info: dict[str, str]) -> str | None:
    variant, revision = _hexadecimal(info.get("CPU variant")), integer(info.get("CPU revision"))
    return None if variant is None or revision is None else f"r{variant}p{revision}"


def _online(tree: Tree, cpuinfo: str) -> tuple[int, ...]:
    listed = core_list(tree.text(f"{_CPU}/online"))
    if listed:
        return listed
    return tuple(sorted({int(number) for number in re.findall(r"^processor\s*:\s*(\d+)\s*$", cpuinfo, re.MULTILINE)}))


def _topology(tree: Tree, online: Iterable[int]) -> tuple[set[int], set[tuple[int, ...]]]:
    """Packages, and the hardware threads of each physical core; both empty where the kernel does not say."""
    packages: set[int] = set()
    siblings: set[tuple[int, ...]] = set()
    for core in online:
        package = tree.integer(f"{_CPU}/cpu{core}/topology/physical_package_id")
        threads = core_list(tree.text(f"{_CPU}/cpu{core}/topology/thread_siblings_list"))
        # -1: the firmware does not say which socket.
        if package is not None and package >= 0:
            packages.add(package)
        if threads:
            siblings.add(threads)
    return packages, siblings


def _caches(tree: Tree, online: tuple[int, ...]) -> tuple[Cache, ...]:
    found: dict[tuple[int, str], dict[tuple[int, ...], tuple[int | None, int | None]]] = {}
    for core in online:
        folder = f"{_CPU}/cpu{core}/cache"
        for index in tree.names(folder):
            level, kind = tree.integer(f"{folder}/{index}/level"), tree.text(f"{folder}/{index}/type")
            if level is None or kind is None:
                continue
            sharers = core_list(tree.text(f"{folder}/{index}/shared_cpu_list")) or (core,)
            size, line = tree.text(f"{folder}/{index}/size"), tree.integer(f"{folder}/{index}/coherency_line_size")
            found.setdefault((level, kind.lower()), {})[sharers] = (kibibytes(size), line)
    return tuple(
        Cache(
            level=level,
            kind=kind,
            size_bytes=max((size for size, _ in instances.values() if size is not None), default=None),
            instances=len(instances),
            shared_by_cores=max(len(sharers) for sharers in instances),
            line_bytes=max((line for _, line in instances.values() if line is not None), default=None),
        )
        for (level, kind), instances in sorted(found.items())
    )


def _numa_nodes(tree: Tree) -> tuple[NumaNode, ...]:
    nodes = []
    for name in tree.names(_NODE):
        match = re.fullmatch(r"node(\d+)", name)
        if match is None:
            continue
        total = re.search(r"MemTotal:\s*(\d+ kB)", tree.text(f"{_NODE}/{name}/meminfo") or "")
        cores = core_list(tree.text(f"{_NODE}/{name}/cpulist") or "") or ()
        nodes.append(NumaNode(int(match[1]), cores, kibibytes(total[1]) if total else None))
    return tuple(nodes)


def _highest_hertz(tree: Tree, online: Iterable[int]) -> float | None:
    kilohertz = [tree.integer(f"{_CPU}/cpu{core}/cpufreq/cpuinfo_max_freq") for core in online]
    known = [value for value in kilohertz if value]
    return max(known) * 1e3 if known else None


def _shared_text(tree: Tree, online: Iterable[int], name: str) -> str | None:
    """What all cores have there, or ``mixed: a, b``."""
    values = {text for core in online if (text := tree.text(f"{_CPU}/cpu{core}/cpufreq/{name}"))}
    if len(values) > 1:
        return f"mixed: {', '.join(sorted(values))}"
    return next(iter(values), None)


def _turbo(tree: Tree) -> bool | None:
    disabled = tree.integer(f"{_CPU}/intel_pstate/no_turbo")
    if disabled is not None:
        return disabled == 0
    boost = tree.integer(f"{_CPU}/cpufreq/boost")
    return None if boost is None else boost != 0


def _hexadecimal(text: str | None) -> int | None:
    return int(text, 16) if text and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else None
