"""Most requests/s of a static web server on a processor never seen, by size of the answers.

The logarithm of requests/s a hardware thread over what calibration measured there, as for redis. One light-load point
of that size (one connection a thread) and redis measured there tell what the kernel's network path costs; without them
the error is about twice as large, and is stated so.

What large servers answer seems bounded by something that all threads take turns on, in requests/s of the whole
server whatever the number of threads, and falls with more of these: Arm's lose most of it beyond 48 threads, Intel's
beyond 128. The light-load point already meets that bound, so that with it what is regressed is the *ratio* of the most
to it, which is never below one: a server that is bound gains nothing from more connections, one that is not up to
three times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rackscope.errors import ModelError
from rackscope.models.trained.base import Aim, Described, Examples, Fitted, Input, Model, Predictions
from rackscope.models.trained.cloud_servers import CALIBRATION, INPUTS, SCALING, SERVERS, described_tables
from rackscope.models.trained.web_load import WEB, described_web

if TYPE_CHECKING:
    import polars as pl

#: Chosen by the intervals of quarters of the processors that were held out, other ones than those of docs/models.md.
_CAUTION = 1.0
#: Beyond so many hardware threads the server gains less by more, which a smooth curve through all sizes would miss.
_BENDS = (32, 64, 128)
_BENT = (*(f"times over {bend} hardware threads" for bend in _BENDS), f"times over {_BENDS[0]}, of arm")
_ANCHORS = ("redis requests/s a thread", "the same, pipelined", "web requests/s over those of redis")
_REDIS = ("redis_rps_pipeline1", "redis_rps_best")


def _examples(frames: Mapping[str, pl.DataFrame], anchored: bool, described: bool = False) -> Examples:
    import numpy as np

    from rackscope.models.trained.cloud_servers import (
        CALIBRATION_COLUMNS,
        calibrated_servers,
        calibration_features,
        processors,
        providers,
    )
    from rackscope.models.trained.web_load import described_points, web_points

    servers = calibrated_servers(frames, _REDIS if anchored else ())
    if described:
        points = described_points(frames, servers)
    else:
        points = web_points(frames, servers).drop_nulls(["light", "best"] if anchored else ["best"])
    rows = points.join(servers, on="server", how="inner", maintain_order="left")
    if rows.is_empty():
        raise ModelError(
            f"no server has all that the model of the web server needs in {SERVERS}, {SCALING} and {WEB}",
            "See the columns and units in docs/models.md.",
        )
    threads = rows["vcpus"].to_numpy()
    groups, arm, _ = processors(rows)
    features = calibration_features(rows)
    if anchored:
        features += [np.log(rows[column].to_numpy() / threads) for column in _REDIS]
        features.append(np.log(rows["light"].to_numpy() / rows[_REDIS[0]].to_numpy()))
    else:
        bent = [np.maximum(0.0, np.log(threads / bend)) for bend in _BENDS]
        features += [*bent, bent[0] * arm]
    return Examples(
        features=np.column_stack(features),
        columns=(*CALIBRATION_COLUMNS, *(_ANCHORS if anchored else _BENT)),
        anchor=rows["light"].to_numpy() if anchored else threads,
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


@dataclass(frozen=True)
class _NeverBelowLight:
    """The most over all numbers of connections is never below what one of them gave: the anchor."""

    ratio: Fitted

    def predict(self, examples: Examples) -> Predictions:
        import numpy as np

        found = self.ratio.predict(examples)
        estimate, low, high = (np.maximum(ends, examples.anchor) for ends in (found.estimate, found.low, found.high))
        return Predictions(estimate, low, high, found.how)


def _fit(examples: Examples, like: Fitted | None = None) -> Fitted:
    from rackscope.models.trained.cloud_servers import SEARCHED_LENGTHS
    from rackscope.models.trained.regressed import fit_regressed

    anchored = _ANCHORS[0] in examples.columns
    if isinstance(like, _NeverBelowLight):
        like = like.ratio
    fitted = fit_regressed(examples, like, caution=_CAUTION, lengths=SEARCHED_LENGTHS)
    return _NeverBelowLight(fitted) if anchored else fitted


def _describe(server: Described) -> Examples:
    return _examples(described_tables(server), anchored=False, described=True)


def _describe_anchored(server: Described) -> Examples:
    redis: dict[str, Any] = {column: server[name] for column, name in zip(_REDIS, _REDIS_INPUTS, strict=True)}
    return _examples({**described_tables(server, **redis), WEB: described_web(server)}, anchored=True, described=True)


_REDIS_INPUTS = ("redis_requests_per_second", "redis_pipelined_requests_per_second")
_INPUTS = (
    *INPUTS,
    Input(_REDIS_INPUTS[0], "of redis, one request at a time, on all hardware threads"),
    Input(_REDIS_INPUTS[1], "the same, the best pipeline"),
    Input("web_requests_per_second", "by size of answers (1k to 512k): one connection a thread"),
)
_PREDICTED = "the most requests/s over all numbers of connections and threads, answers of 1k to 512k"

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
        fit=_fit,
        inputs=INPUTS,
        describe=_describe,
    ),
    Model(
        name="web-anchored",
        help="the same, with redis and one light-load point of that size measured there",
        unit="requests/s",
        tables=(SERVERS, SCALING, WEB),
        measured=f"{CALIBRATION}; redis requests/s; web requests/s of that size at one connection a thread",
        predicted=_PREDICTED,
        aim=Aim(median=0.08, p90=0.25),
        examples=_anchored,
        fit=_fit,
        inputs=_INPUTS,
        describe=_describe_anchored,
    ),
)
