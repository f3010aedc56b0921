"""Watts on a server that is not here, and what is done for each of them and for each unit of currency."""

from __future__ import annotations

import numpy as np

from rackscope.advice.measured_runs import Measurements, Point
from rackscope.advice.projecting.answers import DRAWS, Answer, Projected, draws_of
from rackscope.advice.projecting.throughput import Throughput, is_same_processor, threads_of
from rackscope.advice.projecting.trained import ModelledWatts, Trained
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Server, ServerFile, Site
from rackscope.models.cost import SECONDS_PER_YEAR, Candidate, draw_costs
from rackscope.models.estimates import ends_of, from_draws
from rackscope.models.monotone import MonotoneModel, fit_power_over_load
from rackscope.models.rated_power import BASIS as RATED_BASIS
from rackscope.models.rated_power import RatedPowerModel
from rackscope.models.uncertain import Array, Uncertain

#: Two copies of one server differ by so much in watts, 90 % of them. Ours.
_COPY = 1.05


def rated_power(server: Server) -> RatedPowerModel | None:
    """From what the catalogue says that it draws."""
    if server.idle_watts is None or server.full_watts is None:
        return None
    return RatedPowerModel(server.idle_watts, server.full_watts)


def modelled_watts(server: Server, trained: Trained | None) -> tuple[ModelledWatts | None, str]:
    """Where the catalogue states none, what a model of data sheets says of its watts, or why that says nothing."""
    if trained is None or rated_power(server) is not None:
        return None, ""
    try:
        return trained.watts(server), ""
    except RackscopeError as error:
        return None, f"They cannot be modelled either: {error}"


def _metered(measured: Measurements) -> list[Point]:
    return [one for one in (*measured.loads, *measured.closed) if one.watts is not None]


def metered_power(measured: Measurements) -> MonotoneModel:
    """Over the load of the host's cores, from runs that were metered. Raises RackscopeError for too few."""
    points = _metered(measured)
    if not points:
        raise RackscopeError("no run has a meter's column (power_watts, energy_joules_total)", "Measure with a meter.")
    most = {one.cores: one.throughput for one in measured.closed}
    loads, watts = [], []
    for one in points:
        if one.cores in most:
            loads.append(min(1.0, one.throughput / most[one.cores]) * one.cores / measured.source.cores)
            watts.append(one.watts or 0.0)
    return fit_power_over_load(loads, watts)


def draw_watts(
    measured: Measurements,
    server: Server,
    found: Throughput,
    busy: Array,
    modelled: ModelledWatts | None,
    not_modelled: str,
    *,
    flat_out: bool,
) -> tuple[Array, str, str, str]:
    """Watts draw by draw where ``busy`` (0 to 1) of its cores are, and what of; RackscopeError where not known."""
    model = rated_power(server)
    if model is not None:
        return (
            model.draw(busy),
            RATED_BASIS,
            f"idle_watts and full_watts of {server.name} ({server.source}); model: rated_power, modelled",
            "A meter there would give the true value; rated watts are often those of a server with other parts.",
        )
    if not is_same_processor(measured, server):
        if modelled is None:
            raise RackscopeError(
                f"{server.name} has no idle_watts and full_watts, so its power is not known",
                f"Write both; a maker's configurator or SPECpower has them. {not_modelled}",
            )
        return (
            modelled.rated.draw(busy),
            modelled.basis + RATED_BASIS,
            modelled.stands_on,
            "Write idle_watts and full_watts: a meter or the maker's configurator is more certain than a model.",
        )
    metered = _metered(measured)
    full = [one.watts for one in measured.closed if one.watts is not None and one.cores == found.cores]
    runs = ", ".join(dict.fromkeys(one.run for one in metered))
    scope = next((one.scope for one in metered), "")
    changes = f"The meter covers {scope or 'the host'} of this host only; another server of this kind differs."
    try:
        prediction = metered_power(measured).predict(float(np.median(busy)))
        drawn, basis = draws_of(prediction, "metered watts"), prediction.basis
        name = "; model: power_over_load, modelled"
    except RackscopeError:
        if not full or not found.unchanged or not flat_out:
            raise
        # The host itself at full load: that was metered.
        drawn = Uncertain.lognormal(float(np.mean(full)), _COPY).draw("metered watts", DRAWS, 1)
        basis, name = "metered here, and 5 % for the next time", ", metered"
    return drawn, basis, f"{runs}{name}", changes


