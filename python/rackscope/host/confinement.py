"""What confines this process: virtual machine, container, control groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from rackscope.host.storage import find_mount
from rackscope.host.tree import Tree, integer
from rackscope.mounts import Mount, read_memberships, read_mounts

CgroupLayout = Literal["v1", "v2", "hybrid"]

#: Vendors that firmware names in a guest. Microsoft and Google also sell machines: their products are named in full.
_GUEST_FIRMWARE = {
    "QEMU": "KVM or QEMU",
    "KVM": "KVM",
    "Amazon EC2": "Amazon EC2 (Nitro)",
    "Google Compute Engine": "Google Compute Engine (KVM)",
    "VMware": "VMware",
    "innotek GmbH": "VirtualBox",
    "VirtualBox": "VirtualBox",
    "Xen": "Xen",
    "Virtual Machine": "Hyper-V",
    "Bochs": "Bochs",
    "Parallels": "Parallels",
    "OpenStack": "OpenStack (KVM)",
    "DigitalOcean": "DigitalOcean (KVM)",
    "Hetzner": "Hetzner (KVM)",
}
_CONTAINER_WORDS = ("docker", "kubepods", "containerd", "libpod", "lxc", "crio")
#: An unlimited memory.limit_in_bytes reads as the largest multiple of a page that fits in 63 bits.
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True)
class Virtualisation:
    """Whether this is a guest. ``guest`` is ``None`` where nothing tells."""

    guest: bool | None
    hypervisor: str | None
    machine: str | None
    container: str | None


@dataclass(frozen=True)
class Cgroup:
    """This process's control group. ``cpu_limit_cores`` and ``memory_limit_bytes`` are the tightest on its path."""

    layout: CgroupLayout | None
    path: str | None
    #: Where the group is mounted (of the memory controller, where hierarchies differ).
    folder: str | None
    cpu_limit_cores: float | None
    memory_limit_bytes: int | None
    controllers: tuple[str, ...]


def read_virtualisation(tree: Tree, flags: frozenset[str]) -> Virtualisation:
    """From the processor's flags, firmware, device tree and the marks that container engines leave."""
    vendor, product = tree.text("sys/class/dmi/id/sys_vendor"), tree.text("sys/class/dmi/id/product_name")
    machine = " ".join(filter(None, (vendor, product))) or tree.text("proc/device-tree/model")
    hypervisor = tree.text("sys/hypervisor/type") or _hypervisor_of_device_tree(tree) or _hypervisor_of(machine)
    guest: bool | None = None
    # Xen's first domain sees the hypervisor too, but no guest is without one.
    if hypervisor is not None or "hypervisor" in flags:
        guest = True
    elif "fpu" in flags:
        # On x86 the flag is always there in a guest, so its absence means something.
        guest = False
    return Virtualisation(guest, hypervisor, machine, _container(tree))


def _hypervisor_of(machine: str | None) -> str | None:
    return next((name for mark, name in _GUEST_FIRMWARE.items() if machine and mark in machine), None)


def _hypervisor_of_device_tree(tree: Tree) -> str | None:
    compatible = tree.text("proc/device-tree/hypervisor/compatible")
    if compatible:
        return compatible.split("\0")[0].removeprefix("linux,")
    return "KVM or QEMU" if tree.exists("proc/device-tree/fw-cfg@9020000") else None


def _container(tree: Tree) -> str | None:
    # A virtual machine may be built from a container's image, with the engine's mark left in it: what sees the
    # kernel's own threads and has a disk for its root is in no container.
    if tree.text("proc/2/comm") == "kthreadd" and not _root_is_layered(tree):
        return "wsl" if "microsoft" in (tree.text("proc/sys/kernel/osrelease") or "").lower() else None
    if tree.exists("run/.containerenv"):
        return "podman"
    if tree.exists(".dockerenv"):
        return "docker"
    named = tree.text("run/systemd/container")
    if named:
        return named
    for variable in (tree.text("proc/1/environ") or "").split("\0"):
        if variable.startswith("container="):
            return variable.removeprefix("container=") or "unnamed"
    groups = tree.text("proc/1/cgroup") or ""
    return next((word for word in _CONTAINER_WORDS if word in groups), None)


