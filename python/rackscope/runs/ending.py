"""How work on a directory ended, in the words that its file keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from rackscope.errors import RackscopeError


@dataclass
class Ending:
    """``status`` and ``reason`` are final once the block that watches is over."""

    status: Literal["complete", "interrupted", "failed"] = "failed"
    reason: str = ""


@contextmanager
def watched() -> Iterator[Ending]:
    """Write into the ending how the block ends; whatever it raised is raised on."""
    ending = Ending()
    try:
        yield ending
        ending.status = "complete"
    except KeyboardInterrupt as stop:
        ending.status, ending.reason = "interrupted", str(stop) or "stopped by Ctrl-C"
        raise
    except RackscopeError as error:
        ending.reason = error.what
        raise
    except BaseException as error:
        ending.reason = f"{type(error).__name__}: {error}"
        raise
