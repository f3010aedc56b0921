"""What is known of a job, out of files of measured jobs, ``study wall`` and ``study sweep``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.advice.catalogue import read_text
from rackscope.errors import RackscopeError, UsageError
from rackscope.models.job_points import JobPoint, JobPointsError, parse_job_points
from rackscope.models.uncertain import Uncertain
from rackscope.runs.study import StudyRecord, read_study

#: Factors of a sweep that say how many cores the system used.
_CORE_FACTORS = ("cores", "threads", "workers")
#: Reads that must be found for the data to count as held, as in ``studies/wall``.
_WHOLE = 0.99
#: Where keys are not asked for alike, the first items are given up before reads miss them: no byte is kept in less.
_LEAST_MEMORY = 1.0


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes of memory that a byte of data takes; ``server`` is the one it holds for, ``None`` for any."""

    server: str | None
    per_data_byte: Uncertain
    source: str


@dataclass(frozen=True)
class CoreCurve:
    """Operations a second of ``server`` by how many cores it used."""

    server: str
    cores: tuple[int, ...]
    throughput: tuple[float, ...]
    source: str


@dataclass(frozen=True)
class JobEvidence:
    points: tuple[JobPoint, ...] = ()
    memory: tuple[MemoryNeed, ...] = ()
    curves: tuple[CoreCurve, ...] = ()

    def memory_of(self, server: str) -> MemoryNeed | None:
        """That of the server itself before that of any."""
        own = [one for one in self.memory if one.server == server]
        return next(iter(own or [one for one in self.memory if one.server is None]), None)


def read_job_evidence(sources: Iterable[str]) -> JobEvidence:
    """Sources are files of jobs or studies, as ``PATH`` or ``SERVER=PATH``. Raises RackscopeError for anything else."""
    points: list[JobPoint] = []
    memory: list[MemoryNeed] = []
    curves: list[CoreCurve] = []
    seen: set[Path] = set()
    for text in sources:
        server, path = _named(text)
        if path.resolve() in seen:
            # The same jobs twice would make every interval narrower than what was measured allows.
            raise UsageError(f"{path} is named twice", "Name each file and study once.")
        seen.add(path.resolve())
        if path.is_dir():
            record = read_study(path)
            if record.kind == "wall":
                memory.append(_memory_need(record, server, path))
                points += [] if server is None else _jobs_of_wall(record, server, path)
            elif record.kind == "sweep":
                curves.append(_core_curve(record, server, path))
            else:
                raise UsageError(
                    f"{path} is a study of kind '{record.kind}', which varies neither data size nor cores",
                    "Give one of 'study wall' or 'study sweep', or a file of measured jobs.",
                )
        elif server is not None:
            raise UsageError(f"{path} names its servers itself", f"Give it as {path}, without '{server}='.")
        else:
            hint = "Give a file of jobs (server,machines,data_bytes,seconds), or a study directory."
            points += parse_job_points(read_text(path, JobPointsError, hint), str(path))
    return JobEvidence(tuple(points), tuple(memory), tuple(curves))


def _named(text: str) -> tuple[str | None, Path]:
    """``SERVER=PATH``, unless that whole text is the path of something."""
    server, sign, path = text.partition("=")
    if not sign or Path(text).exists():
        return None, Path(text)
    if not server.strip() or not path:
        raise UsageError(f"'{text}' names no server or no path", "Write it like 'Atom D525=runs/DIR'.")
    return server.strip(), Path(path)


def _memory_need(record: StudyRecord, server: str | None, path: Path) -> MemoryNeed:
    """The limit over the data at which it was full."""
    result = record.result
    limit = _number(result.get("limit_bytes"))
    held, at = (_mapping(one) for one in (result.get("held_bytes"), _mapping(result.get("wall")).get("at_bytes")))
    begin = result.get("misses_begin_bytes")
    if limit is not None and _number(held.get("estimate")):
        need, how = _from_interval(limit, held), "where memory ran out"
    elif limit is not None and isinstance(begin, list) and len(begin) == 2 and all(_number(one) for one in begin):
        low, high = (max(limit / float(one), _LEAST_MEMORY) for one in sorted(begin, reverse=True))
        need, how = Uncertain.uniform(low, high), "where reads began to miss"
    elif limit is not None and _number(at.get("estimate")):
        need, how = _from_interval(limit, at), "where time per byte broke away"
    else:
        raise RackscopeError(
            f"{path} met no wall, so it does not show how much memory the data takes",
            "Run 'rackscope study wall' with a smaller --memory.",
        )
    return MemoryNeed(server, need, f"{path.name} ({record.title}; {how})")


def _from_interval(limit: float, interval: Mapping[str, Any]) -> Uncertain:
    estimate = float(interval["estimate"])
    low, high = _number(interval.get("low")), _number(interval.get("high"))
    if low is None or high is None or not low <= estimate <= high:
        return Uncertain.certain(limit / estimate)
    # Ends of 95 % taken for those of 90 %: a little wider than it need be.
    return Uncertain.lognormal(limit / estimate, max(estimate / low, high / estimate))


def _jobs_of_wall(record: StudyRecord, server: str, path: Path) -> list[JobPoint]:
    """Each size as a job that goes over all of its data once; those that did not find all of it are left out."""
    at = _number(_mapping(_mapping(record.result.get("wall")).get("at_bytes")).get("low"))
    found = []
    points = record.result.get("points")
    for point in points if isinstance(points, list) else []:
        values = _mapping(point)
        size, each = _number(values.get("data_bytes")), _number(values.get("seconds_per_byte"))
        hits = _number(values.get("hit_ratio"))
        if size is None or each is None or (hits is not None and hits < _WHOLE) or (at is not None and size > at):
            continue
        found.append(JobPoint(server, 1, size, size * each, None, path.name))
    if not found:
        raise RackscopeError(f"{path} has no size at which all data was held", "Run the study again.")
    return found


def _core_curve(record: StudyRecord, server: str | None, path: Path) -> CoreCurve:
    if server is None:
        raise UsageError(f"{path} does not say which server of the catalogue it ran on", f"Write SERVER={path}.")
    cells = record.result.get("cells")
    listed = [_mapping(one) for one in cells] if isinstance(cells, list) else []
    levels = [_mapping(one.get("levels")) for one in listed]
    factor = next((name for name in _CORE_FACTORS if any(name in one for one in levels)), None)
    if factor is None:
        raise RackscopeError(
            f"{path} did not vary how many cores the system used", f"Sweep one of: {', '.join(_CORE_FACTORS)}."
        )
    others = {name: value for name, value in levels[0].items() if name != factor}
    cores, throughput = [], []
    for cell, level in zip(listed, levels, strict=True):
        rate = _number(_mapping(cell.get("throughput_operations_per_second")).get("estimate"))
        same = {name: value for name, value in level.items() if name != factor} == others
        if rate is not None and same and str(level.get(factor, "")).isdecimal() and int(level[factor]) > 0:
            cores.append(int(level[factor]))
            throughput.append(rate)
    return CoreCurve(server, tuple(cores), tuple(throughput), f"{path.name} ({record.title})")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    """Above zero and finite; anything else is not known."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return None
    return float(value)
