"""A catalogue of servers with prices, and what is the same for all of them, from TOML.

Any amount may be a number, or a table that says how uncertain it is: ``{ low, high }`` (all equally likely), ``{ low,
mode, high }`` (a triangle), ``{ median, factor }`` (lognormal: 90 % within that factor). Money may carry its currency
(``"650 USD"``), memory its unit (``"24GiB"``). ``servers.toml`` in ``advice`` is an example with every key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationInfo

from rackscope.errors import RackscopeError, UsageError
from rackscope.models.checked import STRICT, Checker, at, fault
from rackscope.models.uncertain import Uncertain
from rackscope.units import parse_size_bytes

FORMAT_VERSION = 1
_MONEY = re.compile(r"([-+]?[0-9][0-9_,]*(?:\.[0-9]+)?)\s*([A-Za-z]{3})")


class CatalogueError(RackscopeError):
    """A catalogue says something that cannot be; the line names the file and the key."""

    exit_status = 2


@dataclass(frozen=True)
class _Bounds:
    """What a key's values may be, and what to say of those that are not."""

    least: float
    most: float
    hint: str


#: More than a server costs in the smallest unit of money there is.
_MOST_MONEY = 1e13
#: Limits far beyond what is sold or charged: what lies outside is in another unit.
_SITE: Mapping[str, _Bounds] = {
    "electricity_price_per_kilowatt_hour": _Bounds(0, 1e5, "Write the price of a kWh, not of a MWh."),
    "power_usage_effectiveness": _Bounds(1, 4, "It is all power over that of the servers: 1.5, not 150 or 50 %."),
    "discount_rate_per_year": _Bounds(0, 1, "Write 0.08 for 8 %."),
    "service_years": _Bounds(0.25, 30, "Write years, not months."),
    "network_price_per_server": _Bounds(0, _MOST_MONEY, "Write its share of switches, ports and cables."),
    "upkeep_share_per_year": _Bounds(0, 1, "Write 0.05 for 5 % of the server's price a year."),
}
_WATTS = _Bounds(0.1, 50_000, "Write watts of one server, not kilowatts.")
_PRICE = _Bounds(0, _MOST_MONEY, "Write what one server costs.")
#: Of a kWh, where a unit of the currency buys about as much as a dollar: more is cents, or a MWh.
_DOLLAR_LIKE = ("USD", "EUR", "GBP", "CHF", "CAD", "AUD", "NZD", "SGD")
_DOLLARS_PER_KILOWATT_HOUR = _Bounds(0, 5, "Write the price of a kWh, not of a MWh, and no cents.")
_CHIP_WATTS = _Bounds(1, 2_000, "Write the thermal design power of one chip in watts.")
_FIRST_YEAR, _LAST_YEAR = 1990, 2100
_HERTZ = _Bounds(1e8, 2e10, "Write hertz, not MHz or GHz: 2.4e9.")
_SPEED = _Bounds(1e6, 1e16, "Write it a second, in the unit of its name: 5.2e9, not 5200 million.")
_OPERATIONS = _Bounds(1, 1e12, "Write operations a second.")
_MEMORY = _Bounds(2**20, 2**60, 'Write bytes, or give the unit: "384GiB".')
_CACHE = _Bounds(2**14, 2**40, 'Write bytes, or give the unit: "32MiB".')
#: Ceilings that 'rackscope calibrate' measures and a projection may compare by, with what they can be.
CEILINGS: Mapping[str, _Bounds] = {
    "instructions_per_second": _Bounds(1e8, 1e16, "Write instructions a second of all cores together, not MIPS."),
    "dram_read_bytes_per_second": _Bounds(1e8, 1e14, "Write bytes a second, not MB/s or GB/s: 21e9."),
    "dram_latency_seconds": _Bounds(1e-9, 1e-5, "Write seconds, not nanoseconds: 95e-9."),
    "network_bytes_per_second": _Bounds(1e5, 1e12, "Write bytes a second, not Gbit/s: 1.25e9 is 10 Gbit/s."),
    "loopback_bytes_per_second": _SPEED,
    "loopback_requests_per_second": _OPERATIONS,
    "dram_write_bytes_per_second": _SPEED,
    "dram_copy_bytes_per_second": _SPEED,
    "disk_sequential_read_bytes_per_second": _SPEED,
    "disk_sequential_write_bytes_per_second": _SPEED,
    "disk_random_read_operations_per_second": _OPERATIONS,
    "disk_random_write_operations_per_second": _OPERATIONS,
}
#: More than any server has.
_MOST_CORES = 1_000_000
#: Beyond any price or rate; what is larger overflows in the arithmetic.
_LARGEST_NUMBER = 1e30
_ANY = _Bounds(-math.inf, math.inf, "")


