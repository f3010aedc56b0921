"""Small trees of other machines' /proc and /sys, written by hand after what such machines show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_tree(root: Path, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> Path:
    """Write files (and relative symbolic links) below ``root``; a name that ends in a slash is an empty folder."""
    for name, text in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, target in (links or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    return root


def _cache(core: int, index: int, level: int, kind: str, size: str, sharers: str) -> dict[str, str]:
    folder = f"sys/devices/system/cpu/cpu{core}/cache/index{index}"
    return {
        f"{folder}/level": f"{level}\n",
        f"{folder}/type": f"{kind}\n",
        f"{folder}/size": f"{size}\n",
        f"{folder}/shared_cpu_list": f"{sharers}\n",
        f"{folder}/coherency_line_size": "64\n",
    }


def amd_bare_metal(root: Path) -> Path:
    """Two sockets of a (shrunken) EPYC, two threads a core, RAPL, cgroup v2, a data volume on LVM over NVMe."""
    cpu = "sys/devices/system/cpu"
    files = {
        "proc/cpuinfo": "".join(
            f"processor\t: {core}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"
            f"model name\t: AMD EPYC 7763 64-Core Processor               \nstepping\t: 1\nmicrocode\t: 0xa0011d1\n"
            "flags\t\t: fpu vme lm avx2\n\n"
            for core in range(8)
        ),
        "proc/meminfo": "MemTotal:       527988320 kB\nMemAvailable:   510000000 kB\nSwapTotal: 8388604 kB\n"
        "SwapFree: 4194304 kB\nHugePages_Total:       4\nHugePages_Free:        2\nHugepagesize:       2048 kB\n",
        "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\n",
        "proc/loadavg": "0.10 0.10 0.10 1/900 4321\n",
        "proc/sys/kernel/osrelease": "6.1.0-21-amd64\n",
        "proc/sys/kernel/perf_event_paranoid": "3\n",
        "proc/2/comm": "kthreadd\n",
        "proc/self/status": "Name:\tpython3\nCpus_allowed_list:\t0-7\n",
        "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
        "proc/self/mountinfo": "24 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw\n"
        "25 24 0:22 / /proc rw,nosuid shared:2 - proc proc rw,hidepid=invisible\n"
        "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
        "31 24 259:3 / /srv/big\\040data rw,relatime shared:11 - xfs /dev/nvme1n1p1 rw\n"
        "32 24 0:40 / /tmp rw - tmpfs tmpfs rw\n",
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
        "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "etc/os-release": 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        f"{cpu}/online": "0-7\n",
        f"{cpu}/isolated": "6-7\n",
        f"{cpu}/cpufreq/boost": "1\n",
        f"{cpu}/vulnerabilities/meltdown": "Not affected\n",
        f"{cpu}/vulnerabilities/spectre_v1": "Mitigation: usercopy/swapgs barriers and __user pointer sanitization\n",
        "sys/devices/system/node/node0/cpulist": "0-1,4-5\n",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       263994160 kB\n",
        "sys/devices/system/node/node1/cpulist": "2-3,6-7\n",
        "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:       263994160 kB\n",
        "sys/devices/system/node/possible": "0-1\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "sys/bus/event_source/devices/cpu/type": "4\n",
        "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
        "sys/class/dmi/id/product_name": "PowerEdge R7525\n",
        "sys/class/powercap/intel-rapl:0/name": "package-0\n",
        "sys/class/powercap/intel-rapl:0/energy_uj": "123456\n",
        "sys/class/powercap/intel-rapl/enabled": "1\n",
        "sys/class/hwmon/hwmon0/name": "power_meter\n",
        "sys/class/hwmon/hwmon0/power1_average": "250000000\n",
        "sys/class/hwmon/hwmon1/name": "k10temp\n",
        "sys/class/hwmon/hwmon1/temp1_input": "40000\n",
        "sys/class/net/lo/type": "772\n",
        "sys/class/net/lo/mtu": "65536\n",
        "sys/class/net/eno1/type": "1\n",
        "sys/class/net/eno1/speed": "25000\n",
        "sys/class/net/eno1/operstate": "up\n",
        "sys/class/net/eno1/mtu": "1500\n",
        "sys/class/net/eno1/device/vendor": "0x14e4\n",
        "sys/class/net/eno2/type": "1\n",
        "sys/class/net/eno2/speed": "-1\n",
        "sys/class/net/eno2/operstate": "down\n",
        "sys/class/net/eno2/device/vendor": "0x14e4\n",
        "sys/class/net/bonding_masters": "\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        "sys/fs/cgroup/cgroup.procs": "1\n",
        "sys/fs/cgroup/user.slice/cgroup.procs": "",
        "sys/fs/cgroup/user.slice/cpu.max": "max 100000\n",
        "sys/fs/cgroup/user.slice/memory.max": "max\n",
        "sys/fs/cgroup/user.slice/user-1000.slice/cgroup.procs": "",
        "sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/cgroup.procs": "7\n",
    }
    for core in range(8):
        sibling = f"{core % 4},{core % 4 + 4}"
        package = core % 4 // 2
        files |= {
            f"{cpu}/cpu{core}/topology/physical_package_id": f"{package}\n",
            f"{cpu}/cpu{core}/topology/thread_siblings_list": f"{sibling}\n",
            f"{cpu}/cpu{core}/cpufreq/scaling_governor": "schedutil\n",
            f"{cpu}/cpu{core}/cpufreq/scaling_driver": "acpi-cpufreq\n",
            f"{cpu}/cpu{core}/cpufreq/cpuinfo_max_freq": "3529052\n",
        }
        files |= _cache(core, 0, 1, "Data", "32K", sibling) | _cache(core, 1, 1, "Instruction", "32K", sibling)
        files |= _cache(core, 2, 2, "Unified", "512K", sibling)
        files |= _cache(core, 3, 3, "Unified", "32768K", "0-1,4-5" if package == 0 else "2-3,6-7")
    for disk in ("nvme0n1", "nvme1n1"):
        files |= {
            f"sys/devices/pci/{disk}/size": "3750748848\n",
            f"sys/devices/pci/{disk}/queue/rotational": "0\n",
            f"sys/devices/pci/{disk}/queue/scheduler": "[none] mq-deadline\n",
            f"sys/devices/pci/{disk}/device/model": "SAMSUNG MZWLJ1T9HBJR-00007              \n",
            f"sys/devices/pci/{disk}/{disk}p1/partition": "1\n",
        }
    files |= {"sys/devices/virtual/dm-0/size": "100\n", "sys/devices/virtual/loop0/size": "0\n"}
    links = {
        "sys/block/nvme0n1": "../devices/pci/nvme0n1",
        "sys/block/nvme1n1": "../devices/pci/nvme1n1",
        "sys/block/dm-0": "../devices/virtual/dm-0",
        "sys/block/loop0": "../devices/virtual/loop0",
        "sys/dev/block/253:0": "../../devices/virtual/dm-0",
        "sys/dev/block/259:3": "../../devices/pci/nvme1n1/nvme1n1p1",
        "sys/devices/virtual/dm-0/slaves/nvme0n1p1": "../../../pci/nvme0n1/nvme0n1p1",
        "sys/class/net/eno1/device/driver": "../../../../bus/pci/drivers/bnxt_en",
    }
    return write_tree(root, files, links)


def arm_guest(root: Path) -> Path:
    """A guest on Graviton 2: no model name, no frequency, caches unknown to the guest's firmware."""
    return write_tree(
        root,
        {
            "proc/cpuinfo": "".join(
                f"processor\t: {core}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd crc32 atomics\n"
                "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"
                "CPU revision\t: 1\n\n"
                for core in range(4)
            ),
            "proc/meminfo": "MemTotal:       16130324 kB\n",
            "proc/sys/kernel/osrelease": "5.10.0-28-cloud-arm64\n",
            "proc/self/status": "Cpus_allowed_list:\t0,2\n",
            "proc/self/cgroup": "4:memory:/system.slice/sshd.service\n3:cpu,cpuacct:/system.slice/sshd.service\n",
            "proc/self/mountinfo": "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n"
            "30 22 0:25 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "31 22 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            "sys/devices/system/cpu/online": "0-3\n",
            "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
            "sys/class/dmi/id/product_name": "m6g.xlarge\n",
            "sys/fs/cgroup/cpu,cpuacct/tasks": "",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/system.slice/tasks": "",
            "sys/fs/cgroup/cpu,cpuacct/system.slice/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/system.slice/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/system.slice/sshd.service/tasks": "9\n",
            "sys/fs/cgroup/cpu,cpuacct/system.slice/sshd.service/cpu.cfs_quota_us": "400000\n",
            "sys/fs/cgroup/cpu,cpuacct/system.slice/sshd.service/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/tasks": "",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/system.slice/tasks": "",
            "sys/fs/cgroup/memory/system.slice/sshd.service/tasks": "9\n",
            "sys/fs/cgroup/memory/system.slice/sshd.service/memory.limit_in_bytes": "1073741824\n",
        },
    )


