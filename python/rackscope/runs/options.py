"""What a run is asked to be, after the command line was understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rackscope.errors import UsageError

if TYPE_CHECKING:
    # Help is printed without pydantic.
    from rackscope.runs.manifest import ServerPart

Arrivals = Literal["poisson", "constant"]
#: Operations a second that an open loop can be asked for.
LOWEST_RATE, HIGHEST_RATE = 0.1, 1e9


@dataclass(frozen=True)
class Loop:
    """How requests are sent. Closed, without a rate: each when the one before it was answered. Open: at
    ``rate_per_second``, whatever the system does. Raises UsageError for a rate out of bounds."""

    rate_per_second: float | None = None
    arrivals: Arrivals = "poisson"

    def __post_init__(self) -> None:
        rate = self.rate_per_second
        if rate is not None and not LOWEST_RATE <= rate <= HIGHEST_RATE:
            raise UsageError(
                f"{rate:g} operations a second are out of bounds",
                f"Choose --rate between {LOWEST_RATE:g} and {HIGHEST_RATE:.0f}.",
            )

    def to_dict(self) -> dict[str, Any]:
        """As the load generator takes it."""
        if self.rate_per_second is None:
            return {"kind": "closed"}
        return {"kind": "open", "arrivals": self.arrivals, "rate_per_second": self.rate_per_second}


@dataclass(frozen=True)
class RunOptions:
    """One system, one workload, one configuration. Lengths in seconds.

    ``settings`` are ``--set`` pairs; each names a knob of the system or a parameter of the workload.
    ``repetitions`` fixes how often the measured stages run; ``None`` repeats until the interval is tight or
    ``budget_seconds`` of measuring is spent. ``meters`` are power meters as ``--meter`` takes them.
    """

    system: str
    workload: str
    settings: Mapping[str, str] = field(default_factory=dict)
    tuned: bool = False
    connections: int = 50
    rate_per_second: float | None = None
    arrivals: Arrivals = "poisson"
    duration_seconds: float = 5.0
    warm_up_seconds: float = 2.0
    repetitions: int | None = None
    budget_seconds: float = 40.0
    target_relative_half_width: float = 0.02
    cores: tuple[int, ...] | None = None
    client_cores: tuple[int, ...] | None = None
    endpoint_kind: Literal["tcp", "unix"] = "tcp"
    port: int | None = None
    sample_interval_seconds: float = 0.1
    seed: int = 42
    verify: bool = True
    meters: tuple[str, ...] = ()
    fetch: bool = True
    out: Path | None = None
    command_line: tuple[str, ...] = ()
    #: What was said of the server's watts, which a host without a meter is modelled from.
    server: ServerPart | None = None

    @property
    def loop(self) -> Loop:
        return Loop(self.rate_per_second, self.arrivals)

    def check(self) -> None:
        """Raises UsageError for values that no run can have."""
        from rackscope.host.meters import parse_meters

        self._check_load()
        self._check_length()
        parse_meters(self.meters)
        if self.port is not None and self.endpoint_kind == "unix":
            raise UsageError("a unix socket has no port", "Leave out --port, or --endpoint unix.")
        if self.port is not None and not 1 <= self.port <= 65535:
            raise UsageError(f"{self.port} is not a TCP port", "Ports go from 1 to 65535; leave it out for a free one.")
        if not 0.01 <= self.sample_interval_seconds <= 10:
            raise UsageError("samples are taken between 0.1 and 100 times a second", "Choose --sample-rate 10.")

    def _check_load(self) -> None:
        if not 1 <= self.connections <= 20_000:
            raise UsageError(f"{self.connections} connections are out of bounds", "Choose between 1 and 20000.")
        if self.repetitions is not None and not 1 <= self.repetitions <= 1000:
            raise UsageError(f"{self.repetitions} repetitions are out of bounds", "Choose between 1 and 1000.")
        # Raises for a rate that is out of bounds.
        _ = self.loop
        if not 0 <= self.seed < 2**64:
            raise UsageError(f"invalid seed {self.seed}", "Choose --seed between 0 and 2^64 - 1.")

    def _check_length(self) -> None:
        if self.duration_seconds < 0.1:
            raise UsageError("a measured repetition must last at least 0.1 s", "Choose --duration 5s.")
        if self.duration_seconds > 24 * 3600:
            raise UsageError("a measured repetition may last at most a day", "Choose --duration 30s.")
        if self.warm_up_seconds > 24 * 3600:
            raise UsageError("warming up may last at most a day", "Choose --warm-up 30s.")


def run_options(system: str, workload: str, **fields: Any) -> RunOptions:
    """The options with these fields. Raises UsageError for one that there is not."""
    try:
        return RunOptions(system, workload, **fields)
    except TypeError as error:
        raise UsageError(f"invalid option of a run: {error}", "RunOptions has those that there are.") from None


@dataclass(frozen=True)
class Progress:
    """What a run is doing now; the command line draws it."""

    activity: str
    fraction: float | None = None
    throughput_operations_per_second: float | None = None
    response_p99_seconds: float | None = None


ProgressCallback = Callable[[Progress], None]
