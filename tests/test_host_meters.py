"""Power meters as the user names them: what each becomes, and that a mistake is one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.cli.arguments import kept_command_line
from rackscope.errors import UsageError
from rackscope.host.meters import PRESETS, UNITS, Meters, parse_meter, parse_meters


def parsed(text: str) -> dict[str, Any]:
    meter = parse_meter(text)
    assert meter is not None
    return dict(meter)


def test_an_outlet_of_a_power_strip() -> None:
    assert parsed("snmp:192.0.2.7,outlet=4,preset=apc") == {
        "kind": "snmp",
        "address": "192.0.2.7",
        "port": 161,
        "community": "public",
        "interval_seconds": 1.0,
        "timeout_seconds": 1.0,
        "readings": [
            {
                "oid": "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4",
                "measured": {"domain": "outlet-4", "quantity": "watts", "scale": 1.0},
            }
        ],
    }


@pytest.mark.parametrize(
    ("options", "oid", "domain", "scale"),
    [
        ("preset=apc", "1.3.6.1.4.1.318.1.1.26.4.3.1.5.1", "strip", 10.0),
        ("preset=raritan,outlet=7", "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.7.5", "outlet-7", 1.0),
        ("preset=raritan,outlet=2.7", "1.3.6.1.4.1.13742.6.5.4.3.1.4.2.7.5", "outlet-2.7", 1.0),
        ("preset=servertech,outlet=9", "1.3.6.1.4.1.1718.4.1.8.3.1.7.1.1.9", "outlet-9", 1.0),
        ("preset=servertech3,outlet=2.1.9", "1.3.6.1.4.1.1718.3.2.3.1.14.2.1.9", "outlet-2.1.9", 1.0),
        ("preset=eaton,outlet=22,domain=node-3", "1.3.6.1.4.1.534.6.6.7.6.5.1.3.0.22", "node-3", 1.0),
        ("oid=1.3.6.1.4.1.1.5,unit=milliwatts,scale=10", "1.3.6.1.4.1.1.5", "server", 0.01),
    ],
)
def test_where_each_maker_has_its_watts(options: str, oid: str, domain: str, scale: float) -> None:
    (reading,) = parsed(f"snmp:strip.example,{options}")["readings"]
    assert reading["oid"] == oid
    assert reading["measured"]["domain"] == domain
    assert reading["measured"]["scale"] == pytest.approx(scale)


def test_two_supplies_of_one_server_are_two_outlets() -> None:
    readings = parsed("snmp:192.0.2.7,preset=apc,outlet=4+5")["readings"]
    assert [reading["measured"]["domain"] for reading in readings] == ["outlet-4", "outlet-5"]


@pytest.mark.parametrize(
    ("where", "address", "port"),
    [
        ("192.0.2.7:1161", "192.0.2.7", 1161),
        ("pdu-3.example", "pdu-3.example", 161),
        ("[2001:db8::7]", "2001:db8::7", 161),
        ("[2001:db8::7]:162", "2001:db8::7", 162),
    ],
)
def test_addresses(where: str, address: str, port: int) -> None:
    meter = parsed(f"snmp:{where},preset=apc")
    assert (meter["address"], meter["port"]) == (address, port)


def test_a_community_may_be_in_a_file_and_is_not_kept_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "community").write_text("s3cret\n")
    meter = parsed(f"snmp:192.0.2.7,preset=apc,community_file={tmp_path}/community")
    assert meter["community"] == "s3cret"
    kept = kept_command_line(["run", "cache", "--meter", "snmp:192.0.2.7,community=s3cret,outlet=4"])
    assert kept == ("rackscope", "run", "cache", "--meter", "snmp:192.0.2.7,community=***,outlet=4")


def test_a_file_and_a_command() -> None:
    assert parsed("file:/run/a,b,unit=kilowatt_hours,interval=2s") == {
        "kind": "file",
        "path": "/run/a,b",
        "measured": {"domain": "server", "quantity": "joules", "scale": 3.6e6},
        "interval_seconds": 2.0,
    }
    meter = parsed("command:sh -c 'echo a,b=1',unit=watts,domain=rack 4,timeout=500ms")
    assert meter["arguments"] == ["sh", "-c", "echo a,b=1"]
    assert meter["measured"]["domain"] == "rack 4"
    assert meter["timeout_seconds"] == 0.5


def test_none_leaves_out_the_hosts_own() -> None:
    assert parse_meters([]) == Meters(local=True)
    meters = parse_meters(["none", "file:/run/watts,unit=watts"])
    assert not meters.local
    assert len(meters.named) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wattmeter", "invalid power meter"),
        ("usb:1", "invalid power meter"),
        ("file:", "does not say where it is"),
        ("file:/run/watts", "unit=watts or unit=joules is missing"),
        ("file:/run/watts,unit=volts", "unit=volts: input should be 'watts'"),
        ("file:/run/watts,unt=watts", "Did you mean unit?"),
        ("file:/run/watts,unit=watts,unit=watts", "unit of a power meter is given twice"),
        ("file:/run/watts,unit=watts,scale=-1", "scale=-1: input should be greater than 0"),
        ("file:/run/watts,unit=watts,scale=nan", "scale=nan: input should be"),
        ("file:/run/watts,unit=watts,interval=1ms", "interval=1ms: input should be greater than or equal to 0.05"),
        ("file:/run/watts,unit=watts,interval=soon", "not a duration"),
        ("file:/run/watts,unit=watts,domain=", "domain of a power meter is empty"),
        ("command:no-such-meter,unit=watts", "the program 'no-such-meter'"),
        ("command:echo 'a,unit=watts", "close its quotes"),
        ("snmp:192.0.2.7", "the maker is missing"),
        ("snmp:192.0.2.7,preset=acme", "preset=acme: input should be 'apc'"),
        ("snmp:192.0.2.7,preset=apc,unit=watts", "a preset knows its unit"),
        ("snmp:192.0.2.7,preset=apc,outlet=x", "outlet=x: string should match"),
        ("snmp:192.0.2.7,preset=apc,outlet=4+4", "different outlets"),
        ("snmp:192.0.2.7,preset=apc,outlet=4+5,domain=a", "one domain"),
        ("snmp:192.0.2.7,oid=1.3.x,unit=watts", "oid=1.3.x: string should match"),
        ("snmp:192.0.2.7,oid=1.3.6,preset=apc", "give oid and unit, or preset and outlet"),
        ("snmp:192.0.2.7:99999,preset=apc", "99999 is not a UDP port"),
        ("snmp:a b,preset=apc", "is not an address"),
        ("snmp:192.0.2.7,preset=apc,community_file=/no/such/file", "FileNotFoundError"),
    ],
)
def test_a_mistake_is_one_clear_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_meter(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60), st.sampled_from(["", "snmp:", "file:", "command:"]))
def test_any_text_is_a_meter_or_refused(text: str, kind: str) -> None:
    try:
        parse_meter(kind + text)
    except UsageError as error:
        assert error.advice


def test_units_and_presets_are_whole() -> None:
    assert {quantity for quantity, _ in UNITS.values()} == {"watts", "joules"}
    for preset in PRESETS.values():
        assert preset.outlet.format(index=preset.number.format(number=1)).startswith("1.3.6.1.4.1.")
