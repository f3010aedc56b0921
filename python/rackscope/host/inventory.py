"""The inventory: what kind of machine this is. Everything that could not be read is ``None``."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.host.confinement import Cgroup, Virtualisation, read_cgroup, read_virtualisation
from rackscope.host.interfaces import NetworkInterface, read_interfaces
from rackscope.host.memory import Memory, read_memory
from rackscope.host.processor import Processor, read_processor
from rackscope.host.storage import Disk, FolderStorage, read_disks, read_folder_storage
from rackscope.host.tree import Tree, core_list, keyed_lines


@dataclass(frozen=True)
class PowerSources:
    """Meters of power that this host shows. RAPL's are often for root alone to read."""

    rapl_domains: tuple[str, ...]
    rapl_readable: bool | None
    hwmon_meters: tuple[str, ...]


@dataclass(frozen=True)
class Inventory:
    """One host, as far as this process may see it."""

    #: Names it in file names: the same after a restart, another after its processor was exchanged. Nothing about the
    #: host can be read back from it.
    identity: str
    kernel: str | None
    distribution: str | None
    processor: Processor
    #: Cores that this process may be scheduled on.
    usable_cores: tuple[int, ...] | None
    memory: Memory
    disks: tuple[Disk, ...]
    working_folder: FolderStorage
    interfaces: tuple[NetworkInterface, ...]
    virtualisation: Virtualisation
    cgroup: Cgroup
    power: PowerSources
    clock_source: str | None
    mitigations: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what names the machine first, then one mapping a part."""
        processor = dataclasses.asdict(self.processor)
        memory = dataclasses.asdict(self.memory)
        # Long, and of use to rackscope only.
        del processor["flags"], processor["siblings"]
        return {
            "identity": self.identity,
            "cpu_model": processor.pop("model"),
            "online_cores": processor.pop("online_cores"),
            "memory_total_bytes": memory.pop("total_bytes"),
            "kernel": self.kernel,
            "distribution": self.distribution,
            "processor": _plain(processor),
            "usable_cores": _plain(self.usable_cores),
            "memory": memory,
            "disks": {disk.pop("name"): disk for disk in map(dataclasses.asdict, self.disks)},
            "working_folder": _plain(dataclasses.asdict(self.working_folder)),
            "interfaces": {one.pop("name"): one for one in map(dataclasses.asdict, self.interfaces)},
            "virtualisation": dataclasses.asdict(self.virtualisation),
            "cgroup": _plain(dataclasses.asdict(self.cgroup)),
            "power": _plain(dataclasses.asdict(self.power)),
            "clock_source": self.clock_source,
            "mitigations": dict(self.mitigations),
        }


def read_inventory(root: Path = Path("/"), folder: Path | None = None) -> Inventory:
    """Read the host below ``root``; ``folder`` (by default the current one) is whose storage is looked up."""
    tree = Tree(root)
    processor = read_processor(tree)
    status = keyed_lines(tree.text("proc/self/status"))
    return Inventory(
        identity=_identity(tree, processor),
        kernel=tree.text("proc/sys/kernel/osrelease"),
        distribution=_distribution(tree),
        processor=processor,
        usable_cores=core_list(status.get("Cpus_allowed_list")),
        memory=read_memory(tree),
        disks=read_disks(tree),
        working_folder=read_folder_storage(tree, (folder or _current_folder()).absolute()),
        interfaces=read_interfaces(tree),
        virtualisation=read_virtualisation(tree, processor.flags),
        cgroup=read_cgroup(tree),
        power=_read_power(tree),
        clock_source=tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        mitigations={
            name: state
            for name in tree.names("sys/devices/system/cpu/vulnerabilities")
            if (state := tree.text(f"sys/devices/system/cpu/vulnerabilities/{name}"))
        },
    )


def _identity(tree: Tree, processor: Processor) -> str:
    machine = tree.text("etc/machine-id") or tree.text("var/lib/dbus/machine-id")
    # machine-id(5) asks for a keyed hash wherever it would leave the machine.
    key = machine or tree.text("proc/sys/kernel/hostname") or "unknown"
    message = f"rackscope host\n{processor.model}\n{processor.online_cores}"
    return hmac.new(key.encode(), message.encode(), hashlib.sha256).hexdigest()[:16]


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        # The current folder was removed under us.
        return Path("/")


def _distribution(tree: Tree) -> str | None:
    release = keyed_lines(tree.text("etc/os-release") or tree.text("usr/lib/os-release"), "=")
    name = release.get("PRETTY_NAME") or release.get("NAME")
    return name.strip("\"'") if name else None


def _read_power(tree: Tree) -> PowerSources:
    domains, readable = [], []
    for zone in tree.names("sys/class/powercap"):
        name = tree.text(f"sys/class/powercap/{zone}/name")
        if name is not None and tree.exists(f"sys/class/powercap/{zone}/energy_uj"):
            domains.append(f"{zone} {name}")
            readable.append(tree.readable(f"sys/class/powercap/{zone}/energy_uj"))
    meters = [
        f"{tree.text(f'sys/class/hwmon/{chip}/name') or chip} {file}"
        for chip in tree.names("sys/class/hwmon")
        for file in tree.names(f"sys/class/hwmon/{chip}")
        if file.startswith(("power", "energy")) and file.endswith(("_input", "_average"))
    ]
    return PowerSources(tuple(domains), all(readable) if readable else None, tuple(meters))


def _plain(value: Any) -> Any:
    """Tuples as lists, all the way down: what JSON gives back is equal."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
