"""Most requests/s of a static web server on a processor never seen, by size of the responses.

The logarithm of requests/s a hardware thread over what calibration measured there, as for redis. One light-load point
of that size (one connection a thread) and redis measured there tell what the kernel's network path costs; without them
the error is about twice as large, and is stated so.

What bounds large servers seems to be something that all threads take turns on, in requests/s of the whole server
whatever the number of threads, and falls with more of these: Arm's lose most of it beyond 48 threads, Intel's beyond
128. The light-load point already meets that bound, so that with it what is regressed is the *ratio* of the most to it,
which is never below one: a server that is bound gains nothing from more connections, one that is not up to three times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rackscope.models.trained.base import Columns, Examples
from rackscope.models.trained.cloud_servers import (
    CALIBRATION,
    CALIBRATION_COLUMNS,
    INPUTS,
    SCALING,
    SEARCHED_LENGTHS,
    SERVERS,
    arrays,
    calibrated_servers,
    calibration_features,
    described_columns,
    processors,
    providers,
)
from rackscope.models.trained.fit import Regressed
from rackscope.models.trained.model import Aim, Described, Input, Model
from rackscope.models.trained.web_load import SIZES, WEB, described_web, web_points

if TYPE_CHECKING:
    import polars as pl

#: Beyond so many hardware threads the server gains less by more, which a smooth curve through all sizes would miss.
_BENDS = (32, 64, 128)
_BENT = (*(f"times over {bend} hardware threads" for bend in _BENDS), f"times over {_BENDS[0]}, of arm")
_ANCHORS = ("redis requests/s a thread", "the same, pipelined", "web requests/s over those of redis")
_REDIS = ("redis_rps_pipeline1", "redis_rps_best")


class _Web(Regressed):
    #: Chosen by the intervals of quarters of the processors that were held out, other ones than those of the docs.
    caution = 1.0
    lengths = SEARCHED_LENGTHS


class _WebAnchored(_Web):
    #: The most over all numbers of connections is never below what one of them gave.
    at_least_anchor = True


def _examples(rows: Columns, anchored: bool, rows_of_table: int = 0) -> Examples:
    """``rows`` are one a server and size of responses; ``light`` is needed where they are ``anchored``."""
    threads = rows["vcpus"]
    groups, arm, _ = processors(rows)
    features = calibration_features(rows)
    if anchored:
        features += [np.log(rows[column] / threads) for column in _REDIS]
        features.append(np.log(rows["light"] / rows[_REDIS[0]]))
    else:
        bent = [np.maximum(0.0, np.log(threads / bend)) for bend in _BENDS]
        features += [*bent, bent[0] * arm]
    return Examples(
        features=np.column_stack(features),
        columns=(*CALIBRATION_COLUMNS, *(_ANCHORS if anchored else _BENT)),
        anchor=rows["light"] if anchored else threads,
        target=rows["best"],
        groups=groups,
        parts=np.char.add("responses of ", rows["response_size"].astype(np.str_)),
        splits={"provider": providers(rows)},
        incomplete=max(0, len(SIZES) * rows_of_table - len(threads)),
    )


def _of_tables(frames: Mapping[str, pl.DataFrame], anchored: bool) -> Examples:
    servers = calibrated_servers(frames, _REDIS if anchored else ())
    points = web_points(frames, servers).drop_nulls(["light", "best"] if anchored else ["best"])
    rows = points.join(servers, on="server", how="inner", maintain_order="left")
    return _examples(arrays(rows, "the web server", (SERVERS, SCALING, WEB)), anchored, len(frames[SERVERS]))


def _from_calibration(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _of_tables(frames, anchored=False)


def _anchored(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _of_tables(frames, anchored=True)


def _of_description(server: Described, light: Mapping[str, float], anchored: bool) -> Examples:
    columns = {name: np.repeat(value, len(light)) for name, value in described_columns(server).items()}
    columns["response_size"] = np.array(list(light))
    columns["light"] = np.array(list(light.values()))
    columns["best"] = np.full(len(light), np.nan)
    if anchored:
        for column, name in zip(_REDIS, _REDIS_INPUTS, strict=True):
            columns[column] = np.full(len(light), float(str(server[name])))
    return _examples(columns, anchored)


def _describe(server: Described) -> Examples:
    return _of_description(server, dict.fromkeys(SIZES, float("nan")), anchored=False)


def _describe_anchored(server: Described) -> Examples:
    return _of_description(server, described_web(server), anchored=True)


_REDIS_INPUTS = ("redis_requests_per_second", "redis_pipelined_requests_per_second")
_INPUTS = (
    *INPUTS,
    Input(_REDIS_INPUTS[0], "of redis, one request at a time, on all hardware threads", column=_REDIS[0]),
    Input(_REDIS_INPUTS[1], "the same, the best pipeline", column=_REDIS[1]),
    Input("web_requests_per_second", "by size of responses (1k to 512k): one connection a thread"),
)
_PREDICTED = "the most requests/s over all numbers of connections and threads, responses of 1k to 512k"

MODELS = (
    Model(
        name="web",
        help="most requests/s of a static web server on another processor, from calibration alone",
        unit="requests/s",
        tables=(SERVERS, SCALING, WEB),
        measured=CALIBRATION,
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_from_calibration,
        fit=_Web.fit,
        inputs=INPUTS,
        describe=_describe,
        form=_Web,
    ),
    Model(
        name="web-anchored",
        help="most requests/s of a static web server on another processor, from calibration, redis, and one light-load "
        "point of that size measured there",
        unit="requests/s",
        tables=(SERVERS, SCALING, WEB),
        measured=f"{CALIBRATION}; redis requests/s; web requests/s of that size at one connection a thread",
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_anchored,
        fit=_WebAnchored.fit,
        inputs=_INPUTS,
        describe=_describe_anchored,
        form=_WebAnchored,
    ),
)
