"""The distribution's packages, downloaded and unpacked into a folder: nothing is installed, root is not needed.

apt does what it is good at: it knows what depends on what, fetches over whatever the host is configured for, and
checks every file against the distribution's signature. It is run as the invoking user on folders of our own. When
root invokes it, it keeps its own sandbox (downloads run as ``_apt``), for which the folder must be one that this
user can reach. Where root cannot become ``_apt``, as in a user namespace, the sandbox is switched off.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SystemUnderTestError
from rackscope.systems.account import Account, find_account, is_mapped, may_change_user
from rackscope.systems.base import ProgressText
from rackscope.units import format_bytes

#: The most that is downloaded for one program, and the most that it may take.
_LARGEST_DOWNLOAD_BYTES = 256 * 1024 * 1024
_LONGEST_SECONDS = 600.0
#: Package lists of our own are used again for a day.
_LISTS_SECONDS = 24 * 3600.0

_URI_LINE = re.compile(r"^'[^']*' (?P<file>\S+\.deb) (?P<bytes>\d+)", re.MULTILINE)
_NO_NETWORK = re.compile(
    r"could not resolve|temporary failure resolving|could not connect|unable to connect|connection timed out"
    r"|connection refused|network is unreachable|connection failed",
    re.IGNORECASE,
)
#: What a program is dynamically linked with, as distributions name it. What else its package depends on (users to
#: create, service files, interpreters of scripts) is for installing it, which is not done.
_LIBRARY = re.compile(r"^lib(?!c6$|c-bin$|perl)")

_CONFIGURATION = """\
APT::Install-Recommends "false";
APT::Install-Suggests "false";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Update::Error-Mode "any";
Debug::NoLocking "true";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Cache::archives "{archives}";
APT::Sandbox::User "{sandbox_user}";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


@dataclass(frozen=True)
class Package:
    """One package file, as apt names it."""

    name: str
    version: str
    architecture: str
    size_bytes: int

    @classmethod
    def parse(cls, file: str, size_bytes: int) -> Package:
        """From NAME_VERSION_ARCHITECTURE.deb. Raises ValueError."""
        name, version, architecture = file.removesuffix(".deb").split("_")
        return cls(name, urllib.parse.unquote(version), architecture, size_bytes)

    @property
    def selector(self) -> str:
        """As ``apt-get download`` takes it."""
        place = "" if self.architecture == "all" else f":{self.architecture}"
        return f"{self.name}{place}={self.version}"


class AptError(Exception):
    """apt did not do what it was asked; the text is its own first complaint."""

    @property
    def is_network(self) -> bool:
        """Whether nothing could be reached, so that trying again elsewhere is in vain."""
        return _NO_NETWORK.search(str(self)) is not None


def is_available() -> bool:
    """Whether this host has apt and dpkg."""
    return all(shutil.which(program) for program in ("apt-get", "dpkg-deb"))


def unpack(names: Sequence[str], into: Path, lists_folder: Path, progress: ProgressText) -> list[Package]:
    """Download packages ``names`` with the libraries that this host does not have, and unpack them below ``into``.

    ``lists_folder`` keeps package lists of our own, for a host whose lists are missing or old. Raises
    SystemUnderTestError.
    """
    with _staging() as staging:
        apt = _Apt(staging, time.monotonic() + _LONGEST_SECONDS)
        try:
            packages = _download(apt, names, lists_folder, progress)
            progress(f"unpacking {len(packages)} package{'' if len(packages) == 1 else 's'}")
            for file in sorted(apt.downloads.glob("*.deb")):
                apt.run(["dpkg-deb", "--extract", str(file), str(into)], "/")
        except AptError as error:
            advice = (
                "Is the network (or http_proxy) set up?" if error.is_network else "Does 'apt-get update' work here?"
            )
            raise SystemUnderTestError(
                f"the distribution's packages for {' '.join(names)} could not be fetched: {error}",
                f"{advice} Or install {names[0]} yourself, so that it is on PATH.",
            ) from error
    return packages


def _download(apt: _Apt, names: Sequence[str], lists_folder: Path, progress: ProgressText) -> list[Package]:
    """With the host's lists, else with ours, else with ours renewed."""
    first_error: AptError | None = None
    attempts: list[Path | None] = [None]
    if _is_recent(lists_folder):
        attempts.append(lists_folder)
    attempts.append(lists_folder)
    for number, lists in enumerate(attempts):
        try:
            if lists is not None and number == len(attempts) - 1:
                progress("reading the distribution's package lists")
                apt.renew_lists(lists)
            packages = apt.plan(names, lists)
            size = sum(package.size_bytes for package in packages)
            if size > _LARGEST_DOWNLOAD_BYTES:
                raise AptError(f"that would be a download of {format_bytes(size)}")
            progress(f"downloading {len(packages)} packages, {format_bytes(size)}")
            apt.download(packages, lists)
        except AptError as error:
            first_error = first_error or error
            if error.is_network:
                raise
        else:
            return packages
    assert first_error is not None
    raise first_error


