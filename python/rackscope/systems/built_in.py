"""Systems that come with rackscope: found beside the package, never fetched."""

from __future__ import annotations

from rackscope.errors import SystemUnderTestError
from rackscope.systems.base import Acquired
from rackscope.systems.process import find_companion
from rackscope.systems.tools import Tool


def acquire_built_in(tool: Tool) -> Acquired:
    """The program that came with rackscope. Raises SystemUnderTestError when it is missing or does not run."""
    program = find_companion(tool.program)
    try:
        version = tool.ask_version(program, {})
    except ValueError as error:
        raise SystemUnderTestError(f"{tool.description} does not run: {error}", "Build it again.") from error
    return Acquired(tool.name, program, version, "built in")
