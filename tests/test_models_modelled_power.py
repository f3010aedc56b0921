"""Modelled power: it says so, its intervals hold on published curves, and guests are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from energy_runs import Metered
from public_data import public_table
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import CatalogueError
from rackscope.models.modelled_power import (
    ModelledPower,
    PowerNotModelledError,
    ServerWatts,
    class_watts,
    host_watts,
    model_energy,
    parse_server_watts,
)
from rackscope.models.uncertain import Uncertain

#: Watts idle and at 10 to 100 % of load, as published: SPECpower_ssj2008 results 20071128-00013 (its idle apart),
#: 20091104-00213, 20110406-00368, 20121015-00557, 20160705-00737, 20170829-00780, 20200728-01041 and 20231205-01349.
CURVES = {
    "PowerEdge 2950 III": (157, 173, 189, 204, 217, 230, 243, 253, 262, 270, 276),
    "x3250 M3": (41.6, 46.7, 52.3, 57.9, 65.4, 73, 80.7, 89.5, 99.6, 105, 113),
    "x3550 M3": (58.4, 98, 109, 118, 128, 140, 153, 170, 189, 205, 222),
    "1022G-NTF": (77.9, 115, 137, 158, 181, 205, 230, 256, 275, 293, 308),
    "PowerEdge R830": (86.4, 181, 215, 253, 287, 315, 340, 377, 421, 483, 562),
    "PowerEdge R740": (52.3, 129, 147, 170, 195, 224, 255, 292, 344, 408, 457),
    "PowerEdge R6515": (54, 123, 139, 150, 161, 169, 181, 194, 207, 218, 231),
    "QuantaGrid D54Q": (152, 284, 328, 373, 421, 476, 538, 626, 838, 909, 968),
}
BARE = {"virtualisation": {"guest": False}, "processor": {"sockets": 2, "physical_cores": 64}}
GUEST = {"virtualisation": {"guest": True, "hypervisor": "KVM"}, "processor": {"sockets": 1, "physical_cores": 8}}


def server(idle: float, full: float, share: float = 1.0) -> ServerWatts:
    return ServerWatts("a server", "a test", Uncertain.certain(idle), Uncertain.certain(full), share)


def test_intervals_hold_published_curves_between_their_ends() -> None:
    held = []
    for watts in CURVES.values():
        model = ModelledPower(server(watts[0], watts[-1]))
        held += [model.predict([step / 10]).contains(watts[step]) for step in range(1, 10)]
    # They are wider than these curves need: other work than SPEC's is in them too.
    assert sum(held) / len(held) >= 0.9


def test_classes_hold_published_servers() -> None:
    import polars as pl

    file = public_table("specpower-servers-to-2022.csv")
    held_full, held_idle = [], []
    for row in pl.read_csv(file, infer_schema_length=2000).iter_rows(named=True):
        try:
            known = class_watts(row["Chips"], row["# Cores"])
        except PowerNotModelledError:
            continue
        held_full.append(known.full.low <= row["avg. watts @ 100%"] <= known.full.high)
        held_idle.append(known.idle.low <= row["avg. watts @ active idle"] <= known.idle.high)
    assert len(held_full) > 600
    assert sum(held_full) / len(held_full) >= 0.9
    assert sum(held_idle) / len(held_idle) >= 0.9


def test_ends_are_the_servers_own_and_work_is_what_is_not_known() -> None:
    model = ModelledPower(server(80.0, 240.0))
    idle, full = model.predict([0.0]), model.predict([1.0])
    assert (idle.low, idle.value, idle.high) == pytest.approx((80.0, 80.0, 80.0))
    assert full.value == pytest.approx(240.0, rel=0.01)
    assert full.low < 220 < 260 < full.high
    assert "modelled" in full.unit
    values = [model.predict([use / 10]).value for use in range(11)]
    assert values == sorted(values)


def test_what_is_known_narrows_it() -> None:
    of_class = ModelledPower(class_watts(2, 64)).predict([0.5])
    of_server = ModelledPower(server(60.0, 400.0)).predict([0.5])
    assert of_class.high / of_class.low > 2 > of_server.high / of_server.low


def test_a_share_is_a_share_of_everything() -> None:
    whole, eighth = ModelledPower(server(80.0, 240.0)), ModelledPower(server(80.0, 240.0, 1 / 8))
    assert eighth.predict([0.3]).value == pytest.approx(whole.predict([0.3]).value / 8)
    assert eighth.server.sentence.startswith("12.5 % of a server (idle")
    assert whole.server.sentence.startswith("a server (idle")


def test_a_long_run_is_as_its_parts() -> None:
    model = ModelledPower(server(80.0, 240.0))
    assert model.predict([0.2, 0.8] * 500).value == pytest.approx(model.predict([0.2, 0.8]).value, rel=0.05)


@pytest.mark.parametrize("use", [[], [1.5], [-0.1], [float("nan")], [50.0]])
def test_a_use_that_is_no_share_is_refused(use: list[float]) -> None:
    with pytest.raises(RackscopeError, match="not a fraction"):
        ModelledPower(server(80.0, 240.0)).predict(use)


def test_a_guest_is_refused_unless_its_share_is_given() -> None:
    with pytest.raises(PowerNotModelledError, match="guest of KVM"):
        host_watts(GUEST)
    with pytest.raises(PowerNotModelledError, match="cannot be modelled from within"):
        host_watts(GUEST, server(80.0, 240.0))
    assert host_watts(GUEST, server(80.0, 240.0), 0.25).share == 0.25
    with pytest.raises(PowerNotModelledError, match="not a fraction of a server"):
        host_watts(GUEST, server(80.0, 240.0), 25.0)


def test_bare_metal_is_known_by_its_class_and_better_by_its_name() -> None:
    assert host_watts(BARE).is_class
    assert "published until 2022" in host_watts(BARE).sentence
    assert host_watts(BARE, server(80.0, 240.0)) == server(80.0, 240.0)
    with pytest.raises(PowerNotModelledError, match="not known whether"):
        host_watts({})
    with pytest.raises(PowerNotModelledError, match="no published watts"):
        host_watts({**BARE, "processor": {"sockets": 3, "physical_cores": 24}})
    with pytest.raises(PowerNotModelledError, match="does not say"):
        host_watts({"virtualisation": {"guest": False}, "processor": "?"})


def test_every_number_of_a_run_is_called_modelled() -> None:
    energy = model_energy(Metered({}).run(), server(80.0, 240.0))
    phase = energy.phase("measure")
    assert phase is not None and phase.modelled_energy_joules_per_operation is not None
    assert phase.cpu_use_ratio == pytest.approx(0.8, rel=0.01)
    assert phase.modelled_mean_watts.value == pytest.approx(208, rel=0.03)
    joules = phase.modelled_mean_watts.value * 4 / 8_000
    assert phase.modelled_energy_joules_per_operation.value == pytest.approx(joules)
    assert "modelled, not metered" in energy.sentence
    content = energy.to_dict()
    assert content["source"] == "modelled"
    named = [key for key in (*content, *content["phases"][0]) if "watts" in key or "joule" in key]
    assert named and all(key.startswith("modelled_") for key in named)


def test_a_run_without_cpu_samples_is_not_modelled() -> None:
    metered = Metered({})
    samples = type(metered.run().samples)(metered.samples().select("timestamp_ns"))
    with pytest.raises(PowerNotModelledError, match="was not sampled"):
        model_energy(replace(metered.run(), samples=samples), server(80.0, 240.0))


SERVER = '[server]\nname = "R640"\nidle_watts = { low = 55, high = 110 }\nfull_watts = 469\nprice = 3000\n'


def test_a_server_is_read_from_toml() -> None:
    found = parse_server_watts(SERVER, "server.toml")
    assert (found.name, found.full.middle, found.idle.low) == ("R640", 469.0, 55.0)
    catalogue = SERVER.replace("[server]", "[[server]]") + SERVER.replace("[server]", "[[server]]").replace("R640", "B")
    assert parse_server_watts(catalogue, "servers.toml", "B").name == "B"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("idle", "is not TOML"),
        ("a = 1", r"has no \[server\]"),
        ("server = 3", r"has no \[server\]"),
        ("[server]\nidle_watts = 80\n", "full_watts is missing"),
        ("[server]\nidle_watts = 300\nfull_watts = 80\n", "is above full_watts"),
        ("[server]\nidle_watts = -80\nfull_watts = 80\n", "is negative"),
        ("[server]\nidle_watts = 0.09\nfull_watts = 0.4\n", "is 0.09"),
        ("[[server]]\nname = 'a'\n[[server]]\nname = 'b'\n", "has 2 servers"),
    ],
)
def test_a_wrong_server_file_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(CatalogueError, match=said):
        parse_server_watts(text, "server.toml")
