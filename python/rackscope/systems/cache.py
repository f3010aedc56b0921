"""Our own cache engine, after MICA: what the hardware can do when the software is not in the way."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.network_namespace import hardware_address, interface_address
from rackscope.systems.account import Account
from rackscope.systems.base import KEY_VALUE, Acquired, Endpoint, Knob, Launch, RunningSystem, bounded
from rackscope.systems.ports import give_to
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import Dialect, MemcachedDialect, told

_TABLE_2 = "as for memcached (Awasthi 2015, Table 2)"
_MICA = "Lim 2014, section 3.1.1"
_MANUAL = "docs/cache.md"
_MEBIBYTE = 1024 * 1024
#: Over AF_XDP each connection has a queue, and each queue 8 to 16 MiB of locked memory.
_MOST_QUEUES = 16
#: The port from which the first AF_XDP connection sends; those of the others follow.
_FIRST_XDP_PORT = 40_000


class Cache(ServerSystem):
    """The embedded cache engine; its knobs are named as memcached's, so that the two compare."""

    name = "cache"
    description = "the embedded cache engine, partitions owned by cores"
    protocols = ("memcached_text", "memcached_meta", "batch")
    #: No scans: it keeps no order among keys, so YCSB-E cannot be asked of it.
    operations = KEY_VALUE
    usual_port = 11211
    built_in = True
    programs = ("rackscope-cached",)
    version_pattern = r"rackscope-cached (\S+)"
    data_folder = "cache-data"
    knobs = (
        bounded("memory", "memory", "4GiB", "memory for items (-m); a size or a percentage of what is available",
                _TABLE_2, 8 * _MEBIBYTE, tuned="47%"),
        bounded("threads", "integer", "cores", "worker threads (-t); cores is as many as it was given",
                "a partition is owned by a core", 1, 256),
        Knob("access", "choice", "crcw", None,
             "who may touch an item: its worker alone (erew), all may read (crew), all may read and write (crcw)",
             _MICA, choices=("erew", "crew", "crcw")),
        Knob("transport", "choice", "tcp", None,
             "how clients reach it: tcp (or the unix socket), tls (-Z), udp (-U), or af_xdp (--xdp): datagrams that "
             "bypass the kernel's network stack, over a veth made for the run; takes root, and at most 16 connections",
             f"{_MANUAL}; Lim 2014, section 4", choices=("tcp", "tls", "udp", "af_xdp")),
        Knob("request_direction", "choice", "client", None,
             "who finds the worker that owns a key under access=erew and crew: client (requests go to that worker's "
             "port or socket) or server (they go to the common one and are forwarded; not with protocol=batch)",
             "Lim 2014, section 4", choices=("client", "server")),
        Knob("certificate", "text", "", None,
             "path of a PEM file with certificate and key for transport=tls; empty: openssl makes one for the run",
             _MANUAL),
        Knob("event_loop", "choice", "epoll", None,
             "how it waits for sockets (--transport): epoll or io_uring, which takes transport=tcp and access=crcw",
             _MANUAL, choices=("epoll", "io_uring")),
        Knob("congestion_control", "text", "", None,
             "of TCP connections (-o congestion): a name such as cubic, or system for the host's; empty: reno for "
             "those from this host, the host's for others", _MANUAL),
        Knob("evict", "flag", "yes", None,
             "when memory is full: yes, evict the oldest items (a cache); no, refuse writes (a store, -M)",
             f"cache and store mode of {_MICA}"),
        Knob("memory_file", "text", "", None,
             "path of a file in which items are kept at the stop and found at the next start (-e: a warm restart); "
             "empty: none", _MANUAL),
        bounded("connections", "integer", "4096", "client connections that it serves (-c)", _TABLE_2, 1, 1_000_000),
        bounded("item_size_max", "size", "1MiB", "largest item (-I); at most half of a thread's share",
                "as for memcached", 1024),
    )  # fmt: skip

    def connection_limit(self, knobs: Mapping[str, str]) -> int | None:
        return _MOST_QUEUES if knobs["transport"] == "af_xdp" else int(knobs["connections"])

    def interface_queues(self, knobs: Mapping[str, str], connections: int) -> int | None:
        return max(connections, int(knobs["threads"])) if knobs["transport"] == "af_xdp" else None

    def check_knobs(self, knobs: Mapping[str, str]) -> None:
        if knobs["event_loop"] == "io_uring" and (knobs["transport"] != "tcp" or knobs["access"] != "crcw"):
            raise UsageError(
                f"event_loop=io_uring does not go with transport={knobs['transport']} and access={knobs['access']}",
                "Set transport=tcp and access=crcw, or leave event_loop out.",
            )
        if knobs["transport"] == "tls" and knobs["access"] != "crcw":
            raise UsageError(
                f"transport=tls does not go with access={knobs['access']}", "Leave access out, or set transport=tcp."
            )
        if (name := knobs["congestion_control"]) and not re.fullmatch("[a-z0-9_]+", name):
            raise UsageError(
                f"invalid congestion_control: '{name}'",
                "Name one of /proc/sys/net/ipv4/tcp_available_congestion_control, or system.",
            )
        if (file := knobs["certificate"]) and not Path(file).is_file():
            raise UsageError(f"invalid certificate: '{file}' is not a file", "Name a PEM file, or leave it out.")
        if (file := knobs["memory_file"]) and not (Path(file).is_absolute() and Path(file).parent.is_dir()):
            raise UsageError(
                f"invalid memory_file: expected an absolute path in a folder that exists, got '{file}'",
                "For example memory_file=/dev/shm/cache.",
            )

    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        transport = launch.knobs["transport"]
        if transport != "tcp" and launch.endpoint_kind == "unix":
            raise UsageError(f"transport={transport} does not go with a unix socket", "Leave --endpoint out.")
        if transport == "af_xdp" and launch.system_interface is None:
            raise SystemUnderTestError(
                "transport=af_xdp needs a network namespace of its own, joined to this host by a veth",
                "Run rackscope as root (CAP_SYS_ADMIN, CAP_NET_ADMIN), or set transport=udp.",
            )
        return super().start(acquired, launch)

    def dialect_of(self, launch: Launch) -> Dialect:
        return _Dialect(launch)

    def following_ports(self, launch: Launch) -> int:
        if launch.knobs["transport"] == "tls":
            # rackscope's own conversations are not encrypted: they have the port, and clients the one that follows.
            return 1
        # Where each worker has keys of its own, it has a port of its own.
        threads = int(launch.knobs["threads"])
        return threads if threads > 1 and launch.knobs["access"] != "crcw" else 0

    def starts_as_root(self, launch: Launch) -> bool:
        return launch.knobs["transport"] == "af_xdp"

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        knobs = launch.knobs
        arguments = ["-l", endpoint.host, "-p", str(endpoint.port)] if endpoint.kind == "tcp" else ["-s", endpoint.path]
        arguments += [
            "-m", str(int(knobs["memory"]) // _MEBIBYTE),
            "-t", knobs["threads"],
            "--access", knobs["access"],
            "--transport", knobs["event_loop"],
            "-c", self.served_connections(knobs),
            "-I", knobs["item_size_max"],
        ]  # fmt: skip
        if knobs["transport"] == "tls":
            file = _certificate(launch)
            if not knobs["certificate"]:
                _make_certificate(file, endpoint.host, account)
            host, port = endpoint.host, endpoint.port
            arguments[:4] = ["-l", f"notls:{host}:{port},{host}:{port + 1}", "-p", str(port + 1)]
            # What is made for the run lies where the server starts: it need not be able to reach it from the root.
            named = file if knobs["certificate"] else file.name
            arguments += ["-Z", "-o", f"ssl_chain_cert={named},ssl_key={named}"]
        if knobs["transport"] == "udp":
            arguments += ["-U", "free"]
        if knobs["transport"] == "af_xdp":
            # In a namespace of its own every port is free.
            arguments += ["-U", str(endpoint.port), "--xdp", launch.system_interface or ""]
            arguments += ["-u", account.name] if account is not None else []
        if knobs["congestion_control"]:
            arguments += ["-o", f"congestion={knobs['congestion_control']}"]
        if knobs["evict"] == "no":
            arguments += ["-M"]
        if knobs["memory_file"]:
            arguments += ["-e", knobs["memory_file"]]
        return [*arguments, "--cores", ",".join(map(str, launch.cores))] if launch.cores else arguments


@dataclass(frozen=True)
class _Dialect(MemcachedDialect):
    """memcached's, and where the workers are reached: ``stats partitions`` (docs/cache.md)."""

    launch: Launch

    def target(self, endpoint: Endpoint) -> Mapping[str, Any]:
        partitions = told(endpoint, b"stats partitions\r\n")

        def of_workers(what: str) -> list[str]:
            return [value for name, value in partitions.items() if name.endswith(f":{what}")]

        transport = self.launch.knobs["transport"]
        is_directed = self.launch.knobs["request_direction"] == "client"
        if transport == "tls":
            tls = {"trusted_file": str(_certificate(self.launch))}
            return {"kind": "tcp", "host": endpoint.host, "port": endpoint.port + 1, "tls": tls}
        if transport == "tcp" and not is_directed:
            return endpoint.target()
        if transport == "tcp":
            own = {"own_ports": [int(port) for port in of_workers("port")]}
            return endpoint.target() | (own if endpoint.kind == "tcp" else {"own_paths": of_workers("socket")})
        common = told(endpoint, b"stats settings\r\n")["udpport"]
        ports = [int(port) for port in (of_workers("udp_port") if is_directed else []) or [common]]
        if transport == "udp":
            return {"kind": "udp", "host": endpoint.host, "ports": ports}
        interface, inside = self.launch.host_interface or "", self.launch.system_interface or ""
        return {
            "kind": "xdp",
            "interface": interface,
            "source": f"{interface_address(interface)}:{_FIRST_XDP_PORT}",
            "destination": endpoint.host,
            "destination_mac": hardware_address(inside, self.launch.network_namespace),
            "ports": ports,
        }


def _certificate(launch: Launch) -> Path:
    """The file with certificate and key."""
    return Path(launch.knobs["certificate"] or launch.folder / Cache.data_folder / "certificate.pem").absolute()


def _make_certificate(file: Path, host: str, account: Account | None) -> None:
    """A certificate that the run's server signs for itself. Raises SystemUnderTestError."""
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-days", "7", "-subj", "/CN=rackscope", "-addext", f"subjectAltName=IP:{host}"]
    try:
        subprocess.run([*command, "-keyout", str(file), "-out", f"{file}.new"], capture_output=True, check=True)
        with file.open("ab") as both:
            both.write(Path(f"{file}.new").read_bytes())
        give_to(file, account)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemUnderTestError(
            f"no certificate can be made with openssl: {error}", "Install openssl, or name one: --set certificate=FILE."
        ) from error


SYSTEM = Cache()
