"""What is said of a server's watts, where no meter is."""

from __future__ import annotations

from dataclasses import asdict

from rackscope.advice.catalogue import read_server_watts
from rackscope.errors import UsageError
from rackscope.host.inventory import read_inventory
from rackscope.models.modelled_power import ServerWatts, host_watts
from rackscope.runs.manifest import AmountPart, ServerPart


def server_watts(server: str | None, share: float | None = None) -> ServerWatts | None:
    """The server that ``FILE`` or ``FILE:NAME`` describes. Raises RackscopeError."""
    if server is None:
        if share is not None:
            raise UsageError("--share is given without --server", "Name it with --server FILE.")
        return None
    return read_server_watts(server)


def server_part(server: str | None, share: float | None) -> ServerPart | None:
    """The same for the manifest, checked against this host before the run. Raises RackscopeError."""
    watts = server_watts(server, share)
    if watts is None:
        return None

    host_watts(read_inventory().to_dict(), watts, share)
    idle, full = (AmountPart.model_validate(asdict(one)) for one in (watts.idle, watts.full))
    return ServerPart(name=watts.name, source=watts.source, idle_watts=idle, full_watts=full, share=share)