def _root_is_layered(tree: Tree) -> bool:
    root = find_mount(tree.text("proc/self/mountinfo") or "", Path("/"))
    return root is not None and root.file_system in {"overlay", "aufs", "fuse.fuse-overlayfs"}


def read_cgroup(tree: Tree) -> Cgroup:
    """Layout, path and limits of this process's control group (cgroups(7))."""
    mounts = read_mounts(tree.text("proc/self/mountinfo") or "")
    memberships = read_memberships(tree.text("proc/self/cgroup") or "")
    unified = next((mount for mount in mounts if mount.file_system == "cgroup2"), None)
    legacy = {mount for mount in mounts if mount.file_system == "cgroup" and "name=" not in mount.super_options}
    layout: CgroupLayout | None = None
    if unified is not None:
        layout = "hybrid" if legacy else "v2"
    elif legacy:
        layout = "v1"
    folders: dict[str, tuple[str, str]] = {}
    for controller in ("cpu", "memory"):
        mount = next((mount for mount in legacy if controller in mount.super_options.split(",")), None)
        version = "v1" if mount is not None else "v2"
        mount = mount or unified
        path = memberships.get(controller if version == "v1" else "")
        if mount is not None and path is not None:
            folders[controller] = (version, _folder(mount, path))
    controllers = _controllers(tree, unified, legacy)
    path = memberships.get("") if layout == "v2" else memberships.get("memory", memberships.get("cpu"))
    return Cgroup(
        layout=layout,
        path=path,
        folder=folders["memory"][1] if "memory" in folders else None,
        cpu_limit_cores=_cpu_limit(tree, folders.get("cpu")),
        memory_limit_bytes=_memory_limit(tree, folders.get("memory")),
        controllers=controllers,
    )


def _controllers(tree: Tree, unified: Mount | None, legacy: set[Mount]) -> tuple[str, ...]:
    found: set[str] = set()
    if unified is not None:
        found.update((tree.text(f"{unified.mount_point}/cgroup.controllers") or "").split())
    for mount in legacy:
        found.update(option for option in mount.super_options.split(",") if option not in {"rw", "ro", "xattr"})
    return tuple(sorted(found))


def _folder(mount: Mount, path: str) -> str:
    """The group's folder. Without a cgroup namespace a container sees the host's path but only its own part mounted."""
    group = PurePosixPath(path)
    if mount.root != "/" and group.is_relative_to(mount.root):
        group = PurePosixPath("/") / group.relative_to(mount.root)
    return f"{mount.mount_point}{group}".rstrip("/")


def _ancestors(folder: str, tree: Tree) -> Iterator[str]:
    """The folder and those above it, up to the mount: a limit above binds as well."""
    current = PurePosixPath(folder)
    while tree.exists(f"{current}/cgroup.procs") or tree.exists(f"{current}/tasks"):
        yield str(current)
        current = current.parent


def _cpu_limit(tree: Tree, place: tuple[str, str] | None) -> float | None:
    if place is None:
        return None
    version, folder = place
    limits = []
    for group in _ancestors(folder, tree):
        if version == "v2":
            quota_text, _, period_text = (tree.text(f"{group}/cpu.max") or "").partition(" ")
            quota, period = integer(quota_text), integer(period_text)
        else:
            quota, period = tree.integer(f"{group}/cpu.cfs_quota_us"), tree.integer(f"{group}/cpu.cfs_period_us")
        if quota is not None and period and quota > 0:
            limits.append(quota / period)
    lowest = min(limits, default=math.inf)
    return None if math.isinf(lowest) else lowest


def _memory_limit(tree: Tree, place: tuple[str, str] | None) -> int | None:
    if place is None:
        return None
    version, folder = place
    name = "memory.max" if version == "v2" else "memory.limit_in_bytes"
    limits = [tree.integer(f"{group}/{name}") for group in _ancestors(folder, tree)]
    return min((limit for limit in limits if limit is not None and limit < _UNLIMITED_BYTES), default=None)