def _number(value: Any, bounds: _Bounds, currency: str | None) -> float:
    """``currency`` is the catalogue's where the amount is money, which may carry its own."""
    if isinstance(value, str) and currency is not None:
        match = _MONEY.fullmatch(value.strip())
        if match is None:
            raise fault(f"is '{value}'", f"Write a number, or one like '650 {currency}'.")
        if match.group(2).upper() != currency:
            raise fault(
                f"is in {match.group(2).upper()}, and the catalogue in {currency}", "Convert it: use one currency."
            )
        value = float(match.group(1).replace(",", "").replace("_", ""))
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_NUMBER:
        raise fault(f"is {str(value)[:40]}, expected a number", bounds.hint or "Write a number.")
    return _within(float(value), bounds)


def _within(value: float, bounds: _Bounds) -> float:
    if value < 0 <= bounds.least:
        raise fault(f"is negative ({value:g})", bounds.hint)
    if not bounds.least <= value <= bounds.most:
        raise fault(f"is {value:g}", bounds.hint)
    return value


def _uncertain(value: Any, bounds: _Bounds, currency: str | None = None) -> Uncertain:
    if not isinstance(value, dict):
        return Uncertain.certain(_number(value, bounds, currency))
    named = {name: _number(one, _ANY, currency) for name, one in value.items()}
    match sorted(named):
        case ["high", "low"]:
            amount = Uncertain.uniform(named["low"], named["high"])
        case ["high", "low", "mode"]:
            amount = Uncertain.triangular(named["low"], named["mode"], named["high"])
        case ["factor", "median"] if named["median"] > 0 and named["factor"] >= 1 and bounds.least < 1:
            amount = Uncertain.lognormal(named["median"], named["factor"])
        case _:
            raise fault(
                f"is {{ {', '.join(f'{name} = {one:g}' for name, one in named.items())} }}",
                "Write { low, high }, { low, mode, high }, or, of what can be near zero, { median, factor } with a "
                "factor of one or more.",
            )
    if not amount.low <= amount.middle <= amount.high:
        raise fault("is not in the order low, mode, high", "Exchange them?")
    _within(amount.low, bounds)
    _within(amount.high, bounds)
    return amount


def _amount(bounds: _Bounds) -> PlainValidator:
    return PlainValidator(lambda value: _uncertain(value, bounds))


def _site_amount(value: Any, info: ValidationInfo) -> Uncertain:
    name, currency = str(info.field_name), _currency(info)
    dollars = name == "electricity_price_per_kilowatt_hour" and currency in _DOLLAR_LIKE
    return _uncertain(
        value, _DOLLARS_PER_KILOWATT_HOUR if dollars else _SITE[name], currency if "price" in name else None
    )


def _currency(info: ValidationInfo) -> str:
    return str((info.context or {}).get("currency", ""))


def _count(least: int, most: int, hint: str) -> PlainValidator:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise fault(f"is {str(value)[:40]}", hint)
        return value

    return PlainValidator(check)


def _size(bounds: _Bounds) -> PlainValidator:
    def check(value: Any) -> int:
        try:
            size = parse_size_bytes(value) if isinstance(value, str) else value
        except UsageError as error:
            raise fault(f"is '{value}'", error.advice) from error
        if isinstance(size, bool) or not isinstance(size, int) or not bounds.least <= size <= bounds.most:
            raise fault(f"is {str(value)[:40]}{' bytes, out of range' * (type(value) is int)}", bounds.hint)
        return size

    return PlainValidator(check)


def _text(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str) or not value.strip():
        raise fault(f"is {value!r}, expected text", f'Write {info.field_name} = "...".')
    return value


_Text = Annotated[str, PlainValidator(_text)]
_SiteAmount = Annotated[Uncertain, PlainValidator(_site_amount)]
_Watts = Annotated[Uncertain, _amount(_WATTS)]
_HowMany = Annotated[int, _count(1, _MOST_CORES, "Write how many there are, a whole number.")]


