"""Which file of a crate names what another file defines: a simple reader of Rust text.

It follows `crate::`, `self::`, `super::` and child modules, in `use` trees and in plain paths. A name that a module
re-exports is followed to the file that defines it, so a re-export itself is no arrow. Tests are left out.
"""

from __future__ import annotations

import re
from pathlib import Path

_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#+)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']+|[^\'\\])\'', re.DOTALL)
_TESTS = re.compile(
    r"#\[cfg\((?:all\()?(?:test|loom)[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*?\n\}", re.DOTALL
)
_TEST_ITEMS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?(?:mod|use) [^;{]*;")
_USE = re.compile(r"(?:^|\n)[ \t]*(pub(?:\([^)]*\))? )?use ([^;]+);")
_PATH = re.compile(r"(?<![\w:.$])((?:\w+::)+\w+)")
_VISIBILITY = re.compile(r"pub\([^)]*\) ")
_TEST_FILES = {"tests", "testing", "models"}

Module = tuple[str, ...]


def _leaves(tree: str) -> list[tuple[str, str]]:
    """The full paths that a `use` tree names, each with the name it gets here."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = tree.partition(" as ")
        return [(path.strip(), (alias or path.split("::")[-1]).strip())]
    head, _, rest = tree.partition("{")
    inner = rest.rsplit("}", 1)[0]
    parts, depth, current = [], 0, ""
    for character in inner:
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [
        (head.strip() + path, name or path)
        for part in [*parts, current]
        if part.strip()
        for path, name in _leaves(part)
    ]


class Crate:
    """The modules of one crate and the arrows between their files."""

    def __init__(self, source: Path) -> None:
        self.modules: dict[Module, str] = {}
        for path in sorted(source.rglob("*.rs")):
            parts = path.relative_to(source).with_suffix("").parts
            if _TEST_FILES & set(parts):
                continue
            if parts[-1] in ("mod", "lib", "main") and parts != ("main",):
                parts = parts[:-1]
            if parts == ("main",) and not (source / "lib.rs").exists():
                parts = ()
            text = _VISIBILITY.sub("pub ", _NOISE.sub('""', path.read_text()))
            self.modules[parts] = _TEST_ITEMS.sub("", _TESTS.sub("", text))
        self.exports: dict[Module, dict[str, Module]] = {}
        for module, text in self.modules.items():
            self.exports[module] = {
                name: full
                for public, tree in _USE.findall(text)
                if public
                for path, name in _leaves(tree)
                if (full := self._absolute(module, path)) is not None
            }

    def _absolute(self, module: Module, path: str) -> Module | None:
        segments = path.split("::")
        if segments[0] == "crate":
            return tuple(segments[1:])
        base = module
        if segments[0] in ("self", "super"):
            while segments and segments[0] in ("self", "super"):
                base = base[:-1] if segments[0] == "super" else base
                segments = segments[1:]
            return base + tuple(segments)
        return base + tuple(segments) if (*base, segments[0]) in self.modules else None

    def _file(self, path: Module, depth: int = 0) -> Module:
        """The module whose file defines what ``path`` names."""
        length = max(n for n in range(len(path) + 1) if path[:n] in self.modules)
        module, rest = path[:length], path[length:]
        exported = self.exports[module]
        if rest and rest[0] in exported and depth < 8:
            return self._file(exported[rest[0]] + rest[1:], depth + 1)
        return module

    def arrows(self) -> dict[Module, set[Module]]:
        found: dict[Module, set[Module]] = {}
        for module, text in self.modules.items():
            paths: list[str] = []
            for public, tree in _USE.findall(text):
                if not public:
                    paths += [path for path, _ in _leaves(tree)]
            paths += _PATH.findall(_USE.sub("", text))
            targets = {self._file(full) for path in paths if (full := self._absolute(module, path)) is not None}
            found[module] = targets - {module}
        return found


def circles(arrows: dict[Module, set[Module]]) -> list[list[str]]:
    """The groups of modules that reach each other, each sorted by name."""

    def reached(start: Module) -> set[Module]:
        seen: set[Module] = set()
        waiting = [start]
        while waiting:
            for other in arrows.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    reach = {module: reached(module) for module in arrows}
    groups = {
        tuple(
            sorted(
                "::".join(("crate", *other)) for other in arrows if other in reach[module] and module in reach[other]
            )
        )
        for module in arrows
        if module in reach[module]
    }
    return [list(group) for group in sorted(groups)]


def circles_of(crate: Path) -> list[list[str]]:
    return circles(Crate(crate / "src").arrows())
