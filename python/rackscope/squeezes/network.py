"""Network bandwidth: a token bucket on either end of the veth between the host and the system's network.

Towards the system it stands on the host's end, from the system on the far one: what a link sends is what can be
limited. Loopback is never limited: everything on the host uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Achieved, Applied, Capacity, Isolation, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.groups import require
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.token_bucket import HIGHEST_RATE, LOWEST_RATE, clear_rate, read_rate, set_rate
from rackscope.squeezes.transfer import Direction, measure_transfer
from rackscope.units import format_bytes

#: The ceiling under which ``limit_link``'s limit is told: the capacity is that, then.
LINK_CEILING = "network_link_bytes_per_second"
_UNIT = "bytes/s"
#: How far what is left may be from what was asked for.
_TOLERANCE = 0.1
_VERIFY_SECONDS = 0.4


@dataclass(frozen=True)
class _End:
    """One end of the veth; ``namespace`` is what it is in, when not in this process's own."""

    interface: str
    namespace: Path | None


class NetworkBandwidth(Squeeze):
    """Bytes a second in one direction."""

    resource = "network"

    def __init__(self, direction: Direction) -> None:
        self.name = f"network_{direction}"
        towards = "towards" if direction == "in" else "from"
        self.description = f"bytes a second {towards} the system, by a token bucket on its veth"
        self._direction: Direction = direction

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        isolation = subject.isolation
        if isolation.network_namespace is None or isolation.address is None or isolation.host_interface is None:
            why = isolation.missing.get("network", "it was started without one")
            return NotSqueezable(
                f"the system has no network namespace of its own ({why}); a limit on loopback would hit the whole host",
                "root (CAP_SYS_ADMIN, CAP_NET_ADMIN) and a kernel with veth and sch_tbf",
            )
        limit = subject.ceilings.get(LINK_CEILING)
        if limit is not None:
            value, source = limit, "the link's limit"
        else:
            try:
                value = _measure_once(
                    isolation.network_namespace, isolation.address, self._direction, isolation.host_interface
                )
            except SqueezeError as error:
                return NotSqueezable(error.what, error.advice)
            source = "measured: one TCP connection over the veth"
        return Capacity(value, _UNIT, source, floor=max(0.01, min(0.99, LOWEST_RATE / value)))

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        # The limit is part of a link that the journal removes already.
        del journal
        rate = require(self.capacity(subject), self.name).value * fraction
        if rate > HIGHEST_RATE:
            raise SqueezeError(
                f"{self.name} cannot be limited to {format_bytes(rate)}/s: the kernel's filter is told 32 bits",
                f"Limit the link to less than {HIGHEST_RATE} bytes/s from the start.",
            )
        return _Limited([_end(subject.isolation, self._direction)], rate)

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        capacity = require(self.capacity(subject), self.name)
        namespace, address = _network_of(subject.isolation)
        with self.apply(subject, fraction, journal):
            rate = measure_transfer(namespace, address, self._direction, _VERIFY_SECONDS)
        left = rate / capacity.value
        return Achieved(
            left,
            f"one TCP connection got {format_bytes(rate)}/s of {format_bytes(capacity.value)}/s in frames",
            abs(left - fraction) <= _TOLERANCE * fraction,
        )


def limit_link(isolation: Isolation, bytes_per_second: float, journal: Journal) -> Applied:
    """Limit both directions for as long as it is held, as if the system were on a network card of that speed.

    Frames are counted (see ``token_bucket``): "1 Gb/s" is 125e6. Squeezes applied meanwhile come back to this limit.
    Raises SqueezeError.
    """
    del journal
    _network_of(isolation)
    return _Limited([_end(isolation, "in"), _end(isolation, "out")], bytes_per_second)


class _Limited(Applied):
    """Limits that are held; releasing them brings back those that were there before."""

    def __init__(self, ends: list[_End], bytes_per_second: float) -> None:
        self._undo: list[Callable[[], None]] = []
        try:
            for end in ends:
                self._undo.append(_restore(end, read_rate(end.interface, end.namespace)))
                set_rate(end.interface, end.namespace, bytes_per_second)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        while self._undo:
            self._undo[-1]()
            self._undo.pop()


def _restore(end: _End, rate: float | None) -> Callable[[], None]:
    if rate is None:
        return lambda: clear_rate(end.interface, end.namespace)
    return lambda: set_rate(end.interface, end.namespace, rate)


def _end(isolation: Isolation, direction: Direction) -> _End:
    """The end that sends in this direction."""
    if isolation.host_interface is None or isolation.system_interface is None:
        raise SqueezeError("the system has no network namespace of its own to limit")
    if direction == "in":
        return _End(isolation.host_interface, None)
    return _End(isolation.system_interface, isolation.network_namespace)


def _network_of(isolation: Isolation) -> tuple[Path, str]:
    if isolation.network_namespace is None or isolation.address is None:
        why = isolation.missing.get("network", "it was started without one")
        raise SqueezeError(f"the system has no network namespace of its own ({why})")
    return isolation.network_namespace, isolation.address


@lru_cache(maxsize=8)
def _measure_once(namespace: Path, address: str, direction: Direction, interface: str) -> float:
    """What the veth gives; once for each, so that every level of a squeeze is of the same capacity."""
    del interface
    return measure_transfer(namespace, address, direction, _VERIFY_SECONDS)


SQUEEZES: tuple[Squeeze, ...] = (NetworkBandwidth("in"), NetworkBandwidth("out"))
