"""The inventory of machines of other kinds, and of this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_trees import amd_bare_metal, arm_guest, container, small_guest, write_tree
from rackscope.host.inventory import Inventory, read_inventory
from rackscope.host.storage import find_mount, read_folder_storage
from rackscope.host.tree import Tree, core_list, integer, keyed_lines, kibibytes


@pytest.fixture
def amd(tmp_path: Path) -> Inventory:
    return read_inventory(amd_bare_metal(tmp_path), Path("/home/me"))


def test_processors_of_a_server_with_two_sockets(amd: Inventory) -> None:
    processor = amd.processor
    assert processor.model == "AMD EPYC 7763 64-Core Processor"
    assert (processor.vendor, processor.family, processor.model_number) == ("AuthenticAMD", "25", "1")
    assert (processor.sockets, processor.physical_cores, processor.threads_per_core) == (2, 4, 2)
    assert processor.online_cores == 8
    assert processor.isolated == (6, 7)
    assert processor.maximum_hertz == pytest.approx(3.529052e9)
    assert (processor.governor, processor.turbo) == ("schedutil", True)
    assert [(node.number, node.cores) for node in processor.numa_nodes] == [(0, (0, 1, 4, 5)), (1, (2, 3, 6, 7))]


def test_caches_are_counted_by_instance(amd: Inventory) -> None:
    caches = {(cache.level, cache.kind): cache for cache in amd.processor.caches}
    assert caches[1, "data"].instances == 4
    assert caches[3, "unified"].instances == 2
    assert caches[3, "unified"].shared_by_cores == 4
    assert amd.processor.last_level_cache_bytes() == 2 * 32 * 1024**2


def test_memory_disks_and_links(amd: Inventory) -> None:
    assert amd.memory.total_bytes == 527988320 * 1024
    assert amd.memory.transparent_huge_pages == "always"
    assert [disk.name for disk in amd.disks] == ["nvme0n1", "nvme1n1"]
    assert amd.disks[0].model == "SAMSUNG MZWLJ1T9HBJR-00007"
    assert (amd.disks[0].rotational, amd.disks[0].scheduler) == (False, "none")
    interfaces = {interface.name: interface for interface in amd.interfaces}
    assert set(interfaces) == {"lo", "eno1", "eno2"}
    assert interfaces["lo"].loopback
    assert interfaces["eno1"].speed_bytes_per_second == 25e9 / 8
    assert interfaces["eno1"].driver == "bnxt_en"
    assert interfaces["eno2"].speed_bytes_per_second is None


def test_bare_metal_is_known_as_such(amd: Inventory) -> None:
    assert amd.virtualisation.guest is False
    assert amd.virtualisation.machine == "Dell Inc. PowerEdge R7525"
    assert amd.virtualisation.container is None
    assert (amd.cgroup.layout, amd.cgroup.cpu_limit_cores, amd.cgroup.memory_limit_bytes) == ("v2", None, None)
    assert amd.power.rapl_domains == ("intel-rapl:0 package-0",)
    assert amd.power.hwmon_meters == ("power_meter power1_average",)


@pytest.mark.parametrize(
    ("folder", "disks", "file_system"),
    [
        ("/home/me", ("nvme0n1",), "ext4"),
        ("/srv/big data/runs", ("nvme1n1",), "xfs"),
        ("/srv/big", ("nvme0n1",), "ext4"),
    ],
)
def test_a_folder_is_followed_to_its_whole_disk(
    tmp_path: Path, folder: str, disks: tuple[str, ...], file_system: str
) -> None:
    storage = read_folder_storage(Tree(amd_bare_metal(tmp_path)), Path(folder))
    assert (storage.disks, storage.file_system, storage.reason) == (disks, file_system, None)


def test_a_folder_in_memory_has_no_disk(tmp_path: Path) -> None:
    storage = read_folder_storage(Tree(amd_bare_metal(tmp_path)), Path("/tmp/x"))
    assert storage.disks == ()
    assert storage.in_memory
    assert "in memory" in (storage.reason or "")


def test_an_arm_guest_tells_less_and_nothing_is_made_up(tmp_path: Path) -> None:
    inventory = read_inventory(arm_guest(tmp_path), Path("/"))
    processor = inventory.processor
    assert (processor.model, processor.vendor) == ("Arm Neoverse-N1", "Arm")
    assert (processor.architecture, processor.stepping) == ("aarch64", "r3p1")
    assert processor.online_cores == 4
    assert inventory.usable_cores == (0, 2)
    for unknown in (processor.sockets, processor.physical_cores, processor.threads_per_core, processor.maximum_hertz):
        assert unknown is None
    assert (processor.governor, processor.turbo, processor.isolated) == (None, None, None)
    assert processor.last_level_cache_bytes() is None
    assert (inventory.virtualisation.guest, inventory.virtualisation.hypervisor) == (True, "Amazon EC2 (Nitro)")
    assert inventory.memory.available_bytes is None
    assert inventory.memory.swap_total_bytes is None
    assert inventory.clock_source is None
    assert inventory.distribution is None
    assert inventory.power.rapl_readable is None


def test_the_tightest_limit_on_the_path_binds_under_cgroup_v1(tmp_path: Path) -> None:
    group = read_inventory(arm_guest(tmp_path), Path("/")).cgroup
    assert group.layout == "v1"
    assert group.cpu_limit_cores == 1.5
    assert group.memory_limit_bytes == 1024**3
    assert group.controllers == ("cpu", "cpuacct", "memory")


def test_a_container_is_recognised_with_its_limits(tmp_path: Path) -> None:
    inventory = read_inventory(container(tmp_path), Path("/work"))
    assert inventory.virtualisation.container == "docker"
    assert inventory.virtualisation.guest is False
    assert (inventory.cgroup.cpu_limit_cores, inventory.cgroup.memory_limit_bytes) == (0.5, 512 * 1024**2)
    assert inventory.usable_cores == (3,)
    assert inventory.working_folder.disks == ()
    assert "no block device" in (inventory.working_folder.reason or "")
    assert read_folder_storage(Tree(tmp_path), Path("/data/x")).disks == ("sda",)


def test_a_guest_made_from_a_containers_image_is_no_container(tmp_path: Path) -> None:
    inventory = read_inventory(small_guest(tmp_path), Path("/work"))
    assert inventory.virtualisation.container is None
    assert inventory.virtualisation.guest is True
    assert inventory.virtualisation.hypervisor is None
    assert inventory.cgroup.layout == "hybrid"
    assert inventory.cgroup.memory_limit_bytes is None
    assert inventory.cgroup.cpu_limit_cores is None
    assert inventory.working_folder.disks == ("vda",)
    assert inventory.disks[0].scheduler == "mq-deadline"


@pytest.mark.parametrize("build", [amd_bare_metal, arm_guest, container, small_guest])
def test_the_inventory_survives_json(tmp_path: Path, build: object) -> None:
    inventory = read_inventory(build(tmp_path), Path("/work"))  # type: ignore[operator]
    plain = inventory.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["cpu_model"] == inventory.processor.model
    assert plain["online_cores"] == inventory.processor.online_cores
    assert plain["memory_total_bytes"] == inventory.memory.total_bytes


def test_an_empty_tree_gives_an_inventory_of_unknowns(tmp_path: Path) -> None:
    inventory = read_inventory(tmp_path, Path("/work"))
    plain = inventory.to_dict()
    assert plain["cpu_model"] is None
    assert plain["online_cores"] == 0
    assert plain["memory_total_bytes"] is None
    assert plain["disks"] == plain["interfaces"] == {}
    assert inventory.virtualisation.guest is None


def test_this_host_can_be_read() -> None:
    inventory = read_inventory()
    assert inventory.processor.online_cores >= 1
    assert inventory.memory.total_bytes
    assert inventory.kernel


def test_identity_depends_on_the_machine_and_tells_nothing_of_it(tmp_path: Path) -> None:
    def identity(name: str, machine: str, cores: str) -> str:
        root = amd_bare_metal(tmp_path / name)
        write_tree(root, {"etc/machine-id": machine, "sys/devices/system/cpu/online": cores})
        return read_inventory(root, Path("/")).identity

    machine = "0123456789abcdef0123456789abcdef"
    first = identity("a", machine, "0-7")
    assert identity("b", machine, "0-7") == first
    assert identity("c", machine[::-1], "0-7") != first
    assert identity("d", machine, "0-3") != first
    assert machine[:8] not in first
    inventory = read_inventory(tmp_path / "a", Path("/"))
    assert machine not in json.dumps(inventory.to_dict())


@given(st.text(max_size=200))
def test_parsers_take_any_text(text: str) -> None:
    core_list(text)
    kibibytes(text)
    integer(text)
    keyed_lines(text)
    find_mount(text, Path("/a/b"))


@given(st.sets(st.integers(0, 999)))
def test_core_lists_are_read_back(cores: set[int]) -> None:
    assert core_list(",".join(map(str, sorted(cores)))) == tuple(sorted(cores))


@pytest.mark.parametrize(
    ("text", "cores"), [("0-3,8", (0, 1, 2, 3, 8)), ("", ()), ("5", (5,)), ("3-", None), ("a", None), ("1,,2", (1, 2))]
)
def test_core_lists_as_the_kernel_writes_them(text: str, cores: tuple[int, ...] | None) -> None:
    assert core_list(text) == cores


@pytest.mark.parametrize(
    ("text", "size"), [("107520K", 107520 * 1024), ("2M", 2 * 1024**2), ("8 kB", 8192), ("512", 512), ("x", None)]
)
def test_sizes_as_the_kernel_writes_them(text: str, size: int | None) -> None:
    assert kibibytes(text) == size
