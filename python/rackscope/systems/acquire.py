"""Making programs available: found on PATH or in the user's cache, else unpacked there from the distribution."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rackscope.errors import SystemUnderTestError, unknown_name
from rackscope.systems import apt
from rackscope.systems.base import Acquired, ProgressText
from rackscope.systems.process import find_companion
from rackscope.systems.tools import Tool, tools

_RECORD = "record.json"
_RECORD_VERSION = 1
#: Seconds to wait for another rackscope that is fetching.
_LOCK_SECONDS = 900.0


def list_acquirable() -> dict[str, str]:
    """Everything that ``rackscope get`` knows, with a description: the systems and the tools."""
    from rackscope.systems import list_systems

    described = {tool.name: tool.description for tool in tools().values()}
    return dict(sorted((described | {system.name: system.description for system in list_systems()}).items()))


def acquire_by_name(name: str, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
    """A system or a tool. Raises UsageError for an unknown name, SystemUnderTestError when it is not to be had."""
    from rackscope.systems import list_systems

    for system in list_systems():
        if system.name == name:
            return system.acquire(fetch=fetch, progress=progress)
    if name not in tools():
        raise unknown_name("there is nothing to get called", name, "Known", list_acquirable())
    return acquire_tool(name, fetch=fetch, progress=progress)


def acquire_tool(name: str, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
    """A declared tool, as ``acquire_program``."""
    return acquire_program(tools()[name], fetch=fetch, progress=progress)


def acquire_program(*candidates: Tool, fetch: bool, progress: ProgressText | None = None) -> Acquired:
    """The first of a program's names that is on PATH; else the first name's packages: from the cache, or (``fetch``)
    unpacked into that. Raises SystemUnderTestError."""
    say = progress or (lambda _: None)
    for tool in candidates:
        found = _on_path(tool, say)
        if found is not None:
            return found
    tool = candidates[0]
    if tool.packages:
        return _in_cache(tool) or (_fetch(tool, say) if fetch else _refuse(tool))
    programs = " or ".join(tool.program for tool in candidates)
    raise SystemUnderTestError(
        f"{candidates[0].name} is not on this machine: no {programs} on PATH", f"Install it, so that {programs} is."
    )


def acquire_built_in(tool: Tool) -> Acquired:
    """A program that came with rackscope. Raises SystemUnderTestError when it is missing or does not run."""
    program = find_companion(tool.program)
    try:
        return Acquired(tool.name, program, tool.ask_version(program, {}), "built in")
    except ValueError as error:
        raise SystemUnderTestError(f"{tool.description} does not run: {error}", "Build it again.") from error


def cache_folder() -> Path:
    """Where unpacked programs are kept: ``$XDG_CACHE_HOME/rackscope/systems``, by default below ``~/.cache``."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        # The XDG base directory specification: a relative path is invalid and ignored.
        base = configured if configured.is_absolute() else Path.home() / ".cache"
    except RuntimeError as error:
        raise SystemUnderTestError("this user has no home folder to keep programs in", "Set XDG_CACHE_HOME.") from error
    return base / "rackscope" / "systems"


def _on_path(tool: Tool, say: ProgressText) -> Acquired | None:
    # Servers live in sbin, which is not on every user's PATH.
    found = shutil.which(tool.program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))
    if found is None:
        return None
    program = Path(found).absolute()
    try:
        return Acquired(tool.name, program, tool.ask_version(program, {}), "PATH")
    except ValueError as error:
        say(f"not using {program}: {error}")
        return None


def _refuse(tool: Tool) -> Acquired:
    raise SystemUnderTestError(
        f"{tool.name} is not on this machine: no {tool.program} on PATH or in {cache_folder() / tool.name}",
        f"Run 'rackscope get {tool.name}'.",
    )


def _in_cache(tool: Tool) -> Acquired | None:
    """The newest one that still works: an upgrade of the host may have taken a library from it."""
    candidates = []
    try:
        record_files = list((cache_folder() / tool.name).glob(f"[!.]*/{_RECORD}"))
    except OSError:
        # Another user's home (HOME kept by sudo or su): there is nothing in it for this one.
        return None
    for record_file in record_files:
        record = _read_record(record_file)
        if record is not None:
            candidates.append((str(record["acquired_at"]), record_file.parent, record))
    for _, folder, record in sorted(candidates, key=lambda candidate: candidate[0], reverse=True):
        acquired = _from_record(tool, folder, record)
        with contextlib.suppress(ValueError):
            tool.ask_version(acquired.program, acquired.environment)
            return acquired
    return None