def power_answers(
    measured: Measurements,
    servers: ServerFile,
    server: Server,
    found: Throughput,
    rate: float | None,
    modelled: ModelledWatts | None,
    not_modelled: str,
) -> tuple[list[Answer], Projected]:
    """Watts, operations a joule, and per unit of currency; each refused in a line of its own."""
    threads = threads_of(server, measured)
    # Asked for more than it may do, it does what it can.
    served = found.drawn if rate is None else np.minimum(found.drawn, rate)
    busy = np.clip(served / found.drawn, 0.0, 1.0) * found.cores / threads
    at = "flat out" if rate is None else f"at {rate:,.0f}/s"
    answers = []
    watts: Array | None = None
    try:
        watts, basis, stands_on, changes = draw_watts(
            measured, server, found, busy, modelled, not_modelled, flat_out=rate is None
        )
        # Only the host itself, flat out, was metered as it is asked for.
        unit = "" if stands_on.endswith("metered") else " (modelled)"
        said = f"modelled, {at}" if unit else f"metered here, {at}"
        answers.append(
            Answer(
                "watts",
                f"power, {said}",
                from_draws(watts, f"watts{unit}", basis, extrapolated=True),
                stands_on,
                changes,
            )
        )
        answers.append(
            Answer(
                "operations_per_joule",
                f"per watt, {said}",
                from_draws(served / watts, f"operations/joule{unit}", "draws of throughput over draws of watts",
                         extrapolated=True),
                f"throughput and power; {found.cores} of {threads} hardware threads at work, the rest idle",
                "It rises when the idle threads do other work.",
            )
        )  # fmt: skip
    except RackscopeError as error:
        answers += [
            Answer("watts", f"power {at}", None, refused=str(error)),
            Answer("operations_per_joule", f"per watt {at}", None, refused="its power is not known"),
        ]
    answers += _money(server, served, watts, servers.site, servers.currency)
    return answers, Projected(found.drawn, served, watts)


def _money(server: Server, served: Array, watts: Array | None, site: Site | None, currency: str) -> list[Answer]:
    if server.price is None:
        refused = f"{server.name} has no price. Write one to get performance per price."
        return [Answer("operations_per_second_per_price", "per price", None, refused=refused)]
    price = server.price.draw(f"{server.name} price", DRAWS, 1)
    found = [
        Answer(
            "operations_per_second_per_price",
            f"operations/s per {currency} of its price",
            from_draws(served / price, f"operations/s per {currency} (modelled)",
                       "draws of throughput over draws of the price", extrapolated=True),
            f"throughput; price: {server.source}",
            "It changes as the price does.",
        )
    ]  # fmt: skip
    if site is None or watts is None:
        return found
    candidate = Candidate(
        server.name, server.price, around(watts), around(served), "operations", f"projection; price: {server.source}"
    )
    costs = draw_costs([candidate], site, draws=DRAWS)[0]
    yearly = served * SECONDS_PER_YEAR / costs.total
    found.append(
        Answer(
            "operations_per_cost",
            f"operations per {currency} of a year's cost",
            from_draws(yearly, f"operations per {currency} (modelled)", "draws of throughput, watts, prices and site",
                     extrapolated=True),
            f"throughput, power; price: {server.source}; [site]; model: cost",
            "It changes with the price, how long it serves, and the electricity's.",
        )
    )  # fmt: skip
    return found


def around(drawn: Array) -> Uncertain:
    """Draws as a catalogue says them: a median, and the factor within which 90 % lie."""
    low, middle, high = ends_of(drawn)
    return Uncertain.lognormal(middle, max(middle / low, high / middle, 1.0 + 1e-9))
