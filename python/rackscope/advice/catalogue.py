"""Catalogues of servers from files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from rackscope.models.catalogue import Catalogue, CatalogueError, ServerFile, parse_catalogue, parse_servers
from rackscope.models.modelled_power import ServerWatts, parse_server_watts

#: Larger than any list of servers that a person keeps: what is larger is another file.
_LARGEST_BYTES = 16 * 1024**2
SAMPLE = "servers.toml"


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue in a file. Raises CatalogueError when it cannot be read or is wrong, with the file and the key."""
    return parse_catalogue(_text(path), str(path))


def read_servers(path: Path) -> ServerFile:
    """The servers in a file, which may lack what only costs need. Raises CatalogueError as ``read_catalogue``."""
    return parse_servers(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise CatalogueError(f"{path} is too large for a catalogue", "Give a TOML file with servers.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogueError(f"cannot read {path}: {error.strerror}", "Give a TOML file with servers.") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{path} is not text in UTF-8", "Give a TOML file with servers.") from error


def sample_catalogue() -> Catalogue:
    """The papers' servers, which rackscope comes with."""
    return parse_catalogue(files("rackscope.advice").joinpath(SAMPLE).read_text(encoding="utf-8"), SAMPLE)


def read_server_watts(place: str) -> ServerWatts:
    """The watts of a server in ``FILE`` or ``FILE:NAME``. Raises CatalogueError, with the file and the key."""
    path, name = Path(place), None
    if not path.exists() and ":" in place:
        file, _, name = place.rpartition(":")
        path = Path(file)
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise CatalogueError(f"{path} is too large for a server", "Give a TOML file with its watts.")
        return parse_server_watts(path.read_text(encoding="utf-8"), str(path), name)
    except OSError as error:
        raise CatalogueError(f"cannot read {path}: {error.strerror}", "Give a TOML file with its watts.") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{path} is not text in UTF-8", "Give a TOML file with its watts.") from error