def _read_record(file: Path) -> dict[str, Any] | None:
    """A record that this rackscope and this machine can use; a home folder may be shared by several kinds."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        usable = record["record_version"] == _RECORD_VERSION and record["machine"] == platform.machine()
        complete = {"program", "version", "source", "libraries", "acquired_at"} <= record.keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return record if usable and complete else None


def _from_record(tool: Tool, folder: Path, record: dict[str, Any]) -> Acquired:
    libraries = os.pathsep.join(str(folder / library) for library in record["libraries"])
    environment = {"LD_LIBRARY_PATH": libraries} if libraries else {}
    return Acquired(tool.name, folder / record["program"], record["version"], record["source"], environment)


def _fetch(tool: Tool, say: ProgressText) -> Acquired:
    if not apt.is_available():
        raise SystemUnderTestError(
            f"{tool.name} is not on PATH, and this host has no apt to fetch it with",
            f"Install {' '.join(tool.packages)} with this host's package manager, so that {tool.program} is on PATH.",
        )
    top = cache_folder()
    try:
        top.mkdir(parents=True, exist_ok=True)
        with _locked(top / ".lock", say):
            # Another rackscope may have fetched it while this one waited.
            return _in_cache(tool) or _unpack(tool, top, say)
    except OSError as error:
        raise SystemUnderTestError(
            f"{tool.name} cannot be kept in {top}: {error.strerror or error}",
            "Free some space there, or set XDG_CACHE_HOME to a folder that can be written.",
        ) from error


def _unpack(tool: Tool, top: Path, say: ProgressText) -> Acquired:
    """Unpack into a temporary folder, try it, and give it its name: a folder with a name is a folder that works."""
    home = top / tool.name
    home.mkdir(exist_ok=True)
    for left in home.glob(".new-*"):
        # Under the lock: it was left by one that was killed.
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=".new-", dir=home))
    try:
        packages = apt.unpack(tool.packages, folder / "root", top.parent / "apt-lists", say)
        record = {
            "record_version": _RECORD_VERSION,
            "machine": platform.machine(),
            "program": str(_find_program(tool, folder).relative_to(folder)),
            "libraries": sorted({str(file.parent.relative_to(folder)) for file in folder.rglob("lib*.so*")}),
            "packages": [{"name": package.name, "version": package.version} for package in packages],
            "source": _describe(tool, packages),
            "acquired_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        acquired = _from_record(tool, folder, record | {"version": ""})
        try:
            record["version"] = tool.ask_version(acquired.program, acquired.environment)
        except ValueError as error:
            raise SystemUnderTestError(
                f"{tool.name} was fetched but does not run here: {error}",
                f"Install {' '.join(tool.packages)} with this host's package manager.",
            ) from error
        (folder / _RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
        final = home / str(record["version"])
        if final.exists():
            # It did not work any more, or it would have been used.
            shutil.rmtree(final)
        folder.rename(final)
        return _from_record(tool, final, record)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _find_program(tool: Tool, folder: Path) -> Path:
    for place in ("usr/bin", "usr/sbin", "bin", "sbin"):
        program = folder / "root" / place / tool.program
        if os.access(program, os.X_OK):
            return program
    raise SystemUnderTestError(
        f"the packages {' '.join(tool.packages)} hold no program {tool.program}",
        f"Install {tool.name} yourself, so that it is on PATH.",
    )


def _describe(tool: Tool, packages: list[apt.Package]) -> str:
    try:
        distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        distribution = "the distribution"
    versions = {package.name: package.version for package in packages}
    return f"{distribution}: {', '.join(f'{name} {versions[name]}' for name in tool.packages)}"


@contextlib.contextmanager
def _locked(file: Path, say: ProgressText) -> Iterator[None]:
    """Hold the lock for one fetch at a time; the kernel lets go of it however this process ends."""
    deadline = time.monotonic() + _LOCK_SECONDS
    with file.open("a") as lock:
        waiting = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SystemUnderTestError(
                        f"another rackscope has been fetching for more than {_LOCK_SECONDS / 60:.0f} minutes",
                        f"Look for a process that holds {file}.",
                    ) from None
            if not waiting:
                say("waiting for another rackscope that is fetching")
                waiting = True
            time.sleep(0.1)
        yield
