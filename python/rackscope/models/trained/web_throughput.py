"""Most requests/s of a static web server on a processor never seen, by size of the responses.

The logarithm of requests/s a hardware thread over what calibration measured there, as for redis. One light-load point
of that size (one connection a thread) and redis measured there tell what the kernel's network path costs; without them
the error is about twice as large.

Large servers seem to be bound by something that all threads take turns on. The light-load point already meets that
bound, so that with it the *ratio* of the most to it is regressed, which is never below one.
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
from rackscope.models.trained.model import Aim, Described, Input, Model
from rackscope.models.trained.web_load import SIZES, WEB, WEB_INPUT, described_web, web_points

if TYPE_CHECKING:
    import polars as pl

#: Beyond so many hardware threads the server gains less by more, which a smooth curve through all sizes would miss.
_BENDS = (32, 64, 128)
_BENT = (*(f"times over {bend} hardware threads" for bend in _BENDS), f"times over {_BENDS[0]}, of arm")
_ANCHORS = ("redis requests/s a thread", "the same, pipelined", "web requests/s over those of redis")
_REDIS_INPUTS = (
    cloud_servers.REDIS_INPUT,
    Input("redis_pipelined_requests_per_second", "the same, the best pipeline", column="redis_rps_best"),
)
_REDIS = tuple(one.column for one in _REDIS_INPUTS)


class _Web(Regressed):
    #: Chosen by the intervals of quarters of the processors that were held out, other ones than those of the docs.
    caution = 1.0
    lengths = cloud_servers.SEARCHED_LENGTHS


class _WebAnchored(_Web):
    #: The most over all numbers of connections is never below what one of them gave.
    at_least_anchor = True


def _examples(rows: Columns, anchored: bool, rows_of_table: int = 0) -> Examples:
    """``rows`` are one a server and size of responses; ``light`` is needed where they are ``anchored``."""
    threads = rows["vcpus"]
    groups, arm, _ = cloud_servers.processors(rows)
    features = cloud_servers.calibration_features(rows)
    if anchored:
        features += [np.log(rows[column] / threads) for column in _REDIS]
        features.append(np.log(rows["light"] / rows[_REDIS[0]]))
    else:
        bent = [np.maximum(0.0, np.log(threads / bend)) for bend in _BENDS]
        features += [*bent, bent[0] * arm]
    return Examples(
        features=np.column_stack(features),
        columns=(*cloud_servers.CALIBRATION_COLUMNS, *(_ANCHORS if anchored else _BENT)),
        anchor=rows["light"] if anchored else threads,
        target=rows["best"],
        groups=groups,
        parts=np.char.add("responses of ", rows["response_size"].astype(np.str_)),
        splits={"provider": cloud_servers.providers(rows)},
        incomplete=max(0, len(SIZES) * rows_of_table - len(threads)),
    )


def _of_tables(frames: Mapping[str, pl.DataFrame], anchored: bool) -> Examples:
    servers = cloud_servers.calibrated_servers(frames, _REDIS if anchored else ())
    points = web_points(frames, servers).drop_nulls(["light", "best"] if anchored else ["best"])
    rows = points.join(servers, on="server", how="inner", maintain_order="left")
    return _examples(
        cloud_servers.arrays(rows, "the web server", (*cloud_servers.TABLES, WEB)),
        anchored,
        len(frames[cloud_servers.SERVERS]),
    )


def _describe(server: Described, anchored: bool) -> Examples:
    light = described_web(server) if anchored else dict.fromkeys(SIZES, np.nan)
    columns = {name: np.repeat(value, len(light)) for name, value in cloud_servers.described_columns(server).items()}
    columns["response_size"] = np.array(list(light))
    columns["light"] = np.array(list(light.values()))
    columns["best"] = np.full(len(light), np.nan)
    if anchored:
        for one in _REDIS_INPUTS:
            columns[one.column] = np.full(len(light), float(str(server[one.name])))
    return _examples(columns, anchored)


_FROM_CALIBRATION = Model(
    name="web",
    help="most requests/s of a static web server on another processor, from calibration alone",
    unit="requests/s",
    tables=(*cloud_servers.TABLES, WEB),
    measured=cloud_servers.CALIBRATION,
    predicted="the most requests/s over all numbers of connections and threads, responses of 1k to 512k",
    aim=Aim(median=0.08, p90=0.25),
    examples=partial(_of_tables, anchored=False),
    fit=_Web.fit,
    inputs=cloud_servers.INPUTS,
    describe=partial(_describe, anchored=False),
    form=_Web,
)
MODELS = (
    _FROM_CALIBRATION,
    replace(
        _FROM_CALIBRATION,
        name="web-anchored",
        help="most requests/s of a static web server on another processor, from calibration, redis, and one light-load "
        "point of that size measured there",
        measured=f"{cloud_servers.CALIBRATION}; redis requests/s; web requests/s of that size at one connection a "
        "thread",
        examples=partial(_of_tables, anchored=True),
        fit=_WebAnchored.fit,
        inputs=(*cloud_servers.INPUTS, *_REDIS_INPUTS, replace(WEB_INPUT, meaning=f"{WEB_INPUT.meaning} (1k to 512k)")),
        describe=partial(_describe, anchored=True),
        form=_WebAnchored,
    ),
)
