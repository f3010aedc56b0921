"""A catalogue of servers with prices, and what is the same for all of them, from TOML.

Any amount may be a number, or a table that says how uncertain it is: ``{ low, high }`` (all equally likely), ``{ low,
mode, high }`` (a triangle), ``{ median, factor }`` (lognormal: 90 % within that factor). Money may carry its currency
(``"650 USD"``), memory its unit (``"24GiB"``). ``servers.toml`` in ``advice`` is an example with every key.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rackscope.errors import RackscopeError, UsageError
from rackscope.models.uncertain import Uncertain
from rackscope.units import parse_size_bytes

FORMAT_VERSION = 1
_MONEY = re.compile(r"([-+]?[0-9][0-9_,]*(?:\.[0-9]+)?)\s*([A-Za-z]{3})")


class CatalogueError(RackscopeError):
    """A catalogue says something that cannot be; the line names the file and the key."""

    exit_status = 2


@dataclass(frozen=True)
class Measured:
    """What a server was measured, or is said, to do of one workload.

    ``rate_per_second`` counts operations, or jobs where ``unit`` says so.
    """

    workload: str
    unit: str
    rate_per_second: Uncertain
    watts: Uncertain
    source: str


@dataclass(frozen=True)
class Server:
    """One kind of server. ``price`` is ``None`` where the catalogue has none; watts and sizes likewise."""

    name: str
    processor: str
    source: str
    price: Uncertain | None
    idle_watts: Uncertain | None
    full_watts: Uncertain | None
    cores: int | None
    threads: int | None
    memory_bytes: int | None
    measured: tuple[Measured, ...]
    frequency_hertz: Uncertain | None = None
    last_level_cache_bytes: int | None = None
    #: Of its data sheet, for models of its watts; ``thermal_design_watts`` are of one chip.
    chips: int | None = None
    year: int | None = None
    thermal_design_watts: Uncertain | None = None
    #: What 'rackscope calibrate' found there: keys of ``CEILINGS``.
    ceilings: Mapping[str, Uncertain] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """What is the same for all servers; prices in the catalogue's currency."""

    electricity_price_per_kilowatt_hour: Uncertain
    power_usage_effectiveness: Uncertain
    discount_rate_per_year: Uncertain
    service_years: Uncertain
    network_price_per_server: Uncertain
    upkeep_share_per_year: Uncertain


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
_SERVER_KEYS = (
    "name", "processor", "source", "price", "idle_watts", "full_watts", "cores", "threads", "memory_bytes", "measured",
    "frequency_hertz", "last_level_cache_bytes", "chips", "year", "thermal_design_watts", "ceilings",
)  # fmt: skip
_CHIP_WATTS = _Bounds(1, 2_000, "Write the thermal design power of one chip in watts.")
_FIRST_YEAR, _LAST_YEAR = 1990, 2100
_HERTZ = _Bounds(1e8, 2e10, "Write hertz, not MHz or GHz: 2.4e9.")
_SPEED = _Bounds(1e6, 1e16, "Write it a second, in the unit of its name: 5.2e9, not 5200 million.")
_OPERATIONS = _Bounds(1, 1e12, "Write operations a second.")
_MEMORY = _Bounds(2**20, 2**60, 'Write bytes, or give the unit: "384GiB".')
_CACHE = _Bounds(2**14, 2**40, 'Write bytes, or give the unit: "32MiB".')
#: Ceilings that 'rackscope calibrate' measures and a projection may compare by, with what they can be.
CEILINGS: Mapping[str, _Bounds] = {
    "instructions_per_second": _Bounds(1e8, 1e16, "Write instructions a second of all cores together, no MIPS."),
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
_RATES = {"operations_per_second": "operations", "seconds_per_job": "jobs"}
_RATE_BOUNDS = {
    "operations_per_second": _Bounds(1e-9, 1e15, "Write operations a second, above zero."),
    "seconds_per_job": _Bounds(1e-9, 1e9, "Write how many seconds one job takes, above zero."),
}
#: More than any server has.
_MOST_CORES = 1_000_000


def parse_catalogue(text: str, file: str) -> Catalogue:
    """The catalogue in ``text``; ``file`` names it in messages.

    Raises CatalogueError for what is not TOML, an unknown or missing key, a value of a wrong kind, an amount that is
    negative or must be in another unit, a second currency, a name twice.
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CatalogueError(f"{file} is not TOML: {error}", "Mend it at that place.") from error
    return _Reader(file).catalogue(content)


def parse_servers(text: str, file: str) -> ServerFile:
    """As ``parse_catalogue``, of a file that may lack the site and, where nothing is priced, the currency."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CatalogueError(f"{file} is not TOML: {error}", "Mend it at that place.") from error
    return _Reader(file).servers(content)


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._currency = ""

    def catalogue(self, content: Mapping[str, Any]) -> Catalogue:
        found = self.servers(content, needs_currency=True)
        if found.site is None:
            raise self._fault("site", "is missing", f"Write [site] and below it {', '.join(_SITE)}.")
        return Catalogue(found.file, found.currency, found.site, found.servers)

    def servers(self, content: Mapping[str, Any], *, needs_currency: bool = False) -> ServerFile:
        self._only("", content, ("format_version", "currency", "site", "server"))
        version = content.get("format_version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            said = "is missing" if version is None else f"is {version!r}"
            raise self._fault("format_version", f"{said}", f"Write format_version = {FORMAT_VERSION}.")
        priced = isinstance(content.get("server"), list) and any(
            isinstance(one, dict) and "price" in one for one in content["server"]
        )
        if needs_currency or priced or "site" in content or "currency" in content:
            self._currency = self._text("", content, "currency").upper()
            if not re.fullmatch("[A-Z]{3}", self._currency):
                raise self._fault("currency", f"is '{content['currency']}'", "Write three letters, such as USD.")
        site = content.get("site")
        if site is not None and not isinstance(site, dict):
            raise self._fault("site", "is no table", "Give a table [site] with electricity, PUE, discount, years.")
        entries = content.get("server")
        if not isinstance(entries, list) or not entries:
            raise self._fault("server", "is missing", "Give one [[server]] or more.")
        servers = tuple(self._server(number, entry) for number, entry in enumerate(entries, 1))
        names = [server.name for server in servers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self._fault(f'server "{twice}"', "is there twice", "Give each a name of its own.")
        return ServerFile(self._file, self._currency, None if site is None else self._site(site), servers)

    def _site(self, table: Mapping[str, Any]) -> Site:
        self._only("site", table, _SITE)
        limits = dict(_SITE)
        if self._currency in _DOLLAR_LIKE:
            limits["electricity_price_per_kilowatt_hour"] = _DOLLARS_PER_KILOWATT_HOUR
        amounts = {name: self._needed("site", table, name, bounds) for name, bounds in limits.items()}
        return Site(**amounts)

    def _server(self, number: int, table: Any) -> Server:
        place = f"server {number}"
        if not isinstance(table, dict):
            raise self._fault(place, "is not a table", "Write [[server]] and its keys below.")
        name = self._text(place, table, "name")
        place = f'server "{name}"'
        self._only(place, table, _SERVER_KEYS)
        idle, full = (self._amount(place, table, key, _WATTS) for key in ("idle_watts", "full_watts"))
        if idle and full and idle.low > full.high:
            raise self._fault(
                f"{place}.idle_watts", f"is above full_watts ({idle.low:g} > {full.high:g})", "Exchange them?"
            )
        cores, threads = (self._count(place, table, key) for key in ("cores", "threads"))
        if cores and threads and threads < cores:
            raise self._fault(f"{place}.threads", f"is below cores ({threads} < {cores})", "Exchange them?")
        entries = table.get("measured", [])
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise self._fault(f"{place}.measured", "is not a list of tables", "Write [[server.measured]].")
        measured = tuple(self._measured(f"{place}.measured {k}", one) for k, one in enumerate(entries, 1))
        workloads = [one.workload for one in measured]
        twice = next((one for one in workloads if workloads.count(one) > 1), None)
        if twice is not None:
            raise self._fault(f"{place}.measured", f"has '{twice}' twice", "Keep one, with its uncertainty.")
        return Server(
            name=name,
            processor=self._text(place, table, "processor", needed=False),
            source=self._text(place, table, "source"),
            price=self._amount(place, table, "price", _PRICE),
            idle_watts=idle,
            full_watts=full,
            cores=cores,
            threads=threads,
            memory_bytes=self._size(place, table, "memory_bytes", _MEMORY),
            measured=measured,
            frequency_hertz=self._amount(place, table, "frequency_hertz", _HERTZ),
            last_level_cache_bytes=self._size(place, table, "last_level_cache_bytes", _CACHE),
            chips=self._count(place, table, "chips"),
            year=self._year(place, table),
            thermal_design_watts=self._amount(place, table, "thermal_design_watts", _CHIP_WATTS),
            ceilings=self._ceilings(place, table.get("ceilings", {})),
        )

    def _ceilings(self, place: str, table: Any) -> dict[str, Uncertain]:
        place = f"{place}.ceilings"
        if not isinstance(table, dict):
            raise self._fault(place, "is no table", "Write [server.ceilings] and what 'rackscope calibrate' shows.")
        found: dict[str, Uncertain] = {}
        for key in table:
            # A device may be named, as in the manifest: disk_random_read_operations_per_second{device="vda"}.
            name = key.partition("{")[0]
            if name not in CEILINGS:
                self._only(place, {name: None}, CEILINGS)
            if name in found:
                raise self._fault(f"{place}.{name}", "is there of two devices", "Keep that of the one in use.")
            found[name] = self._needed(place, {name: table[key]}, name, CEILINGS[name])
        return found

    def _measured(self, place: str, table: Mapping[str, Any]) -> Measured:
        self._only(place, table, ("workload", *_RATES, "watts", "source"))
        given = [key for key in _RATES if key in table]
        if len(given) != 1:
            said = "both" if given else "neither"
            raise self._fault(place, f"has {said} of operations_per_second and seconds_per_job", "Give one of them.")
        amount = self._needed(place, table, given[0], _RATE_BOUNDS[given[0]])
        return Measured(
            workload=self._text(place, table, "workload"),
            unit=_RATES[given[0]],
            rate_per_second=_inverse(amount) if given[0] == "seconds_per_job" else amount,
            watts=self._needed(place, table, "watts", _WATTS),
            source=self._text(place, table, "source"),
        )

    def _needed(self, place: str, table: Mapping[str, Any], key: str, bounds: _Bounds) -> Uncertain:
        amount = self._amount(place, table, key, bounds)
        if amount is None:
            raise self._fault(_join(place, key), "is missing", bounds.hint)
        return amount

    def _amount(self, place: str, table: Mapping[str, Any], key: str, bounds: _Bounds) -> Uncertain | None:
        if key not in table:
            return None
        where, value, money = _join(place, key), table[key], "price" in key
        if not isinstance(value, dict):
            return Uncertain.certain(self._number(where, value, bounds, money))
        named = {name: self._number(f"{where}.{name}", one, _ANY, money) for name, one in value.items()}
        match sorted(named):
            case ["high", "low"]:
                amount = Uncertain.uniform(named["low"], named["high"])
            case ["high", "low", "mode"]:
                amount = Uncertain.triangular(named["low"], named["mode"], named["high"])
            case ["factor", "median"] if named["median"] > 0 and named["factor"] >= 1 and bounds.least < 1:
                amount = Uncertain.lognormal(named["median"], named["factor"])
            case _:
                raise self._fault(
                    where,
                    f"is {{ {', '.join(f'{name} = {one:g}' for name, one in named.items())} }}",
                    "Write { low, high }, { low, mode, high }, or, of what can be near zero, { median, factor } with a "
                    "factor of one or more.",
                )
        if not amount.low <= amount.middle <= amount.high:
            raise self._fault(where, "is not in the order low, mode, high", "Exchange them?")
        self._within(where, amount.low, bounds)
        self._within(where, amount.high, bounds)
        return amount

    def _number(self, where: str, value: Any, bounds: _Bounds, money: bool) -> float:
        if isinstance(value, str) and money:
            match = _MONEY.fullmatch(value.strip())
            if match is None:
                raise self._fault(where, f"is '{value}'", f"Write a number, or one like '650 {self._currency}'.")
            if match.group(2).upper() != self._currency:
                raise self._fault(
                    where,
                    f"is in {match.group(2).upper()}, and the catalogue in {self._currency}",
                    "Convert it: currencies are not mixed.",
                )
            value = float(match.group(1).replace(",", "").replace("_", ""))
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_NUMBER:
            raise self._fault(where, f"is {str(value)[:40]}, no number that can be", bounds.hint or "Write a number.")
        self._within(where, float(value), bounds)
        return float(value)

    def _within(self, where: str, value: float, bounds: _Bounds) -> None:
        if value < 0 <= bounds.least:
            raise self._fault(where, f"is negative ({value:g})", bounds.hint)
        if not bounds.least <= value <= bounds.most:
            raise self._fault(where, f"is {value:g}", bounds.hint)

    def _count(self, place: str, table: Mapping[str, Any], key: str) -> int | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_CORES:
            raise self._fault(_join(place, key), f"is {str(value)[:40]}", "Write how many there are, a whole number.")
        return value

    def _year(self, place: str, table: Mapping[str, Any]) -> int | None:
        year = self._count(place, table, "year")
        if year is not None and not _FIRST_YEAR <= year <= _LAST_YEAR:
            raise self._fault(_join(place, "year"), f"is {year}", "Write the year that it is sold from, such as 2024.")
        return year

    def _size(self, place: str, table: Mapping[str, Any], key: str, bounds: _Bounds) -> int | None:
        value = table.get(key)
        if isinstance(value, str):
            try:
                value = parse_size_bytes(value)
            except UsageError as error:
                raise self._fault(_join(place, key), f"is '{value}'", error.advice) from error
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._fault(_join(place, key), f"is {value!r}", bounds.hint)
        if not bounds.least <= value <= bounds.most:
            raise self._fault(_join(place, key), f"is {str(value)[:40]} bytes, which cannot be", bounds.hint)
        return value

    def _text(self, place: str, table: Mapping[str, Any], key: str, *, needed: bool = True) -> str:
        value = table.get(key, None if needed else "")
        if not isinstance(value, str) or (needed and not value.strip()):
            said = "is missing" if value is None else f"is {value!r}, no text"
            raise self._fault(_join(place, key), said, f'Write {key} = "...".')
        return value

    def _only(self, place: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
        known = tuple(known)
        unknown = next((key for key in table if key not in known), None)
        if unknown is not None:
            near = difflib.get_close_matches(unknown, known, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise self._fault(_join(place, unknown), "is no key that is read", f"{hint}Keys: {', '.join(known)}.")

    def _fault(self, where: str, what: str, advice: str) -> CatalogueError:
        return CatalogueError(f"{self._file}: {where} {what}", advice)


#: Beyond any price or rate; what is larger overflows in the arithmetic.
_LARGEST_NUMBER = 1e30
_ANY = _Bounds(-math.inf, math.inf, "")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _inverse(seconds: Uncertain) -> Uncertain:
    """Jobs a second; the shape between the ends is taken to stay, which for narrow ones it nearly does."""
    return Uncertain(seconds.shape, 1 / seconds.high, 1 / seconds.middle, 1 / seconds.low)


def read_watts(file: str, place: str, table: Mapping[str, Any], key: str) -> Uncertain:
    """Watts of a table that is no catalogue, checked as those of one are. Raises CatalogueError, also where missing."""
    return _Reader(file)._needed(place, table, key, _WATTS)
