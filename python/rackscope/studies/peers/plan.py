"""What ``study peers`` asks of every system alike, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rackscope.errors import UsageError, unknown_name
from rackscope.systems.base import EndpointKind

#: Systems that a cache is compared with, where they are to be had; rackscope fetches the first two.
PEERS = ("memcached", "redis", "pogocache", "valkey", "dragonfly", "garnet", "segcache")
#: Loads and latencies are told in shares of what this one does.
BASELINE = "memcached"
_CONNECTIONS = 50
_LARGE_KEYS = 4000


@dataclass(frozen=True)
class Setting:
    """What the load generator does: on a connection ``depth`` requests, of ``keys_each``; ``words`` explain it."""

    name: str
    words: str
    is_mixed: bool = False
    endpoint_kind: EndpointKind = "tcp"
    depth: int = 1
    keys_each: int = 1
    key_bytes: int = 24
    value_bytes: int = 32
    #: More keys than this would be more memory than is worth it.
    most_keys: int | None = None
    connections: int = _CONNECTIONS

    @property
    def workload(self) -> str:
        """YCSB's reads alone, or 95 % reads and 5 % updates."""
        return "ycsb-b" if self.is_mixed else "ycsb-c"

    @property
    def label(self) -> str:
        """``unpipelined mixed``."""
        return self.name.replace("-mixed", " mixed").replace("-deep", " deep")

    def parameters(self, keys: int) -> dict[str, str]:
        """As parameters of the workload, with ``keys`` keys at most."""
        return {
            "keys": str(min(keys, self.most_keys or keys)),
            "key_size": str(self.key_bytes),
            "value_size": str(self.value_bytes),
            "pipeline": str(self.depth),
            "multiget": str(self.keys_each),
        }


def _both(setting: Setting) -> tuple[Setting, Setting]:
    return setting, replace(setting, name=f"{setting.name}-mixed", is_mixed=True)


SETTINGS: tuple[Setting, ...] = (
    *_both(Setting("unpipelined", "1 deep, 100 B", value_bytes=100)),
    *_both(Setting("unix", "1 deep, 100 B, over a unix socket", endpoint_kind="unix", value_bytes=100)),
    *_both(Setting("16-deep", "16 deep, 32 B", depth=16)),
    *_both(Setting("50-deep", "50 deep, 32 B", depth=50)),
    Setting("multi-get", "100 keys a read, 32 B", keys_each=100),
    # The paper's image preview (Awasthi 2015, section 4.3.1).
    *_both(Setting("large", "1 deep, 25 KiB", key_bytes=32, value_bytes=25 * 1024, most_keys=_LARGE_KEYS)),
)
#: The setting in which latency is told over load.
CURVE = next(one for one in SETTINGS if one.name == "unpipelined-mixed")
#: What memory is told for: items of 32 + 64 bytes, loaded quickly. The figure is that of this many.
MEMORY_ITEMS = 10_000_000
MEMORY = Setting("memory", "16 deep, 64 B", depth=16, key_bytes=32, value_bytes=64)


@dataclass(frozen=True)
class Plan:
    """What is measured. ``systems`` are the subject and then its peers, ``missing`` those that are not here.

    ``loads`` are shares of the baseline's best; ``memory_items`` is zero where memory is left out.
    """

    systems: tuple[str, ...]
    missing: Mapping[str, str]
    settings: tuple[Setting, ...]
    loads: tuple[float, ...]
    keys: int
    memory_items: int
    seconds: float
    repetitions: int
    budget_seconds: float
    seed: int = 42
    #: The host's, of TCP connections; every system has it.
    congestion_control: str | None = None

    @property
    def subject(self) -> str:
        return self.systems[0]

    @property
    def peers(self) -> tuple[str, ...]:
        return self.systems[1:]

    @property
    def baseline(self) -> str:
        """The peer whose best load is the measure of loads."""
        return BASELINE if BASELINE in self.systems else self.peers[0]


def parse_settings(text: str | None) -> tuple[Setting, ...]:
    """Settings by name, all without any. Raises UsageError."""
    known = {setting.name: setting for setting in SETTINGS}
    return tuple(known[name] for name in _names(text, known, "--settings", "setting")) if text else SETTINGS


def parse_peers(text: str | None, subject: str) -> tuple[str, ...]:
    """Peers by name, all without any. Raises UsageError."""
    if text is None:
        return tuple(name for name in PEERS if name != subject)
    names = _names(text, dict.fromkeys((*PEERS, "cache")), "--peers", "peer")
    if subject in names:
        raise UsageError(f"{subject} cannot be compared with itself", "Leave it out of --peers.")
    return names


def _names(text: str, known: Mapping[str, object], option: str, what: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in known:
            raise unknown_name(f"{option}: there is no {what}", name, "There are", known)
    return names
