"""Requests/s of redis on a server whose processor was never seen, anchored on what calibration measures there.

The logarithm of requests/s a hardware thread, over size, read bandwidths and stress-ng a thread. With light-load points
of a static web server beside these, what the kernel's network path costs on that server is known as well, and the error
is less: redis without pipelining is mostly that path. The best pipeline is then also anchored on redis without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Aim, Described, Examples, Fitted, Input, Model
from rackscope.models.trained.cloud_servers import CALIBRATION, INPUTS, SCALING, SERVERS, described_tables
from rackscope.models.trained.web_load import WEB, described_web

if TYPE_CHECKING:
    import polars as pl

_ANSWERS = {"pipelined, best": "redis_rps_best", "one request at a time": "redis_rps_pipeline1"}
#: Sizes of the web server's answers whose light-load points serve as anchors.
_ANCHORS = ("1k", "16k", "256k")
#: Chosen by the intervals of quarters of the processors that were held out, other ones than those of docs/models.md.
_CAUTION, _CAUTION_ANCHORED = 0.75, 0.25


def _examples(
    frames: Mapping[str, pl.DataFrame], with_web: bool, known: tuple[str, ...] = tuple(_ANSWERS.values())
) -> Examples:
    """``known`` are the answers that the tables have: of a described server, at most the anchor."""
    import numpy as np
    import polars as pl

    from rackscope.models.trained.cloud_servers import (
        CALIBRATION_COLUMNS,
        calibrated_servers,
        calibration_features,
        processors,
        providers,
        with_unknown,
    )
    from rackscope.models.trained.web_load import web_points

    servers = with_unknown(calibrated_servers(frames, known), _ANSWERS.values())
    if with_web:
        points = web_points(frames, servers).drop_nulls("light")
        for size in _ANCHORS:
            light = points.filter(pl.col("response_size") == size).select(
                "server", pl.col("light").alias(f"web {size}")
            )
            servers = servers.join(light, on="server", how="inner", maintain_order="left")
    if servers.is_empty():
        raise ModelError(
            f"no server has all that the model of redis needs in {SERVERS} and {SCALING}",
            "See the columns and units in docs/models.md.",
        )
    threads = servers["vcpus"].to_numpy()
    features = calibration_features(servers)
    if with_web:
        features += [np.log(servers[f"web {size}"].to_numpy() / threads) for size in _ANCHORS]
    names: tuple[str, ...] = CALIBRATION_COLUMNS
    if with_web:
        names += (*(f"web requests/s a thread, {size}" for size in _ANCHORS), "redis requests/s a thread")
    times = len(_ANSWERS)
    columns = np.tile(np.column_stack(features), (times, 1))
    if with_web:
        # What is measured without pipelining is not known where that itself is predicted: a column that never changes.
        plain = np.log(servers["redis_rps_pipeline1"].to_numpy() / threads)
        anchors = np.concatenate([plain * (column != "redis_rps_pipeline1") for column in _ANSWERS.values()])
        columns = np.column_stack([columns, anchors])
    groups, _, _ = processors(servers)
    return Examples(
        features=columns,
        columns=names,
        anchor=np.tile(threads, times),
        target=np.concatenate([servers[column].to_numpy() for column in _ANSWERS.values()]),
        groups=np.tile(groups, times),
        parts=np.repeat(np.array(list(_ANSWERS)), len(servers)),
        splits={"provider": np.tile(providers(servers), times)},
        incomplete=len(frames[SERVERS]) - len(servers),
    )


def _from_calibration(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, with_web=False)


def _with_web(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, with_web=True)


def _fit(examples: Examples, like: Fitted | None = None) -> Fitted:
    from rackscope.models.trained.cloud_servers import CALIBRATION_COLUMNS, SEARCHED_LENGTHS
    from rackscope.models.trained.regressed import fit_regressed

    anchored = len(examples.columns) > len(CALIBRATION_COLUMNS)
    caution = _CAUTION_ANCHORED if anchored else _CAUTION
    return fit_regressed(examples, like, caution=caution, lengths=SEARCHED_LENGTHS)


def _describe(server: Described) -> Examples:
    return _examples(described_tables(server), with_web=False, known=())


def _describe_anchored(server: Described) -> Examples:
    tables = described_tables(server, redis_rps_pipeline1=server["redis_requests_per_second"])
    return _asked({**tables, WEB: described_web(server)})


def _asked(tables: Mapping[str, pl.DataFrame]) -> Examples:
    """What is measured without pipelining is given, and no target."""
    import numpy as np

    examples = _examples(tables, with_web=True, known=("redis_rps_pipeline1",))
    return replace(examples, target=np.full(len(examples), np.nan))


_INPUTS = (
    *INPUTS,
    Input("redis_requests_per_second", "of redis, one request at a time, on all hardware threads"),
    Input("web_requests_per_second", f"by size of answers ({', '.join(_ANCHORS)}): one connection a thread"),
)
_PREDICTED = "requests/s of redis on all hardware threads: one request at a time, and the best pipeline"

MODELS = (
    Model(
        name="redis",
        help="requests/s of redis on another processor, from calibration alone",
        unit="requests/s",
        tables=(SERVERS, SCALING),
        measured=CALIBRATION,
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_from_calibration,
        fit=_fit,
        inputs=INPUTS,
        describe=_describe,
    ),
    Model(
        name="redis-anchored",
        help="the same, with light-load points of a web server and of redis measured there",
        unit="requests/s",
        tables=(SERVERS, SCALING, WEB),
        measured=f"{CALIBRATION}; web requests/s of 1k, 16k and 256k at one connection a thread; "
        "for the best pipeline also redis at one request at a time",
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_with_web,
        fit=_fit,
        inputs=_INPUTS,
        describe=_describe_anchored,
    ),
)
