"""Programs of others that rackscope runs, as declared in packages.toml, and how to tell their version."""

from __future__ import annotations

import functools
import re
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path(__file__).with_name("packages.toml")
_VERSION_SECONDS = 20.0


@dataclass(frozen=True)
class Tool:
    """One program, the distribution's packages that hold it (none: only PATH may), and how it tells its version."""

    name: str
    program: str
    version_pattern: str
    description: str
    packages: tuple[str, ...] = ()
    version_option: str = "--version"

    def ask_version(self, program: Path, environment: Mapping[str, str]) -> str:
        """The version that ``program`` prints. Raises ValueError with what it did instead."""
        try:
            result = subprocess.run(
                [str(program), self.version_option],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_VERSION_SECONDS,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **environment},
                check=False,
            )
        except OSError as error:
            raise ValueError(f"{program} cannot be run: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            asked = f"{program} {self.version_option}"
            raise ValueError(f"'{asked}' did not tell the version within {_VERSION_SECONDS:g} s") from error
        text = (result.stdout + result.stderr).decode("utf-8", errors="replace")
        match = re.search(self.version_pattern, text)
        # Part of a path in the cache, so of plain characters only.
        version = re.sub(r"[^\w.+~-]", "", match[1]).strip(".") if match else ""
        if not version:
            said = " ".join(text.split())[:200] or "nothing"
            raise ValueError(f"{program} did not tell its version but said, to {self.version_option}: {said}")
        return version


@functools.cache
def tools() -> Mapping[str, Tool]:
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {name: Tool(name, **{**entry, "packages": tuple(entry["packages"])}) for name, entry in table.items()}
