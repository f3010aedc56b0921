"""What ``study access`` is going to measure, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.studies.bench.turns import rounds_of

ACCESS_MODES = ("EREW", "CREW", "CRCW")
#: Structures by others that all cores read and write: crates of these names.
PEERS = ("papaya", "masstree")
#: As many as the cache server gives each worker where all workers share them.
_PARTITIONS_PER_CORE = 4


@dataclass(frozen=True)
class Setting:
    """What all access modes are asked for alike. ``theta`` is the exponent of zipfian keys; uniform without."""

    cores: int
    theta: float | None
    writes_percent: int

    @property
    def keys(self) -> str:
        """``uniform`` or ``zipf 0.99``."""
        return "uniform" if self.theta is None else f"zipf {self.theta:g}"

    @property
    def order(self) -> tuple[int, float, int]:
        """By which settings are sorted."""
        return self.cores, self.theta or 0.0, self.writes_percent

    @property
    def mix(self) -> str:
        """``uniform keys and 50 % writes``."""
        return f"{self.keys} keys and {f'{self.writes_percent} % writes' if self.writes_percent else 'no writes'}"


@dataclass(frozen=True)
class Plan:
    """What is measured: every access mode in every setting, ``repetitions`` times."""

    items: int
    cores: tuple[int, ...]
    thetas: tuple[float | None, ...]
    writes: tuple[int, ...]
    seconds: float
    repetitions: int
    budget_seconds: float
    seed: int = 1
    with_peers: bool = False

    @property
    def structures(self) -> tuple[str, ...]:
        """The access modes, and the structures by others that are measured beside them."""
        return ACCESS_MODES + (PEERS if self.with_peers else ())

    @property
    def settings(self) -> list[Setting]:
        """Those with the fewest cores first."""
        return [
            Setting(cores, theta, writes) for cores in self.cores for theta in self.thetas for writes in self.writes
        ]

    @property
    def cells(self) -> list[tuple[str, Setting]]:
        """Every structure in every setting."""
        return [(access, setting) for setting in self.settings for access in self.structures]

    def partitions(self, cores: int) -> int:
        """Of every store for so many cores: alike under all modes and for all core counts that can share evenly."""
        wanted = _PARTITIONS_PER_CORE * max(self.cores)
        return -(-wanted // cores) * cores

    def rounds(self) -> list[list[tuple[str, Setting]]]:
        """Each round holds every cell once."""
        return rounds_of(self.cells, self.repetitions, self.seed)
