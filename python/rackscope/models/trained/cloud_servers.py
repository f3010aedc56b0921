"""Features of cloud servers that several models share: sizes, and what calibration measured on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rackscope.errors import ModelError
from rackscope.models.trained.base import Columns, Floats, Strings
from rackscope.models.trained.model import Described, Input
from rackscope.models.trained.processor_generation import generation_year
from rackscope.models.trained.processor_names import parse_processor_name

if TYPE_CHECKING:
    import polars as pl

TABLES = SERVERS, SCALING = "sparecores-servers", "sparecores-core-scaling"
CALIBRATED = ("vcpus", "threads_per_core", "read_bandwidth_dram_mb_s", "read_bandwidth_l2_mb_s")


def calibrated_servers(frames: Mapping[str, pl.DataFrame], also: tuple[str, ...] = ()) -> pl.DataFrame:
    """Servers that have all of ``CALIBRATED``, the columns ``also``, and stress-ng at one worker and at all of them.

    Adds ``one`` and ``all`` (operations/s at one worker and at as many as there are hardware threads), and leaves out
    what lacks any. Raises ModelError as ``columns`` does.
    """
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    require(frames[SERVERS], SERVERS, ("server", "cpu_model"))
    servers = numbers(frames[SERVERS], SERVERS, (*CALIBRATED, *also))
    points = scaling_points(frames).join(servers.select("server", "vcpus"), on="server")
    one = points.filter(pl.col("workers") == 1).select("server", pl.col("ops_per_second").alias("one"))
    every = points.filter(pl.col("workers") == pl.col("vcpus")).select("server", pl.col("ops_per_second").alias("all"))
    joined = servers.join(one, on="server", how="left").join(every, on="server", how="left")
    return joined.drop_nulls(["server", "cpu_model", *CALIBRATED, *also, "one", "all"]).sort("server")


def scaling_points(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Operations/s of stress-ng over workers: one row a server and number of workers, the median of several."""
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    require(frames[SCALING], SCALING, ("server",))
    points = numbers(frames[SCALING], SCALING, ("workers", "ops_per_second"))
    points = points.drop_nulls(["server", "workers", "ops_per_second"])
    return points.group_by("server", "workers").agg(pl.col("ops_per_second").median()).sort("server", "workers")


def arrays(frame: pl.DataFrame, what: str, tables: tuple[str, ...]) -> Columns:
    """The columns of ``frame``. Raises ModelError where no row has all that the model of ``what`` needs."""
    if frame.is_empty():
        raise ModelError(
            f"no server has all that the model of {what} needs in {' and '.join(tables)}",
            "See the columns and units in docs/models.md.",
        )
    return {name: frame[name].to_numpy() for name in frame.columns}


def processors(servers: Columns) -> tuple[Strings, Floats, Floats]:
    """For each row: the processor, and whether it is Arm's kind and AMD's (1.0 or 0.0)."""
    names = [parse_processor_name(str(text)) for text in servers["cpu_model"]]
    return (
        np.array([name.model for name in names]),
        np.array([name.arm for name in names], dtype=np.float64),
        np.array([name.amd for name in names], dtype=np.float64),
    )


#: The year is one between those of the known where the name does not say it.
GENERATION_COLUMNS = ("year of the generation", "generation known")
_YEAR_UNKNOWN = 2020.0


def generations(servers: Columns) -> list[Floats]:
    """The columns of ``GENERATION_COLUMNS``, one value a server: the second is 1.0 or 0.0."""
    years = [generation_year(str(text)) for text in servers["cpu_model"]]
    return [
        np.array([_YEAR_UNKNOWN if year is None else year for year in years]),
        np.array([year is not None for year in years], dtype=np.float64),
    ]


#: What calibration says of a server; ``operations_per_second`` maps numbers of workers to stress-ng's operations/s.
INPUTS = (
    Input("processor", "its name, as the system shows it"),
    Input("hardware_threads", "of the server (vCPUs)", column="vcpus"),
    Input("threads_per_core", "hardware threads a core: 1 or 2", column="threads_per_core"),
    Input("read_bandwidth_dram_mb_s", "all cores reading DRAM, MB/s", column="read_bandwidth_dram_mb_s"),
    Input(
        "read_bandwidth_l2_mb_s",
        "all cores reading their second-level caches, MB/s",
        column="read_bandwidth_l2_mb_s",
    ),
    Input("operations_per_second", "of stress-ng by number of workers: at 1 and at all hardware threads"),
)

#: Of redis, which some models also ask for.
REDIS_INPUT = Input(
    "redis_requests_per_second",
    "of redis, one request at a time, on all hardware threads",
    column="redis_rps_pipeline1",
)

#: The same for people.
CALIBRATION = "read bandwidth of DRAM and L2, stress-ng at one worker and at all, hardware threads and threads a core"


def described_columns(server: Described, *, at_all: bool = True) -> dict[str, Any]:
    """One row as of ``calibrated_servers``, stress-ng ``at_all`` threads if asked. Raises ModelError."""
    rates = points(server, "operations_per_second")
    wanted = {"one": 1.0} | ({"all": float(str(server["hardware_threads"]))} if at_all else {})
    for workers in wanted.values():
        if workers not in rates:
            raise ModelError(
                f"'operations_per_second' lacks {workers:.0f} worker{'s' * (workers > 1)}",
                "Give it at 1 and at all hardware threads." if at_all else "Give it like {1: 1500.0}.",
            )
    found = {one.column: server[one.name] for one in INPUTS if one.column}
    found |= {name: rates[workers] for name, workers in wanted.items()}
    columns = {name: np.array([value], dtype=np.float64) for name, value in found.items()}
    return {"server": np.array(["described"]), "cpu_model": np.array([str(server["processor"])]), **columns}


def points(server: Described, name: str) -> dict[float, float]:
    """What ``server`` says by number under ``name``. Raises ModelError where that is not several numbers."""
    values = server[name]
    try:
        found = {float(key): float(value) for key, value in dict(values).items()}  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = {}
    if not found or not all(0 < one < float("inf") for one in (*found, *found.values())):
        raise ModelError(f"'{name}' is not numbers by number", "Give it like {1: 1500.0, 16: 21000.0}.")
    return found


def providers(servers: Columns) -> Strings:
    """Who rents the server out: the part of its name before the first slash."""
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


def calibration_features(servers: Columns) -> list[Floats]:
    """Logarithms of size and of what calibration measured, a hardware thread; the processor's kind and generation."""

    def log(name: str) -> Floats:
        return np.asarray(np.log(servers[name].astype(np.float64)))

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
