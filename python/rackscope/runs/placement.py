"""Which cores the system and the client get. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.errors import UsageError


@dataclass(frozen=True)
class Placement:
    """Cores of the system and of the client; ``shared`` when they overlap, which bends every number."""

    system: tuple[int, ...]
    client: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether the client takes time from the system it measures."""
        return bool(set(self.system) & set(self.client))


def place(
    allowed: Sequence[int], system: Sequence[int] | None = None, client: Sequence[int] | None = None
) -> Placement:
    """Choose from ``allowed``; explicit ones win, else the client gets the last quarter. Raises UsageError."""
    usable = sorted(set(allowed))
    for what, wish in (("--cores", system), ("--client-cores", client)):
        absent = sorted(set(wish or ()) - set(usable))
        if absent:
            raise UsageError(
                f"{what} names core {_ranges(absent)}, which this process may not use or this host does not have",
                f"Choose from {_ranges(usable)}.",
            )
    if system and client:
        return Placement(tuple(system), tuple(client))
    if system:
        rest = [core for core in usable if core not in system]
        return Placement(tuple(system), tuple(rest[-_client_share(len(usable)) :] or usable[-1:]))
    if client:
        rest = [core for core in usable if core not in client]
        return Placement(tuple(rest or usable), tuple(client))
    if len(usable) == 1:
        return Placement((usable[0],), (usable[0],))
    split = len(usable) - _client_share(len(usable))
    return Placement(tuple(usable[:split]), tuple(usable[split:]))


def _client_share(count: int) -> int:
    return max(1, count // 4)


def _ranges(cores: Sequence[int]) -> str:
    parts: list[str] = []
    start = previous = cores[0]
    for core in [*cores[1:], -2]:
        if core != previous + 1:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
            start = core
        previous = core
    return ",".join(parts)
