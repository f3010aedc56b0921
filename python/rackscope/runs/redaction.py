"""Passwords, tokens and SNMP communities, taken out of what is written to disk. Pure.

They are told by their names: ``--password X``, ``requirepass=X``, ``API_TOKEN=X``, ``community=X``,
``Authorization: Bearer X``, ``redis://user:X@host``, and the short options of a few programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

HIDDEN = "***"
#: A name is that of a secret when it ends so: ``auth_errors`` and ``token_bucket`` are none.
_ENDS = (
    r"(?:pass(?:word|wd|phrase|code)|requirepass|masterauth|secret|token|credentials?|community"
    r"|(?:api|access|private|secret|signing|encryption)[-_.]?key|(?<![a-z])(?:pass|pwd|auth))"
)
_NAME = rf"(?i:(?<![A-Za-z0-9])[A-Za-z0-9_.-]*?{_ENDS})"
_SECRET_NAME = re.compile(rf"^-{{0,2}}{_NAME}$")
#: A quoted value, or everything up to what ends a value in a command, a URL's query or a list of options.
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)"
_TEXT = (
    # NAME=VALUE, --name=VALUE
    re.compile(rf"({_NAME}=){_VALUE}"),
    # --name VALUE, and the lines of a configuration
    re.compile(rf"(--{_NAME}[ \t]+)(?!-){_VALUE}"),
    re.compile(rf"(\b(?i:requirepass|masterauth)[ \t]+){_VALUE}"),
    # "name": "VALUE", name: VALUE
    re.compile(rf"((?i:(?<![A-Za-z0-9])[A-Za-z0-9_.-]*?(?:password|passwd|passphrase|secret|token))\"?:\s*){_VALUE}"),
    re.compile(r"((?i:\b(?:bearer|basic|digest)) +)[A-Za-z0-9+/_.=~-]{6,}"),
    re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*:)[^\s/@]+(?=@)"),
)
#: Programs with an option of one letter that takes a secret.
_SHORT_OPTIONS = {
    "redis-cli": "-a",
    "redis-benchmark": "-a",
    "memtier_benchmark": "-a",
    "sshpass": "-p",
    "curl": "-u",
}


def redact(value: Any) -> Any:
    """``value`` (text, or JSON of it) without its secrets: each is ``***``. What has none is returned as it is."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {name: _hide(one) if _is_secret(str(name)) else redact(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(one, str) for one in value):
            return type(value)(redact_command(value))
        return type(value)(redact(one) for one in value)
    return value


def redact_text(text: str) -> str:
    """One text, such as a line of a log."""
    for pattern in _TEXT:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def redact_command(arguments: Sequence[str]) -> list[str]:
    """A command: what an option takes may be the next argument, and may hold spaces."""
    kept: list[str] = []
    short = ""
    hide_next = False
    for argument in arguments:
        if hide_next and not argument.startswith("--"):
            kept.append(HIDDEN)
            hide_next = False
            continue
        hide_next = False
        short = _SHORT_OPTIONS.get(PurePath(argument).name, short)
        name, sign, _ = argument.partition("=")
        if sign and _is_secret(name):
            kept.append(f"{name}={HIDDEN}")
        elif short and argument.startswith(short) and not argument.startswith("--"):
            hide_next = argument == short
            kept.append(short if hide_next else f"{short}{HIDDEN}")
        else:
            hide_next = _is_secret(argument) and (argument.startswith("-") or argument in ("requirepass", "masterauth"))
            kept.append(argument if hide_next else _redact_options(argument))
    return kept


def _redact_options(argument: str) -> str:
    # One argument with options of its own, separated by commas, may hold spaces: snmp:192.0.2.7,community=my own.
    parts = argument.split(",")
    if len(parts) > 1:
        argument = ",".join(
            f"{part.partition('=')[0]}={HIDDEN}" if "=" in part and _is_secret(part.partition("=")[0]) else part
            for part in parts
        )
    return redact_text(argument)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.match(name) is not None


def _hide(value: Any) -> Any:
    """What stands under the name of a secret: its text, or the value and default of a setting."""
    if isinstance(value, str):
        return HIDDEN if value else value
    if isinstance(value, dict):
        return {name: _hide(one) if name in ("value", "default") else redact(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_hide(one) for one in value)
    return value
