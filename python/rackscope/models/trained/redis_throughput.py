"""Requests/s of redis on a server whose processor was never seen, anchored on what calibration measures there.

The logarithm of requests/s a hardware thread, over size, read bandwidths and stress-ng a thread. With light-load points
of a static web server beside these, what the kernel's network path costs on that server is known as well, and the error
is less: redis without pipelining is mostly that path. The best pipeline is then also anchored on redis without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rackscope.models.trained import cloud_servers
from rackscope.models.trained.base import Columns, Examples
from rackscope.models.trained.fit import Regressed
from rackscope.models.trained.model import Aim, Described, Model
from rackscope.models.trained.web_load import WEB, WEB_INPUT, described_web, web_points

if TYPE_CHECKING:
    import polars as pl

#: Of the tables: by part, the column that has it.
PARTS = {"pipelined, best": "redis_rps_best", "one request at a time": "redis_rps_pipeline1"}
_ONE_AT_A_TIME = "redis_rps_pipeline1"
#: Sizes of the web server's responses whose light-load points serve as anchors.
_ANCHORS = ("1k", "16k", "256k")


class _Redis(Regressed):
    #: Chosen by the intervals of quarters of the processors that were held out, other ones than those of the docs.
    caution = 0.75
    lengths = cloud_servers.SEARCHED_LENGTHS


class _RedisAnchored(_Redis):
    caution = 0.25


def _examples(servers: Columns, anchored: bool, rows_of_table: int = 0) -> Examples:
    """A described server has no throughput, or at most that of one request at a time."""
    threads, count = servers["vcpus"], len(servers["vcpus"])
    features = cloud_servers.calibration_features(servers)
    names: tuple[str, ...] = cloud_servers.CALIBRATION_COLUMNS
    if anchored:
        features += [np.log(servers[f"web {size}"] / threads) for size in _ANCHORS]
        names += (*(f"web requests/s a thread, {size}" for size in _ANCHORS), "redis requests/s a thread")
    times = len(PARTS)
    columns = np.tile(np.column_stack(features), (times, 1))
    if anchored:
        # What is measured without pipelining is not known where that itself is predicted: a column that never changes.
        plain = np.log(servers[_ONE_AT_A_TIME] / threads)
        anchors = np.concatenate([plain * (column != _ONE_AT_A_TIME) for column in PARTS.values()])
        columns = np.column_stack([columns, anchors])
    groups, _, _ = cloud_servers.processors(servers)
    asked = np.full(count, np.nan)
    return Examples(
        features=columns,
        columns=names,
        anchor=np.tile(threads, times),
        target=np.concatenate([servers[column] if rows_of_table else asked for column in PARTS.values()]),
        groups=np.tile(groups, times),
        parts=np.repeat(np.array(list(PARTS)), count),
        splits={"provider": np.tile(cloud_servers.providers(servers), times)},
        incomplete=max(0, rows_of_table - count),
    )


def _of_tables(frames: Mapping[str, pl.DataFrame], anchored: bool) -> Examples:
    import polars as pl

    servers = cloud_servers.calibrated_servers(frames, tuple(PARTS.values()))
    if anchored:
        light = web_points(frames, servers).drop_nulls("light")
        for size in _ANCHORS:
            of_size = light.filter(pl.col("response_size") == size)
            of_size = of_size.select("server", pl.col("light").alias(f"web {size}"))
            servers = servers.join(of_size, on="server", how="inner", maintain_order="left")
    tables = (*cloud_servers.TABLES, WEB) if anchored else cloud_servers.TABLES
    return _examples(
        cloud_servers.arrays(servers, "redis", tables), anchored, rows_of_table=len(frames[cloud_servers.SERVERS])
    )


def _describe(server: Described, anchored: bool) -> Examples:
    columns = cloud_servers.described_columns(server)
    if anchored:
        columns[_ONE_AT_A_TIME] = np.array([server["redis_requests_per_second"]], dtype=np.float64)
        light = described_web(server, _ANCHORS)
        columns |= {f"web {size}": np.array([light[size]]) for size in _ANCHORS}
    return _examples(columns, anchored)


_FROM_CALIBRATION = Model(
    name="redis",
    help="requests/s of redis on another processor, from calibration alone",
    unit="requests/s",
    tables=cloud_servers.TABLES,
    measured=cloud_servers.CALIBRATION,
    predicted="requests/s of redis on all hardware threads: one request at a time, and the best pipeline",
    aim=Aim(median=0.08, p90=0.25),
    examples=partial(_of_tables, anchored=False),
    fit=_Redis.fit,
    inputs=cloud_servers.INPUTS,
    describe=partial(_describe, anchored=False),
    form=_Redis,
)
MODELS = (
    _FROM_CALIBRATION,
    replace(
        _FROM_CALIBRATION,
        name="redis-anchored",
        help="requests/s of redis on another processor, from calibration and light-load points of a web server and of "
        "redis measured there",
        tables=(*cloud_servers.TABLES, WEB),
        measured=f"{cloud_servers.CALIBRATION}; web requests/s of 1k, 16k and 256k at one connection a thread; "
        "for the best pipeline also redis at one request at a time",
        examples=partial(_of_tables, anchored=True),
        fit=_RedisAnchored.fit,
        inputs=(
            *cloud_servers.INPUTS,
            cloud_servers.REDIS_INPUT,
            replace(WEB_INPUT, meaning=f"{WEB_INPUT.meaning} ({', '.join(_ANCHORS)})"),
        ),
        describe=partial(_describe, anchored=True),
        form=_RedisAnchored,
    ),
)
