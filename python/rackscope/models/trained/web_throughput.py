"""Most requests/s of a static web server on a processor never seen, by size of the answers.

The logarithm of requests/s a hardware thread over what calibration measured there, as for redis. One light-load point
of that size (one connection a thread) and redis measured there tell what the kernel's network path costs; without them
the error is about twice as large, and is stated so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rackscope.models.trained.base import Aim, Examples, Fitted, Model
from rackscope.models.trained.cloud_servers import SCALING, SERVERS
from rackscope.models.trained.web_load import WEB

if TYPE_CHECKING:
    import polars as pl

_REDIS = ("redis_rps_pipeline1", "redis_rps_best")


def _examples(frames: Mapping[str, pl.DataFrame], anchored: bool) -> Examples:
    import numpy as np

    from rackscope.errors import ModelError
    from rackscope.models.trained.cloud_servers import calibrated_servers, calibration_features, processors, providers
    from rackscope.models.trained.web_load import web_points

    servers = calibrated_servers(frames, _REDIS if anchored else ())
    points = web_points(frames, servers).drop_nulls(["light", "best"] if anchored else ["best"])
    rows = points.join(servers, on="server", how="inner", maintain_order="left")
    if rows.is_empty():
        raise ModelError(
            f"no server has all that the model of the web server needs in {SERVERS}, {SCALING} and {WEB}",
            "See the columns and units in docs/models.md.",
        )
    threads = rows["vcpus"].to_numpy()
    features = calibration_features(rows)
    if anchored:
        features += [np.log(rows[column].to_numpy() / threads) for column in (*_REDIS, "light")]
    groups, _, _ = processors(rows)
    return Examples(
        features=np.column_stack(features),
        anchor=threads,
        target=rows["best"].to_numpy(),
        groups=groups,
        parts=np.char.add("answers of ", rows["response_size"].to_numpy().astype(np.str_)),
        splits={"provider": providers(rows)},
        incomplete=5 * len(frames[SERVERS]) - len(rows) if len(frames[SERVERS]) * 5 > len(rows) else 0,
    )


def _from_calibration(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, anchored=False)


def _anchored(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, anchored=True)


def _fit(examples: Examples, like: Fitted | None = None) -> Fitted:
    from rackscope.models.trained.regressed import fit_regressed

    return fit_regressed(examples, like)


_CALIBRATION = "read bandwidth of DRAM and L2, stress-ng at one worker and at all, hardware threads and threads a core"
_PREDICTED = "the most requests/s over all numbers of connections and threads, answers of 1k to 512k"

MODELS = (
    Model(
        name="web",
        help="most requests/s of a static web server on another processor, from calibration alone",
        unit="requests/s",
        tables=(SERVERS, SCALING, WEB),
        measured=_CALIBRATION,
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_from_calibration,
        fit=_fit,
    ),
    Model(
        name="web-anchored",
        help="the same, with redis and one light-load point of that size measured there",
        unit="requests/s",
        tables=(SERVERS, SCALING, WEB),
        measured=f"{_CALIBRATION}; redis requests/s; web requests/s of that size at one connection a thread",
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_anchored,
        fit=_fit,
    ),
)
