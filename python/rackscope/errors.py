"""What rackscope raises when a user can act on it; the command line turns each into one clear line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar


class RackscopeError(Exception):
    """Something to act on: ``what`` happened, in one line, and ``advice``; ``details`` are for programs."""

    exit_status = 1

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.what = " ".join(what.split()).rstrip(".")
        self.advice = " ".join(advice.split())
        self.details: dict[str, Any] = {}
        #: Where what was measured until then is, as a sentence; empty when nothing is.
        self.kept = ""

    def __str__(self) -> str:
        return f"{self.what}. {self.advice}".strip() if self.advice else f"{self.what}."


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after what was under way has been put in order; ``details`` and ``kept`` are as in RackscopeError."""

    def __init__(self) -> None:
        super().__init__()
        self.details: dict[str, Any] = {}
        self.kept = ""


class UsageError(RackscopeError):
    """What was asked for cannot be: an unknown name, a unit that does not parse, a core that is not there."""

    exit_status = 2


class SystemUnderTestError(RackscopeError):
    """A system under test could not be acquired, started or made ready, or it died."""


class LoadError(RackscopeError):
    """The load generator could not do what was asked, or the system answered wrongly."""


class RunDirectoryError(RackscopeError):
    """A run directory is missing, damaged, of a newer format, or not one."""


class ProbeError(RackscopeError):
    """The host cannot be sampled."""


class SqueezeError(RackscopeError):
    """A resource could not be taken away, or not be given back."""


class StudyError(RackscopeError):
    """A study cannot go on, or what it measured supports no answer."""


class ModelError(RackscopeError):
    """A model cannot be fitted or asked: data are missing, too few, or in units that cannot be."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean redis? ``, to begin an advice with; empty where no known name is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {near[0]}? " if near else ""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_One = TypeVar("_One", bound=_Named)


def named(names: Sequence[str], known: Iterable[_One], what: str, heading: str) -> list[_One]:
    """Those of ``known`` that are named, each once; all without names. Raises the UsageError of ``unknown_name``."""
    by_name = {one.name: one for one in known}
    for name in names:
        if name not in by_name:
            raise unknown_name(what, name, heading, by_name)
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def unknown_name(what: str, name: str, heading: str, known: Iterable[str]) -> UsageError:
    """An error such as: there is no system 'redit'. Did you mean redis? Systems: cache, memcached, redis."""
    names = sorted(known)
    return UsageError(f"{what} '{name}'", f"{did_you_mean(name, names)}{heading}: {', '.join(names) or 'none'}.")
