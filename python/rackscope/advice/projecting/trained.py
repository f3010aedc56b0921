"""Models trained on tables of servers, where they know more of a server than elasticities and data sheets do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from rackscope.advice.measured_runs import Measurements
from rackscope.errors import ModelError, RackscopeError
from rackscope.models.catalogue import Server
from rackscope.models.estimates import Prediction
from rackscope.models.rated_power import RatedPowerModel
from rackscope.models.trained.ask import TrainedModel, train
from rackscope.models.trained.redis_elsewhere import Ratio, RedisElsewhere, Side, fit_redis_elsewhere
from rackscope.models.trained.shipped import REDIS_ELSEWHERE, read_fit, restore, restore_redis_elsewhere
from rackscope.models.uncertain import Uncertain

#: Systems of which the tables have throughput.
_SYSTEMS = ("redis",)
_FULL, _IDLE = "full-load-watts", "idle-watts"
#: The tables that are read; of others a folder may hold what it likes.
TABLES = ("sparecores-servers", "specpower-servers")


@dataclass(frozen=True)
class ModelledWatts:
    """Watts idle and full that a data sheet's figures suggest; what they stand on and how they were obtained."""

    rated: RatedPowerModel
    basis: str
    stands_on: str


@dataclass
class Trained:
    """Models of the tables in ``folder``, fitted when first asked; without ``frames`` the fits of the package."""

    folder: str = "the tables of docs/models.md (a fit that rackscope carries)"
    frames: Mapping[str, pl.DataFrame] | None = None

    def ratio(self, measured: Measurements, server: Server, threads: int, *, way: str, pipelined: bool) -> Ratio:
        """Throughput a hardware thread, there over here, by one of the ``ways``. Raises ModelError with the reason."""
        if measured.system not in _SYSTEMS:
            raise ModelError(
                f"the tables have no {measured.system}, only {' and '.join(_SYSTEMS)}",
                "The throughput of another system depends on other resources, so the tables do not apply.",
            )
        part = "pipelined, best" if pipelined else "one request at a time"
        source, target = _here(measured), _there(server, threads)
        asked = self._redis.by_processor if way == "by processor" else self._redis.by_calibration
        return asked(part, source, target)

    @cached_property
    def _redis(self) -> RedisElsewhere:
        if self.frames is not None:
            return fit_redis_elsewhere(self.frames)
        return restore_redis_elsewhere(read_fit(REDIS_ELSEWHERE))

    @cached_property
    def _watts(self) -> dict[str, TrainedModel]:
        frames = self.frames
        return {name: restore(read_fit(name)) if frames is None else train(name, frames) for name in (_IDLE, _FULL)}

    def watts(self, server: Server) -> ModelledWatts:
        """Modelled watts of a server whose data sheet is known. Raises ModelError with what is missing."""
        known = _data_sheet(server)
        answers: dict[str, Prediction] = {}
        for name, model in self._watts.items():
            asked = {one.name for one in model.model.inputs}
            (answers[name],) = model.predict({key: value for key, value in known.items() if key in asked}).values()
        idle, full = answers[_IDLE], answers[_FULL]
        if idle.value >= full.value:
            raise ModelError(
                f"{server.name} is modelled to draw {idle.value:.0f} W idle and {full.value:.0f} W at full load",
                "Write idle_watts and full_watts.",
            )
        beyond = ""
        if idle.extrapolated or full.extrapolated:
            beyond = ", outside of the servers that were fitted on"
        return ModelledWatts(
            RatedPowerModel(_lognormal(idle), _lognormal(full)),
            f"idle and full watts modelled from the data sheet ({full.basis}); between them ",
            f"modelled idle {idle.value:.0f} W ({idle.low:.0f} to {idle.high:.0f}) and full {full.value:.0f} W "
            f"({full.low:.0f} to {full.high:.0f}), by the data sheet of {server.name} ({server.source}){beyond}; "
            f"models: {_IDLE}, {_FULL} fitted on {self.folder}, rated_power",
        )


def _here(measured: Measurements) -> Side:
    source = measured.source
    return Side(
        "this host",
        source.processor,
        source.cores,
        None if source.physical_cores is None else source.cores / source.physical_cores,
        source.ceilings.get("dram_read_bytes_per_second"),
        source.last_level_cache_bytes,
    )


def _there(server: Server, threads: int) -> Side:
    bandwidth = server.ceilings.get("dram_read_bytes_per_second")
    return Side(
        server.name,
        server.processor,
        threads,
        None if server.cores is None or server.threads is None else server.threads / server.cores,
        None if bandwidth is None else bandwidth.middle,
        None if server.last_level_cache_bytes is None else float(server.last_level_cache_bytes),
    )


def _data_sheet(server: Server) -> dict[str, float | str]:
    """In the units of the tables. Raises ModelError for the keys that are missing."""
    needed = {
        "processor": server.processor or None,
        "chips": server.chips,
        "cores": server.cores,
        "frequency_hertz": server.frequency_hertz,
        "memory_bytes": server.memory_bytes,
        "year": server.year,
    }
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise ModelError(
            f"{server.name} has no {', '.join(missing)}", "Write what its data sheet says, and its watts are modelled."
        )
    assert server.frequency_hertz and server.memory_bytes and server.chips and server.cores and server.year
    known: dict[str, float | str] = {
        "processor": server.processor,
        "chips": server.chips,
        "cores": server.cores,
        "mhz": server.frequency_hertz.middle / 1e6,
        # Memory is sold in GB of 2^30 bytes.
        "memory_gb": server.memory_bytes / 2**30,
        "year": server.year,
    }
    if server.threads is not None:
        known["threads_per_core"] = max(1.0, server.threads / server.cores)
    if server.thermal_design_watts is not None:
        known["thermal_design_watts"] = server.thermal_design_watts.middle
    return known


def _lognormal(prediction: Prediction) -> Uncertain:
    """As wide as the wider end of the interval."""
    return Uncertain.lognormal(
        prediction.value, max(prediction.value / prediction.low, prediction.high / prediction.value)
    )


def why_not(error: RackscopeError) -> str:
    """A reason as part of a sentence: without its final stop."""
    return str(error).removesuffix(".")
