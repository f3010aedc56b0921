"""Files that people write, checked by pydantic: from the first thing that is wrong to one line with file and key.

Validators raise ``fault(...)``. Types are plain dataclasses whose fields carry them (``Annotated``), so that what the
program itself constructs is not checked again.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from rackscope.errors import RackscopeError

#: For ``__pydantic_config__`` of a dataclass: a key that it does not have is a mistake.
STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
#: The type of pydantic's error for a key that a dataclass does not have.
_UNKNOWN = "unexpected_keyword_argument"
_Value = TypeVar("_Value")


def fault(what: str, advice: str, key: str = "") -> PydanticCustomError:
    """What is wrong with a value (of its member ``key``, if given), and what to write instead."""
    return PydanticCustomError("fault", "{what}", {"what": what, "advice": advice, "key": key})


def at(key: str, make: Callable[[], _Value]) -> _Value:
    """What ``make`` gives; a fault that it raises is said of the member ``key``."""
    try:
        return make()
    except PydanticCustomError as error:
        said = error.context or {}
        raise fault(said["what"], said["advice"], key) from None


@dataclass(frozen=True)
class Checker:
    """How a kind of file is checked: its error, the keys of each table, and what to write where a key is missing."""

    error: Callable[[str, str], RackscopeError]
    #: By the table's name; the empty one is the file itself.
    keys: Mapping[str, Sequence[str]]
    missing: Mapping[str, str] = field(default_factory=dict)

    def toml(self, text: str, file: str) -> dict[str, Any]:
        """The content of a TOML file. Raises ``error``."""
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise self.error(f"{file} is not TOML: {error}", "Fix the syntax there.") from error

    def check(
        self, adapter: TypeAdapter[_Value], content: object, file: str, context: Mapping[str, Any] | None = None
    ) -> _Value:
        """``content`` as what ``adapter`` makes of it. Raises ``error`` with file, key and what was expected."""
        try:
            return adapter.validate_python(content, context=context)
        except ValidationError as error:
            found = error.errors(include_url=False)
        # An unknown key is as a rule the missing one, misspelt.
        first = next((one for one in found if one["type"] == _UNKNOWN), found[0])
        what, advice, key = self._said(first)
        where = ".".join(part for part in (_place(first["loc"], content), key) if part)
        raise self.error(f"{file}: {where} {what}" if where else f"{file} {what}", advice)

    def unknown(self, table: str, key: str) -> PydanticCustomError:
        """The fault of a key that ``table`` does not have."""
        near = difflib.get_close_matches(key, self.keys[table], n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        return fault("is not a known key", f"{hint}Keys: {', '.join(self.keys[table])}.", key)

    def _said(self, found: ErrorDetails) -> tuple[str, str, str]:
        context, names = found.get("ctx", {}), [part for part in found["loc"] if isinstance(part, str)]
        name = names[-1] if names else ""
        if found["type"] == _UNKNOWN:
            context = self.unknown(names[-2] if len(names) > 1 else "", name).context or {}
            return context["what"], context["advice"], ""
        if found["type"] == "fault":
            return context["what"], context["advice"], context["key"]
        if found["type"] == "string_type":
            return f"is {found['input']!r}, expected text", f'Write {name} = "...".', ""
        said = "is missing" if found["type"] == "missing" else "is not a table of keys and values"
        return said, self.missing.get(name, f'Write {name} = "...".'), ""


def _place(location: Sequence[str | int], content: Any) -> str:
    """``server "small".measured 1.watts``: entries of a list by their names, where they have one."""
    text = ""
    for part in location:
        if isinstance(part, str):
            text += f".{part}" if text else part
            content = content.get(part) if isinstance(content, dict) else None
        else:
            content = content[part] if isinstance(content, list) else None
            name = content.get("name") if isinstance(content, dict) else None
            text += f' "{name}"' if isinstance(name, str) and name.strip() else f" {part + 1}"
    return text
