"""What a study is, what it is asked, and what it is conducted with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rackscope.runs.options import ProgressCallback, RunOptions
    from rackscope.runs.study import StudyRecord

OptionKind = Literal["count", "number", "duration", "rate", "size", "text", "flag"]


@dataclass(frozen=True)
class Option:
    """Something that can be asked of a study on the command line: ``--NAME VALUE``.

    ``default`` is written as a user would write it; ``None`` leaves it out of ``Request.values``' defaults (the value
    is ``None``). A ``flag`` takes no value. ``repeated`` ones may be given again and arrive as a tuple.
    """

    name: str
    kind: OptionKind
    help: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    repeated: bool = False
    metavar: str | None = None


@dataclass(frozen=True)
class Request:
    """What was asked: the run, and the study's options by name (``_`` for ``-``) in bytes, seconds, rates a second."""

    run: RunOptions | None
    values: Mapping[str, Any]
    out: Path | None = None
    command_line: tuple[str, ...] = ()

    @property
    def asked(self) -> RunOptions:
        """The run, of a study that has one."""
        assert self.run is not None
        return self.run


@dataclass
class Conduct:
    """A study under way: its directory, record and progress; ``save`` keeps what it says so far on disk."""

    folder: Path
    record: StudyRecord
    request: Request
    progress: ProgressCallback
    save: Callable[[], None]
    #: Makes the folder of a member run, and notes it in the record: ``member(name, label)``.
    member: Callable[[str, str], Path]

    @contextmanager
    def described(self, describe: Callable[[], None]) -> Iterator[Callable[[], None]]:
        """Gives what puts the record on disk after ``describe`` has put what is known into it; at the end, however it
        comes, ``describe`` is called once more."""

        def save() -> None:
            describe()
            self.save()

        try:
            yield save
        finally:
            describe()


def later(where: str) -> Callable[..., Any]:
    """``MODULE:NAME`` of ``rackscope.studies``, imported when it is called: what lists studies stays light."""
    module, _, name = where.partition(":")

    def call(*given: Any) -> Any:
        return getattr(importlib.import_module(f"rackscope.studies.{module}"), name)(*given)

    return call


@dataclass(frozen=True)
class Study:
    """One kind of study; one file each, found by its module attribute ``STUDY``.

    ``subject`` is ``workload`` for a study of one system under one workload, ``system`` for one of a system that brings
    its own workloads, ``workloads`` for one of several systems, each with a workload (``Request.values["workloads"]``
    has the texts), and ``none`` for one that brings both. With ``optional`` both may be left out: they are then
    empty in ``Request.run``, and ``check`` says what is missing.
    ``run_defaults`` are fields of RunOptions that differ here from those of ``rackscope run``.
    """

    name: str
    help: str
    description: str
    conduct: Callable[[Conduct], None]
    subject: Literal["workload", "system", "workloads", "optional", "none"] = "workload"
    options: tuple[Option, ...] = ()
    run_defaults: Mapping[str, Any] = field(default_factory=dict)
    #: Words for the title, from the request; by default the study's name and its subject.
    title: Callable[[Request], str] | None = None
    #: Raises UsageError for an invalid request, before a study directory is made.
    check: Callable[[Request], object] | None = None
    #: One that can go on where it was stopped has a text option ``resume``: the study directory, whose record it gets.
    resumable: bool = False
