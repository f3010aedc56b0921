"""Catalogues of servers from files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue, CatalogueError, ServerFile, parse_catalogue, parse_servers
from rackscope.models.modelled_power import ServerWatts, parse_server_watts

#: Larger than any list of servers or jobs that a person keeps: what is larger is another file.
_LARGEST_BYTES = 16 * 1024**2
_SERVERS = "Give a TOML file with servers."
SAMPLE = "servers.toml"


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue in a file. Raises CatalogueError when it cannot be read or is wrong, with the file and the key."""
    return parse_catalogue(read_text(path, CatalogueError, _SERVERS), str(path))


def read_servers(path: Path) -> ServerFile:
    """The servers in a file; what only costs need may be missing. Raises CatalogueError as ``read_catalogue``."""
    return parse_servers(read_text(path, CatalogueError, _SERVERS), str(path))


def sample_catalogue() -> Catalogue:
    """The papers' servers, which rackscope comes with."""
    return parse_catalogue(files("rackscope.advice").joinpath(SAMPLE).read_text(encoding="utf-8"), SAMPLE)


def read_server_watts(place: str) -> ServerWatts:
    """The watts of a server in ``FILE`` or ``FILE:NAME``. Raises CatalogueError, with the file and the key."""
    path, name = Path(place), None
    if not path.exists() and ":" in place:
        file, _, name = place.rpartition(":")
        path = Path(file)
    return parse_server_watts(read_text(path, CatalogueError, "Give a TOML file with its watts."), str(path), name)


def read_text(path: Path, kind: type[RackscopeError], advice: str) -> str:
    """A file that a person wrote. Raises ``kind``, with ``advice``, for one that is too large or no text."""
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise kind(f"{path} is too large to have been written by hand", advice)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise kind(f"cannot read {path}: {error.strerror}", advice) from error
    except UnicodeDecodeError as error:
        raise kind(f"{path} is not text in UTF-8", advice) from error
