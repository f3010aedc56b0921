"""What Issa 2012 prints: text where it is compared, for its digits; numbers where measured. Nothing here is ours."""

from __future__ import annotations

from dataclasses import dataclass

CITATION = (
    "J. Issa and S. Figueira, Hadoop and memcached: Performance and power characterization and analysis, "
    "Journal of Cloud Computing: Advances, Systems and Applications 1:10, 2012"
)

#: The block size of the file system, which equation 2 takes for the size of the data. A megabyte is 10^6 bytes: only
#: then does equation 2 give table 9.
BLOCK_BYTES = 128e6


@dataclass(frozen=True)
class Processor:
    """A server's processor as tables 9 and 10 name it."""

    name: str
    frequency_megahertz: float
    cores: int

    @property
    def hertz(self) -> float:
        return self.frequency_megahertz * 1e6


ATOM_D510 = Processor("ATOM D510", 1660, 2)
ATOM_D525 = Processor("ATOM D525", 1880, 2)
NHM = Processor("NHM X5570", 2930, 4)
PROCESSORS = (ATOM_D510, ATOM_D525, NHM)
#: Table 6 and the section on memcached give the ATOM D525 this clock; tables 9 and 10 give it 1,880 MHz.
ATOM_D525_OTHER_MEGAHERTZ = 1800.0


@dataclass(frozen=True)
class HadoopRow:
    """A row of table 2, NHM and ATOM in turn: seconds, tasks a minute (where printed), and the two speedups."""

    workload: str
    seconds: tuple[float, float]
    speedup: str
    tasks_per_minute: tuple[float, float] | None = None
    tasks_speedup: str = ""


TABLE_2 = (
    HadoopRow("Wordsort", (790, 2901), "3.67", (219.5, 32.5), "6.75"),
    HadoopRow("Wordcount", (455, 5717), "12.5", (156.1, 12.3), "12.69"),
    HadoopRow("Terasort", (3458, 28891), "8.35", (184.2, 18.5), "9.95"),
    HadoopRow("NutchIndexing", (218, 1834), "8.4"),
    HadoopRow("Kmeans", (940, 11310), "12.03"),
)


@dataclass(frozen=True)
class PowerRow:
    """A row of table 3 or 4, the Xeon first: watts, and the ratios against ATOM."""

    workload: str
    watts: tuple[float, float]
    power_ratio: str
    per_watt: str
    per_dollar: str


TABLE_3_DOLLARS = (7300.0, 650.0)
TABLE_3 = (
    PowerRow("Wordsort", (190, 44), "4.3", "0.85", "0.3"),
    PowerRow("Wordcount", (260, 41), "6.3", "1.98", "1.05"),
    PowerRow("Terasort", (215, 42), "5.11", "1.63", "0.7"),
    PowerRow("NutchIndexing", (220, 41), "5.36", "1.56", "0.7"),
    PowerRow("Kmeans", (250, 42), "5.95", "2.02", "1.04"),
)

TABLE_4_DOLLARS = (7307.0, 628.0)
TABLE_4_COST_RATIO = "11.64"
#: Seconds of WSM and ATOM, and the speedup.
TABLE_4_TIMES = (
    ((793.0, 2948.0), "3.72"),
    ((326.1, 5767.0), "17.69"),
    ((2837.7, 28967.0), "10.21"),
    ((178.7, 1819.0), "10.18"),
    ((668.3, 11357.0), "16.99"),
)
TABLE_4 = (
    PowerRow("Wordsort", (192.1, 44.16), "4.35", "0.85", "0.32"),
    PowerRow("Wordcount", (260.46, 41.48), "6.28", "2.82", "1.52"),
    PowerRow("Terasort", (215.96, 42.3), "5.11", "2.00", "0.88"),
    PowerRow("NutchIndexing", (219.88, 41.32), "5.32", "1.91", "0.87"),
    PowerRow("Kmeans", (250.05, 42.07), "5.94", "2.86", "1.46"),
)

#: Measured CPI of table 5, NHM and ATOM (the frequency of the latter is not said; the D510 is the one described).
TABLE_5_CPI = {"Wordsort": (1.51, 3.82), "Wordcount": (1.43, 3.04), "Terasort": (1.22, 2.79)}


@dataclass(frozen=True)
class MemcachedServer:
    """A column of table 6."""

    name: str
    sockets: int
    cores: int
    frequency_megahertz: float
    cpu_utilisation: float
    operations_per_second: float
    latency_seconds: float
    watts: float
    cpi: str

    @property
    def instructions_per_second(self) -> float:
        """By equation 2."""
        return self.cores * self.frequency_megahertz * 1e6 * self.cpu_utilisation / float(self.cpi)


TABLE_6_ATOM = MemcachedServer("ATOM D525", 1, 2, 1800, 0.974, 95_336, 985e-6, 35.4, "6.04")
TABLE_6_WSM = MemcachedServer("WSM-EP", 2, 12, 2270, 0.848, 1_410_475, 959e-6, 207.6, "3.05")
TABLE_6_PER_NODE, TABLE_6_PER_SOCKET, TABLE_6_PER_CORE = "14.79", "7.40", "2.47"
#: In the text below figure 15.
TEXT_POWER_RATIO, TEXT_PERFORMANCE_RATIO = "5.9", "14.7"


@dataclass(frozen=True)
class DiskRow:
    """A row of table 7 or 8."""

    pattern: str
    operations_per_second: float
    latency_seconds: float
    watts: float
    per_watt: str


DISK_QUEUE_DEPTH = 32
TABLE_7 = (
    DiskRow("random read", 404, 79.01e-3, 31.79, "12.71"),
    DiskRow("random write", 452, 70.70e-3, 31.56, "14.32"),
    DiskRow("sequential read", 3686, 8.88e-3, 33.25, "110.88"),
    DiskRow("sequential write", 3686, 8.85e-3, 34.75, "106.09"),
)
TABLE_8 = (
    DiskRow("random read", 400, 79.97e-3, 155.51, "2.57"),
    DiskRow("random write", 450, 71.09e-3, 157.81, "2.85"),
    DiskRow("sequential read", 3636, 9.00e-3, 185.72, "19.58"),
    DiskRow("sequential write", 3638, 8.98e-3, 188.24, "19.32"),
)

#: y = slope x + intercept, of figure 13, and the bounds that the text takes from the intercepts.
MEMCACHED_LINES = {"ATOM": (0.304, -250.0, "3.28"), "WSM": (0.505, -402.0, "1.98")}

#: Equation 3 for word count. For word sort, as for the others, no constants are printed.
WORDCOUNT_PATH_LENGTH = (-31_500.0, 70_702.0)


@dataclass(frozen=True)
class ProjectionRow:
    """A column of table 9 or 10: seconds measured and projected, and the error in percent."""

    processor: Processor
    measured_seconds: float
    projected_seconds: str
    error_percent: str


TABLE_9 = (
    ProjectionRow(ATOM_D510, 5717, "5652", "1.15"),
    ProjectionRow(ATOM_D525, 4150, "4491", "7.61"),
    ProjectionRow(NHM, 455, "431", "5.55"),
)
TABLE_10 = (
    ProjectionRow(ATOM_D510, 2901, "2947", "1.59"),
    ProjectionRow(ATOM_D525, 2340, "2446", "4.36"),
    ProjectionRow(NHM, 790, "793", "0.38"),
)
