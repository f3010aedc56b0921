"""Features of cloud servers that several models share: sizes, and what calibration measured on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Described, Input

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Strings = NDArray[np.str_]

SERVERS, SCALING = "sparecores-servers", "sparecores-core-scaling"
CALIBRATED = ("vcpus", "threads_per_core", "read_bandwidth_dram_mb_s", "read_bandwidth_l2_mb_s")


def calibrated_servers(
    frames: Mapping[str, pl.DataFrame], also: tuple[str, ...] = (), *, at_all: bool = True
) -> pl.DataFrame:
    """Servers that have all of ``CALIBRATED``, the columns ``also``, and stress-ng at one worker and at all of them.

    Adds ``one`` and ``all`` (operations/s at one worker and at as many as there are hardware threads), and leaves out
    what lacks any; without ``at_all``, what lacks the last is kept. Raises ModelError as ``columns`` does.
    """
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    require(frames[SERVERS], SERVERS, ("server", "cpu_model"))
    servers = numbers(frames[SERVERS], SERVERS, (*CALIBRATED, *also))
    curve = scaling_points(frames)
    points = curve.join(servers.select("server", "vcpus"), on="server")
    one = points.filter(pl.col("workers") == 1).select("server", pl.col("ops_per_second").alias("one"))
    every = points.filter(pl.col("workers") == pl.col("vcpus")).select("server", pl.col("ops_per_second").alias("all"))
    joined = servers.join(one, on="server", how="left").join(every, on="server", how="left")
    return joined.drop_nulls(["server", "cpu_model", *CALIBRATED, *also, "one", *(("all",) * at_all)]).sort("server")


def with_unknown(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """``frame`` with NaN in those columns of ``names`` that it lacks: what is asked of a server that is described."""
    import polars as pl

    return frame.with_columns(pl.lit(float("nan")).alias(name) for name in names if name not in frame.columns)


def scaling_points(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Operations/s of stress-ng over workers: one row a server and number of workers, the median of several."""
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    require(frames[SCALING], SCALING, ("server",))
    points = numbers(frames[SCALING], SCALING, ("workers", "ops_per_second"))
    points = points.drop_nulls(["server", "workers", "ops_per_second"])
    return points.group_by("server", "workers").agg(pl.col("ops_per_second").median()).sort("server", "workers")


def processors(servers: pl.DataFrame) -> tuple[Strings, Floats, Floats]:
    """For each row: the processor, and whether it is Arm's kind and AMD's (1.0 or 0.0)."""
    import numpy as np

    from rackscope.models.trained.processor_names import parse_processor_name

    names = [parse_processor_name(str(text)) for text in servers["cpu_model"]]
    return (
        np.array([name.model for name in names]),
        np.array([name.arm for name in names], dtype=np.float64),
        np.array([name.amd for name in names], dtype=np.float64),
    )


#: The year is one between those of the known where the name does not say it.
GENERATION_COLUMNS = ("year of the generation", "generation known")
_YEAR_UNKNOWN = 2020.0


def generations(servers: pl.DataFrame) -> list[Floats]:
    """The columns of ``GENERATION_COLUMNS``, one value a server: the second is 1.0 or 0.0."""
    import numpy as np

    from rackscope.models.trained.processor_generation import generation_year

    years = [generation_year(str(text)) for text in servers["cpu_model"]]
    return [
        np.array([_YEAR_UNKNOWN if year is None else year for year in years]),
        np.array([year is not None for year in years], dtype=np.float64),
    ]


#: What calibration says of a server; ``operations_per_second`` maps numbers of workers to stress-ng's operations/s.
INPUTS = (
    Input("processor", "its name, as the system shows it"),
    Input("hardware_threads", "of the server (vCPUs)"),
    Input("threads_per_core", "hardware threads a core: 1 or 2"),
    Input("read_bandwidth_dram_mb_s", "all cores reading DRAM, MB/s"),
    Input("read_bandwidth_l2_mb_s", "all cores reading their second-level caches, MB/s"),
    Input("operations_per_second", "of stress-ng by number of workers: at 1 and at all hardware threads"),
)

#: The same for people.
CALIBRATION = "read bandwidth of DRAM and L2, stress-ng at one worker and at all, hardware threads and threads a core"


def described_tables(server: Described, *, at_all: bool = True, **measured: object) -> dict[str, pl.DataFrame]:
    """Tables of the one server that is described; ``measured`` are further columns. Raises ModelError.

    Without ``at_all``, stress-ng need not be known at all hardware threads.
    """
    import polars as pl

    rates = points(server, "operations_per_second")
    for workers in (1.0, *((float(str(server["hardware_threads"])),) * at_all)):
        if workers not in rates:
            raise ModelError(
                f"'operations_per_second' lacks {workers:.0f} worker{'s' * (workers > 1)}",
                "Give it at 1 and at all hardware threads." if at_all else "Give it like {1: 1500.0}.",
            )
    row = {
        "server": "described",
        "cpu_model": str(server["processor"]),
        "vcpus": server["hardware_threads"],
        "threads_per_core": server["threads_per_core"],
        "read_bandwidth_dram_mb_s": server["read_bandwidth_dram_mb_s"],
        "read_bandwidth_l2_mb_s": server["read_bandwidth_l2_mb_s"],
        **measured,
    }
    return {
        SERVERS: pl.DataFrame({name: [value] for name, value in row.items()}),
        SCALING: pl.DataFrame(
            {"server": ["described"] * len(rates), "workers": list(rates), "ops_per_second": list(rates.values())}
        ),
    }


def points(server: Described, name: str) -> dict[float, float]:
    """What ``server`` says by number under ``name``. Raises ModelError where that is not several numbers."""
    values = server[name]
    refused = ModelError(f"'{name}' is not numbers by number", "Give it like {1: 1500.0, 16: 21000.0}.")
    if not isinstance(values, Mapping):
        raise refused
    try:
        return {float(key): float(value) for key, value in values.items()}
    except (TypeError, ValueError):
        raise refused from None


def providers(servers: pl.DataFrame) -> Strings:
    """Who rents the server out: the part of its name before the first slash."""
    import numpy as np

    return np.array([str(name).split("/", maxsplit=1)[0] for name in servers["server"]])


CALIBRATION_COLUMNS = (
    "hardware threads",
    "threads a core",
    "operations/s of one worker",
    "operations/s a worker at all over at one",
    "DRAM bandwidth a thread",
    "L2 bandwidth a thread",
    "arm",
    "amd",
    *GENERATION_COLUMNS,
)
#: Starts of the search for scales: large servers of some processors go ways of their own.
SEARCHED_LENGTHS = (0.5, -0.5)


def calibration_features(servers: pl.DataFrame) -> list[Floats]:
    """Logarithms of size and of what calibration measured, a hardware thread; the processor's kind and generation."""
    import numpy as np

    def log(name: str) -> Floats:
        result: Floats = np.log(servers[name].to_numpy().astype(np.float64))
        return result

    threads = log("vcpus")
    _, arm, amd = processors(servers)
    return [
        threads,
        log("threads_per_core"),
        log("one"),
        log("all") - log("one") - threads,
        log("read_bandwidth_dram_mb_s") - threads,
        log("read_bandwidth_l2_mb_s") - threads,
        arm,
        amd,
        *generations(servers),
    ]