@dataclass(frozen=True)
class Measured:
    """What a server was measured, or is said, to do of one workload: operations a second, or seconds for one job."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    workload: _Text
    watts: _Watts
    source: _Text
    operations_per_second: Annotated[
        Uncertain | None, _amount(_Bounds(1e-9, 1e15, "Write operations a second, above zero."))
    ] = None
    seconds_per_job: Annotated[
        Uncertain | None, _amount(_Bounds(1e-9, 1e9, "Write how many seconds one job takes, above zero."))
    ] = None

    @property
    def unit(self) -> str:
        """``operations`` or ``jobs``."""
        return "operations" if self.operations_per_second is not None else "jobs"

    @property
    def rate_per_second(self) -> Uncertain:
        """Operations, or jobs, a second; between the ends the shape of seconds a job is taken to stay."""
        if self.operations_per_second is not None:
            return self.operations_per_second
        seconds = self.seconds_per_job
        assert seconds is not None
        return Uncertain(seconds.shape, 1 / seconds.high, 1 / seconds.middle, 1 / seconds.low)


def _has_one_rate(one: Measured) -> Measured:
    if (one.operations_per_second is None) == (one.seconds_per_job is None):
        said = "neither" if one.seconds_per_job is None else "both"
        raise fault(f"has {said} of operations_per_second and seconds_per_job", "Give one of them.")
    return one


def _workloads_once(found: tuple[Measured, ...]) -> tuple[Measured, ...]:
    twice = _twice([one.workload for one in found])
    if twice is not None:
        raise fault(f"has '{twice}' twice", "Keep one, with its uncertainty.")
    return found


def _twice(names: list[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _ceilings(table: Any) -> dict[str, Uncertain]:
    if not isinstance(table, dict):
        raise fault("is not a table", "Write [server.ceilings] and what 'rackscope calibrate' shows.")
    found: dict[str, Uncertain] = {}
    for key, value in table.items():
        # A device may be named, as in the manifest: disk_random_read_operations_per_second{device="vda"}.
        name = key.partition("{")[0]
        if name not in CEILINGS:
            raise _CHECKER.unknown("ceilings", name)
        if name in found:
            raise fault("is given for two devices", "Keep that of the one in use.", name)
        found[name] = at(name, lambda: _uncertain(value, CEILINGS[name]))  # noqa: B023 (called at once)
    return found


@dataclass(frozen=True)
class Server:
    """One kind of server. ``price`` is ``None`` where the catalogue has none; watts and sizes likewise."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    name: _Text
    source: _Text
    processor: str = ""
    price: Annotated[
        Uncertain | None, PlainValidator(lambda value, info: _uncertain(value, _PRICE, _currency(info)))
    ] = None
    idle_watts: _Watts | None = None
    full_watts: _Watts | None = None
    cores: _HowMany | None = None
    threads: _HowMany | None = None
    memory_bytes: Annotated[int | None, _size(_MEMORY)] = None
    measured: Annotated[
        tuple[Annotated[Measured, AfterValidator(_has_one_rate)], ...], AfterValidator(_workloads_once)
    ] = ()
    frequency_hertz: Annotated[Uncertain | None, _amount(_HERTZ)] = None
    last_level_cache_bytes: Annotated[int | None, _size(_CACHE)] = None
    #: Of its data sheet, for models of its watts; ``thermal_design_watts`` are of one chip.
    chips: _HowMany | None = None
    year: Annotated[int | None, _count(1990, 2100, "Write the year that it is sold from, such as 2024.")] = None
    thermal_design_watts: Annotated[Uncertain | None, _amount(_CHIP_WATTS)] = None
    #: What 'rackscope calibrate' found there: keys of ``CEILINGS``.
    ceilings: Annotated[Mapping[str, Uncertain], PlainValidator(_ceilings)] = field(default_factory=dict)


def _is_consistent(one: Server) -> Server:
    if one.idle_watts and one.full_watts and one.idle_watts.low > one.full_watts.high:
        said = f"is above full_watts ({one.idle_watts.low:g} > {one.full_watts.high:g})"
        raise fault(said, "Exchange them?", "idle_watts")
    if one.cores and one.threads and one.threads < one.cores:
        raise fault(f"is below cores ({one.threads} < {one.cores})", "Exchange them?", "threads")
    return one