def _is_recent(lists_folder: Path) -> bool:
    try:
        return 0 <= time.time() - lists_folder.stat().st_mtime < _LISTS_SECONDS
    except OSError:
        return False


class _Apt:
    """apt on folders of its own below ``staging``."""

    def __init__(self, staging: Path, deadline: float) -> None:
        self.downloads = staging / "downloads"
        self._staging = staging
        self._deadline = deadline
        self._configuration = staging / "apt.conf"
        archives = staging / "archives"
        for folder in (self.downloads, archives, archives / "partial"):
            folder.mkdir()
        sandbox = _sandbox()
        if sandbox is not None:
            os.chown(self.downloads, sandbox.user_id, -1)
        text = _CONFIGURATION.format(archives=archives, sandbox_user=sandbox.name if sandbox else "root")
        self._configuration.write_text(text, encoding="utf-8")

    def plan(self, names: Sequence[str], lists: Path | None) -> list[Package]:
        """The packages and the libraries they need that are not installed. Raises AptError."""
        # "install" only says what it would fetch: --print-uris.
        output = self.apt_get(["install", "--yes", "--print-uris", "--reinstall", "--download-only", *names], lists)
        files = [(match["file"], int(match["bytes"])) for match in _URI_LINE.finditer(output)]
        try:
            packages = [Package.parse(file, size) for file, size in files]
        except ValueError as error:
            raise AptError(f"apt named a package file that cannot be read ({error})") from error
        missing = set(names) - {package.name for package in packages}
        if missing:
            raise AptError(f"apt offers no package {', '.join(sorted(missing))}")
        return [package for package in packages if package.name in names or _LIBRARY.match(package.name)]

    def download(self, packages: Sequence[Package], lists: Path | None) -> None:
        """Fetch the files, which apt checks against the signed lists. Raises AptError."""
        self.apt_get(["download", *(package.selector for package in packages)], lists)
        found = len(list(self.downloads.glob("*.deb")))
        if found != len(packages):
            raise AptError(f"{found} of {len(packages)} packages arrived")

    def renew_lists(self, lists: Path) -> None:
        """Fetch the package lists of all configured sources into ``lists``. Raises AptError when none came."""
        fresh = self._staging / "lists"
        shutil.rmtree(fresh, ignore_errors=True)
        (fresh / "partial").mkdir(parents=True)
        error: AptError | None = None
        try:
            self.apt_get(["update"], fresh)
        except AptError as problem:
            # One source that cannot be reached does not spoil the others.
            error = problem
        if not any(fresh.glob("*_Packages*")):
            raise error or AptError("no package list came from the configured sources")
        shutil.rmtree(lists, ignore_errors=True)
        lists.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(fresh, lists)
        os.utime(lists)

    def apt_get(self, arguments: Sequence[str], lists: Path | None) -> str:
        """What ``apt-get`` prints. Raises AptError."""
        command = ["apt-get", "-q", "-c", str(self._configuration)]
        if lists is not None:
            command += ["-o", f"Dir::State::lists={lists}"]
        return self.run([*command, *arguments], self.downloads)

    def run(self, command: Sequence[str], folder: Path | str) -> str:
        """Run to the end, or to the deadline; what it printed. Raises AptError."""
        environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise AptError(f"{command[0]}: {error.strerror}") from error
        with process:
            try:
                output, errors = process.communicate(timeout=max(0.0, self._deadline - time.monotonic()))
            except BaseException as error:
                # It and the methods that it runs share a session of their own.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise AptError(f"it took longer than {_LONGEST_SECONDS:g} s") from error
                raise
        if process.returncode != 0:
            raise AptError(_first_complaint(f"{output}\n{errors}") or f"{command[0]} ended with {process.returncode}")
        return output


def _first_complaint(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    for prefix in ("E: ", "Err:", "dpkg-deb: error: ", "W: "):
        for line in lines:
            if line.startswith(prefix):
                return line.removeprefix("E: ").rstrip(".")[:300]
    return ""


@contextlib.contextmanager
def _staging() -> Iterator[Path]:
    """A temporary folder that ``_apt`` can pass through, so that root's downloads stay in apt's sandbox."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="rackscope-get-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SystemUnderTestError(
            f"there is no space for temporary files: {error.strerror}", "Set TMPDIR to a writable folder."
        ) from error
    with temporary as folder:
        if os.geteuid() == 0:
            Path(folder).chmod(0o711)
        yield Path(folder)


def _sandbox() -> Account | None:
    """The user that apt downloads as when root runs it; ``None`` where that is not root or cannot become that user."""
    account = find_account("_apt") if os.geteuid() == 0 else None
    return account if account is not None and is_mapped(account) and may_change_user() else None