def container(root: Path) -> Path:
    """A Docker container on a cgroup v2 host: its own cgroup namespace, limits, an overlay for its root."""
    return write_tree(
        root,
        {
            ".dockerenv": "",
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6338\n"
            "flags\t\t: fpu lm avx2\n",
            "proc/meminfo": "MemTotal:       65000000 kB\nMemAvailable:   60000000 kB\n",
            "proc/self/status": "Cpus_allowed_list:\t3\n",
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "500 400 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/a\n"
            "501 500 0:61 / /proc rw - proc proc rw\n"
            "505 500 0:28 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
            "506 500 8:1 /var/lib/docker/volumes/v /data rw - ext4 /dev/sda1 rw\n",
            "sys/devices/system/cpu/online": "0-3\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/cgroup.procs": "1\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/memory.max": "536870912\n",
            "sys/devices/pci/sda/sda1/partition": "1\n",
            "sys/devices/pci/sda/size": "1000\n",
        },
        {"sys/dev/block/8:1": "../../devices/pci/sda/sda1", "sys/block/sda": "../devices/pci/sda"},
    )


def small_guest(root: Path) -> Path:
    """A Firecracker guest made from a container's image: no firmware tables, hybrid control groups, a virtio disk."""
    return write_tree(
        root,
        {
            ".dockerenv": "",
            "proc/2/comm": "kthreadd\n",
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor\n"
            "flags\t\t: fpu lm hypervisor avx512f\n",
            "proc/meminfo": "MemTotal:       24684084 kB\nMemAvailable:   24000000 kB\n"
            "SwapTotal: 0 kB\nSwapFree: 0 kB\n",
            "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\n",
            "proc/sys/kernel/osrelease": "6.18.44\n",
            "proc/sys/kernel/perf_event_paranoid": "2\n",
            "proc/self/status": "Cpus_allowed_list:\t0-1\n",
            "proc/self/cgroup": "4:memory:/\n1:cpu:/\n0::/\n",
            "proc/self/mountinfo": "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
            "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            "sys/devices/system/cpu/online": "0-1\n",
            "sys/devices/virtio1/vda/size": "536870912\n",
            "sys/devices/virtio1/vda/queue/rotational": "1\n",
            "sys/devices/virtio1/vda/queue/scheduler": "none [mq-deadline] kyber\n",
            "sys/bus/event_source/devices/software/type": "1\n",
            "sys/class/net/eth0/type": "1\n",
            "sys/class/net/eth0/device/vendor": "0x1af4\n",
            "sys/class/net/eth0/operstate": "up\n",
            "sys/fs/cgroup/memory/tasks": "1\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/tasks": "1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        },
        {"sys/dev/block/254:0": "../../devices/virtio1/vda", "sys/block/vda": "../devices/virtio1/vda"},
    )
