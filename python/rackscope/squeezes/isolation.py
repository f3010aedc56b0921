"""The control group and the network namespace in which a system can be squeezed: made, and removed again."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Isolation
from rackscope.squeezes.control_groups import find_own_groups, make_control_group
from rackscope.squeezes.held import Changes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.namespaces import PrivateNetwork, make_private_network

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_-]+")
#: What a network of its own takes (network_namespaces(7), capabilities(7)).
_RIGHTS = "a network namespace takes root (CAP_SYS_ADMIN, CAP_NET_ADMIN)"


@contextmanager
def make_isolation(
    name: str, journal: Journal, *, network: bool = True, queues: int | None = None, root: Path = Path("/")
) -> Iterator[Isolation]:
    """A control group, and with ``network`` a network namespace, for a system; ``name`` is for people to recognise it.

    What cannot be made is in ``Isolation.missing`` with the reason. Everything is in the journal before it is made, and
    undone in the end: the system must have been stopped by then. ``queues`` are those of either end of the veth, by
    default the kernel's. Raises SqueezeError, in the end, when something cannot be undone.
    """
    changes = Changes(journal)
    private: PrivateNetwork | None = None
    try:
        missing: dict[str, str] = {}
        group = None
        try:
            # No other control group has the name, also none that another container makes.
            unique = f"{_NOT_IN_A_NAME.sub('-', name.lower())[:40]}-{os.getpid()}-{os.urandom(3).hex()}"
            group, without = make_control_group(unique, find_own_groups(root), changes)
            missing |= without
        except SqueezeError as error:
            missing["control_group"] = error.what
        if network:
            try:
                private = make_private_network(changes, queues)
            except (OSError, SqueezeError) as error:
                missing["network"] = _why(error)
        else:
            missing["network"] = "it was not asked for"
        yield Isolation(
            control_groups=group.folders if group else {},
            cgroup_version=group.version if group else None,
            network_namespace=private.namespace if private else None,
            address=private.address if private else None,
            host_interface=private.host_interface if private else None,
            system_interface=private.system_interface if private else None,
            missing=missing,
        )
    finally:
        try:
            changes.undo_to(0)
        finally:
            if private is not None:
                private.close()


def _why(error: OSError | SqueezeError) -> str:
    if isinstance(error, SqueezeError):
        return error.what
    if error.errno in {errno.EPERM, errno.EACCES}:
        return f"{_RIGHTS}: {error.strerror}"
    if error.errno in {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}:
        return f"this kernel has no network namespaces or no veth: {error.strerror}"
    return f"no network namespace can be made: {error.strerror}"