@dataclass(frozen=True)
class Site:
    """What is the same for all servers; prices in the catalogue's currency."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    electricity_price_per_kilowatt_hour: _SiteAmount
    power_usage_effectiveness: _SiteAmount
    discount_rate_per_year: _SiteAmount
    service_years: _SiteAmount
    network_price_per_server: _SiteAmount
    upkeep_share_per_year: _SiteAmount


@dataclass(frozen=True)
class ServerFile:
    """Servers without the site that a catalogue has: enough to project to. ``currency`` is empty without prices."""

    file: str
    currency: str
    site: Site | None
    servers: tuple[Server, ...]


@dataclass(frozen=True)
class Catalogue:
    """``file`` is where it came from, for messages."""

    file: str
    currency: str
    site: Site
    servers: tuple[Server, ...]

    def server(self, name: str) -> Server:
        """By name. Raises CatalogueError."""
        for server in self.servers:
            if server.name == name:
                return server
        raise CatalogueError(
            f"{self.file} has no server '{name}'", f"It has: {', '.join(one.name for one in self.servers)}."
        )


def _version(value: Any) -> int:
    if value != FORMAT_VERSION or isinstance(value, bool):
        raise fault(f"is {value!r}", f"Write format_version = {FORMAT_VERSION}.")
    return FORMAT_VERSION


def _currency_name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z]{3}", value):
        raise fault(f"is {value!r}", "Write three letters, such as USD.")
    return value.upper()


@dataclass(frozen=True)
class _File:
    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    format_version: Annotated[int, PlainValidator(_version)]
    server: Annotated[tuple[Annotated[Server, AfterValidator(_is_consistent)], ...], Field(min_length=1)]
    currency: Annotated[str, PlainValidator(_currency_name)] = ""
    site: Site | None = None


_HINTS = {name: bounds.hint for name, bounds in (*_SITE.items(), ("watts", _WATTS))}
_CHECKER = Checker(
    CatalogueError,
    {
        "ceilings": tuple(CEILINGS),
        **{
            name: tuple(one.name for one in fields(table))
            for name, table in (("", _File), ("site", Site), ("server", Server), ("measured", Measured))
        },
    },
    {
        **_HINTS,
        "format_version": f"Write format_version = {FORMAT_VERSION}.",
        "server": "Give one [[server]] or more, and its keys below.",
        "site": f"Write [site] and below it {', '.join(_SITE)}.",
        "measured": "Write [[server.measured]] and its keys below.",
        "idle_watts": _WATTS.hint,
        "full_watts": _WATTS.hint,
    },
)


@cache
def _adapter() -> TypeAdapter[_File]:
    return TypeAdapter(_File)


def parse_catalogue(text: str, file: str) -> Catalogue:
    """The catalogue in ``text``; ``file`` names it in messages.

    Raises CatalogueError for what is not TOML, an unknown or missing key, a value of a wrong kind, an amount that is
    negative or must be in another unit, a second currency, a name twice.
    """
    found = _parse(text, file, complete=True)
    assert found.site is not None
    return Catalogue(found.file, found.currency, found.site, found.servers)


def parse_servers(text: str, file: str) -> ServerFile:
    """As ``parse_catalogue``, of a file without a site, perhaps, and, where nothing is priced, a currency."""
    return _parse(text, file, complete=False)


def _parse(text: str, file: str, *, complete: bool) -> ServerFile:
    content = _CHECKER.toml(text, file)
    currency = content.get("currency")
    if currency is None and (complete or "site" in content or _is_priced(content)):
        raise CatalogueError(f"{file}: currency is missing", 'Write currency = "USD", or another of three letters.')
    found = _CHECKER.check(_adapter(), content, file, {"currency": str(currency).upper()})
    twice = _twice([server.name for server in found.server])
    if twice is not None:
        raise CatalogueError(f'{file}: server "{twice}" is there twice', "Give each a name of its own.")
    if complete and found.site is None:
        raise CatalogueError(f"{file}: site is missing", _CHECKER.missing["site"])
    return ServerFile(file, found.currency, found.site, found.server)


def _is_priced(content: Mapping[str, Any]) -> bool:
    entries = content.get("server")
    return isinstance(entries, list) and any(isinstance(one, dict) and "price" in one for one in entries)


def read_watts(file: str, place: str, table: Mapping[str, Any], key: str) -> Uncertain:
    """Watts of a table that is no catalogue, checked as those of one are. Raises CatalogueError, also where missing."""
    if key not in table:
        raise CatalogueError(f"{file}: {place}.{key} is missing", _WATTS.hint)
    return _CHECKER.check(TypeAdapter(_Watts), table[key], f"{file}: {place}.{key}")
