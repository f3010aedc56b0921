"""DRAM bandwidth: by the processor's own regulator (resctrl MBA), else by threads on spare cores that read memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Resource, Squeeze, Subject
from rackscope.squeezes.groups import require
from rackscope.squeezes.regulated import HeldAntagonist, Regulated
from rackscope.squeezes.verifying import judge

if TYPE_CHECKING:
    from rackscope._native import RegulatedChannel as NativeChannel
    from rackscope.squeezes.journal import Journal

_MEASURE_SECONDS = 0.2
#: Read by all measuring threads together at least: more than caches hold.
_BUFFER_BYTES = 256 << 20
_MOST_THREADS = 64
#: Antagonists that leave more than this share of the bandwidth have taken none that could be told from noise.
_UNTOUCHED = 0.95
#: Where the synthetic system keeps its channel, under the folder that it is told.
_CHANNEL_FILES = ("regulated-channel", "synthetic-data/regulated-channel")


class DramBandwidth(Regulated):
    """MBA for the system's tasks, or antagonists for ``1 - fraction`` of the time, with a placebo as the control."""

    name = "dram_bandwidth"
    resource: Resource = "dram_bandwidth"
    description = "less memory bandwidth, by resctrl, or by threads on spare cores that read memory"
    settle_seconds = 0.2
    resctrl_name = "MB"
    regulator_title = "MBA"
    taken = "memory bandwidth"

    def amount(self, subject: Subject) -> tuple[float, str, str] | NotSqueezable:
        """What the system's cores read when they are alone, measured."""
        return _read(subject), "bytes/s", "read by the system's cores alone"

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Read with the system's cores, in its control group, with and without the squeeze."""
        alone, left = self._measure(subject, fraction, journal, lambda: _read(subject))
        share = left / alone
        figures = f"the system's cores read {left / 1e9:.1f} GB/s instead of {alone / 1e9:.1f} GB/s"
        if share > _UNTOUCHED and fraction < _UNTOUCHED:
            return Achieved(
                share, f"{figures}: memory has bandwidth for more cores than there are to spare", effective=False
            )
        return judge(share, fraction, figures)


class RegulatedChannel(Squeeze):
    """The software channel of the synthetic system, and of no other; so it is not in ``SQUEEZES``."""

    name = "regulated_channel"
    resource: Resource = "dram_bandwidth"
    description = "less bandwidth of the synthetic system's regulated memory channel"
    settle_seconds = 0.4

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        channel = _find_channel(subject)
        if isinstance(channel, NotSqueezable):
            return channel
        return Capacity(float(channel.bytes_per_second), "bytes/s", "the rate of the regulated channel")

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        """Lower its rate, for as long as this process puts off the end of it: half a second at most if it is killed."""
        del journal
        channel = require(_find_channel(subject), self.name)
        return HeldAntagonist(self.name, lambda: channel.hold(fraction))

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Draw from it as fast as it lets through."""
        channel = require(_find_channel(subject), self.name)
        with self.apply(subject, fraction, journal):
            left = channel.measure(0.3)
        full = float(channel.bytes_per_second)
        return judge(left / full, fraction, f"{left / 1e9:.3f} GB/s were let through of {full / 1e9:.3f} GB/s")


def _read(subject: Subject) -> float:
    """Bytes a second that the system's cores read together: the median of the passes. Raises SqueezeError."""
    from rackscope import _native

    cores = list(subject.cores)[:_MOST_THREADS]
    each = max(_BUFFER_BYTES // max(len(cores), 1), 32 << 20)
    try:
        found = _native.measure_dram_bandwidth("read", len(cores), each, _MEASURE_SECONDS, cores)
    except (OSError, ValueError, RuntimeError) as error:
        raise SqueezeError(f"memory bandwidth could not be measured: {error}") from error
    return float(found["median_bytes_per_second"])


def _find_channel(subject: Subject) -> NativeChannel | NotSqueezable:
    from rackscope import _native

    if subject.folder is not None:
        for name in _CHANNEL_FILES:
            path = subject.folder / name
            if path.exists():
                try:
                    return _native.RegulatedChannel(path)
                except (OSError, ValueError) as error:
                    return NotSqueezable(str(error), "a running synthetic system of this version")
    return NotSqueezable(
        "the system has no regulated channel", "the system 'synthetic' with work of the kind memory-stream-regulated"
    )


SQUEEZES = (DramBandwidth(),)
