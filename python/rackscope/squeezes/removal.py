"""Removing what was made for a system: control groups and network links; and writing the kernel's control files."""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

from rackscope.errors import SqueezeError

#: Every group of rackscope's is below a folder of this name, and nothing else is.
PARENT_NAME = "rackscope"
#: The keeper gives a system five seconds before it kills it, and itself two more.
_LEAVING_SECONDS = 10.0
_KILLED_SECONDS = 5.0
_POLL_SECONDS = 0.02
#: Only links of this name are ever removed.
_LINK_NAME = re.compile(r"rs[0-9]{1,10}-[0-9]{1,2}[hs]")


def write_control(path: Path, content: str) -> None:
    """One ``write`` to a file that the kernel keeps; it must be there. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(descriptor, content.encode())
    except OSError as error:
        # The call alone does not say which file it was.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def remove_control_group(path: Path) -> None:
    """Remove a group that ``make_control_group`` made, once its processes have left; those that stay are killed.

    They are the system's: nothing else is ever put in there. The folder that holds all groups is left while another
    one is in it. Raises SqueezeError, when the path is of no such group or processes cannot be killed, and OSError.
    """
    if path.name == PARENT_NAME:
        _remove_folder_if_empty(path)
        return
    if path.parent.name != PARENT_NAME:
        raise SqueezeError(f"{path} is not a control group of rackscope's, and was left")
    if not _remove_when_left(path, _LEAVING_SECONDS):
        _kill_members(path)
        if not _remove_when_left(path, _KILLED_SECONDS):
            members = ", ".join(map(str, _members(path))) or "of groups below it"
            raise SqueezeError(f"control group {path} still holds processes ({members})", "End them by hand.")
    _remove_folder_if_empty(path.parent)


def remove_link(name: str) -> None:
    """Remove a veth of ours; one that is gone counts as removed. Raises SqueezeError for another link, and OSError."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    if not _LINK_NAME.fullmatch(name):
        raise SqueezeError(f"{name} is not a network link of rackscope's, and was left")
    with IPRoute() as netlink:
        for index in netlink.link_lookup(ifname=name):
            try:
                netlink.link("del", index=index)
            except NetlinkError as error:
                if error.code != errno.ENODEV:
                    raise OSError(error.code, os.strerror(error.code), name) from error


def _remove_when_left(path: Path, seconds: float) -> bool:
    """Whether it is gone; a group that processes are still leaving is busy."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            _remove_folder(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in {errno.EBUSY, errno.ENOTEMPTY}:
                raise
        else:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)


def _kill_members(path: Path) -> None:
    with suppress(OSError):
        # Linux 5.14, version 2: all of them at once, however fast they fork.
        write_control(path / "cgroup.kill", "1")
        return
    for pid in _members(path):
        if pid != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _members(path: Path) -> list[int]:
    try:
        # 0 is a process of another pid namespace.
        return [pid for pid in map(int, (path / "cgroup.procs").read_text().split()) if pid > 0]
    except (OSError, ValueError):
        return []


def _remove_folder_if_empty(path: Path) -> None:
    try:
        _remove_folder(path)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EBUSY, errno.ENOTEMPTY}:
            raise


def _remove_folder(path: Path) -> None:
    path.rmdir()
