"""``rackscope.study``: what the verb ``study`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from rackscope import units
from rackscope.api.keeping import keeping
from rackscope.api.settings import ProgressCallback, RunSettings, silent
from rackscope.errors import UsageError, did_you_mean, named
from rackscope.runs.options import Progress, run_options
from rackscope.studies import list_studies, load_study
from rackscope.studies.base import Request

if TYPE_CHECKING:
    from rackscope.api.study import Study
    from rackscope.studies.base import Option
    from rackscope.studies.base import Study as Kind

#: Members have reports of their own where they are few enough to be looked at one by one.
_FEW_MEMBERS = 3
_PARSERS: dict[str, Callable[[str], Any]] = {
    "count": units.parse_count,
    "number": float,
    "duration": units.parse_duration_seconds,
    "rate": units.parse_rate_per_second,
    "size": units.parse_size_bytes,
    "text": str,
}


def study(
    kind: str,
    system: str = "",
    workload: str = "",
    *,
    workloads: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    progress: ProgressCallback = silent,
    **settings: Unpack[RunSettings],
) -> Study:
    """Conduct a study of ``kind``, write its directory and report, and open it.

    ``kind`` is the name of a study (``pressure``, ``slo``, ``sweep``, ...), or the path of a .py file that defines one.

    ``options`` are the study's own, by the names that ``rackscope study KIND --help`` lists: as text, as on the command
    line (``{"window": "400ms"}``), or as a number in seconds, bytes or operations a second. ``workloads`` are those of
    a study of several (``SYSTEM:WORKLOAD``). ``settings`` are fields of RunOptions, as in ``rackscope.run``; ``out`` is
    the study's directory.

    Raises RackscopeError, or Interrupted after Ctrl-C; ``details["study_directory"]`` says where what was found is.
    """
    chosen = _find(kind)
    values = _values(chosen, options or {})
    if chosen.subject == "workloads":
        values["workloads"] = tuple(workloads)
    out = settings.pop("out", None)
    command_line = settings.get("command_line", ())
    run = None
    if chosen.subject != "none":
        run = run_options(system, workload, **{**chosen.run_defaults, **settings})
    request = Request(run, values, out, command_line)
    from rackscope.api.study import Study
    from rackscope.studies.conduct import begin, conduct

    with keeping("study_directory", partial(_save, chosen)) as kept:
        under_way = begin(chosen, request, progress)
        kept.folder = under_way.folder
        conduct(chosen, under_way)
        progress(Progress("writing the report"))
        _write_reports(under_way.folder)
    return Study.open(under_way.folder)


def parse_option(option: Option, value: Any) -> Any:
    """A value of a study's option, written as text or already a number. Raises UsageError."""
    if not isinstance(value, str) or option.kind == "flag":
        return value
    try:
        return _PARSERS[option.kind](value)
    except ValueError:
        raise UsageError(f"'{value}' is not a {option.kind}", f"Give --{option.name} another value.") from None


def _find(name: str) -> Kind:
    if name.endswith(".py"):
        return load_study(Path(name))
    return named([name], list_studies(), "there is no study", "There are")[0]


def _values(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of the study with its value or default, by its name with ``_`` for ``-``."""
    options = {option.name.replace("-", "_"): option for option in kind.options}
    asked = {name.replace("-", "_"): value for name, value in given.items()}
    for name in asked.keys() - options.keys():
        hint = did_you_mean(name, options) or f"It has {', '.join(options)}."
        raise UsageError(f"study {kind.name} has no option '{name}'", hint)
    values: dict[str, Any] = {}
    for name, option in options.items():
        value = asked.get(name)
        if option.repeated:
            several = (value,) if isinstance(value, str) else tuple(value or ())
            values[name] = tuple(parse_option(option, one) for one in several)
        elif value is None:
            unasked = False if option.kind == "flag" else None
            values[name] = unasked if option.default is None else parse_option(option, option.default)
        else:
            values[name] = parse_option(option, value)
        for one in values[name] if option.repeated else (values[name],):
            if option.choices and one is not None and one not in option.choices:
                raise UsageError(f"invalid {name} '{one}'", f"Choose from {', '.join(option.choices)}.")
    return values


def _write_reports(folder: Path) -> None:
    from rackscope.api.study import Study

    written = Study.open(folder)
    if len(written.members) <= _FEW_MEMBERS:
        for member in written.runs.values():
            member.write_report()
    written.write_report()


def _save(kind: Kind, folder: Path) -> str:
    _write_reports(folder)
    go_on = f"; go on with 'rackscope study {kind.name} --resume {folder}'" if kind.resumable else ""
    return f"what was found until then is in {folder}{go_on}"
