"""Catalogues of servers from files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from rackscope.models.catalogue import Catalogue, CatalogueError, parse_catalogue

#: Larger than any list of servers that a person keeps: what is larger is another file.
_LARGEST_BYTES = 16 * 1024**2
SAMPLE = "servers.toml"


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue in a file. Raises CatalogueError when it cannot be read or is wrong, with the file and the key."""
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise CatalogueError(f"{path} is too large for a catalogue", "Give a TOML file with servers.")
        return parse_catalogue(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise CatalogueError(f"cannot read {path}: {error.strerror}", "Give a TOML file with servers.") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{path} is not text in UTF-8", "Give a TOML file with servers.") from error


def sample_catalogue() -> Catalogue:
    """The papers' servers, which rackscope comes with."""
    return parse_catalogue(files("rackscope.advice").joinpath(SAMPLE).read_text(encoding="utf-8"), SAMPLE)
