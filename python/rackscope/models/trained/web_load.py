"""What was measured of the static web server: at light load, and at its best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Described

if TYPE_CHECKING:
    import polars as pl

WEB = "sparecores-web-load"
_SIZES = ("1k", "16k", "64k", "256k", "512k")


def web_points(frames: Mapping[str, pl.DataFrame], servers: pl.DataFrame) -> pl.DataFrame:
    """``server``, ``response_size``, ``light``, ``best``: requests/s of the servers that are in ``servers``.

    ``light`` is one connection a server thread and one thread a hardware thread; ``best`` the most over all numbers of
    threads and connections. Raises ModelError as ``columns`` does.
    """
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    require(frames[WEB], WEB, ("server", "response_size"))
    rows = numbers(frames[WEB], WEB, ("server_threads", "connections", "requests_per_second"))
    rows = rows.drop_nulls(["server", "response_size", "server_threads", "connections", "requests_per_second"])
    rows = rows.join(servers.select("server", "vcpus"), on="server")
    light = (pl.col("server_threads") == pl.col("vcpus")) & (pl.col("connections") == pl.col("vcpus"))
    rate = pl.col("requests_per_second")
    return (
        rows.group_by("server", "response_size")
        .agg(rate.filter(light).median().alias("light"), rate.max().alias("best"))
        .with_columns(pl.col("response_size").cast(pl.String))
        .sort("server", "response_size")
    )


def described_points(frames: Mapping[str, pl.DataFrame], servers: pl.DataFrame) -> pl.DataFrame:
    """As ``web_points`` for the described server: ``best``, which is asked, is NaN; ``light`` of the given sizes.

    Without a table of light load, every size is asked. Raises ModelError as ``columns`` does.
    """
    import polars as pl

    unknown = pl.lit(float("nan"))
    if WEB in frames:
        return web_points(frames, servers).drop_nulls("light").with_columns(unknown.alias("best"))
    sizes = pl.DataFrame({"response_size": sorted(_SIZES)})
    return servers.select("server").join(sizes, how="cross").with_columns(unknown.alias("light"), unknown.alias("best"))


def described_web(server: Described) -> pl.DataFrame:
    """The table of the one server that is described, of one connection a thread. Raises ModelError."""
    import polars as pl

    values = server["web_requests_per_second"]
    if not isinstance(values, Mapping) or not values:
        raise ModelError(
            "'web_requests_per_second' is not numbers by size of answers", "Give it like {'1k': 250000.0}."
        )
    return pl.DataFrame(
        {
            "server": ["described"] * len(values),
            "response_size": [str(size) for size in values],
            "server_threads": [server["hardware_threads"]] * len(values),
            "connections": [server["hardware_threads"]] * len(values),
            "requests_per_second": list(values.values()),
        }
    )
