"""What was measured of the static web server: at light load, and at its best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.model import Described, Input

if TYPE_CHECKING:
    import polars as pl

WEB = "sparecores-web-load"
WEB_INPUT = Input("web_requests_per_second", "one connection a thread, by size of responses")
SIZES = ("1k", "16k", "64k", "256k", "512k")


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


def described_web(server: Described, needed: tuple[str, ...] = ()) -> dict[str, float]:
    """Requests/s by size of responses, of one connection a thread. Raises ModelError where one is no number."""
    values = server["web_requests_per_second"]
    advice = "Give it like {'1k': 250000.0}."
    if not isinstance(values, Mapping) or not values:
        raise ModelError("'web_requests_per_second' is not numbers by size of responses", advice)
    for size in (*needed, *values):
        if size not in SIZES:
            raise ModelError(f"'{size}' is no size of responses", f"Sizes: {', '.join(SIZES)}.")
        value = values.get(size)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ModelError(f"'web_requests_per_second' at {size} is no number above zero", advice)
    return {str(size): float(value) for size, value in values.items()}
