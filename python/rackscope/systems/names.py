"""What to say to a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rackscope.errors import UsageError


def unknown_name(what: str, name: str, heading: str, known: Iterable[str]) -> UsageError:
    """An error such as: there is no system 'redit'. Did you mean redis? Systems: cache, memcached, redis."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=2)
    question = f"Did you mean {' or '.join(near)}? " if near else ""
    return UsageError(f"{what} '{name}'", f"{question}{heading}: {', '.join(names) or 'none'}.")
