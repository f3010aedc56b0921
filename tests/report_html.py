"""Reads a report as a browser would, strictly: what is open must be closed, in order."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class Document(HTMLParser):
    """Elements, their attributes, and the text that people read."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.problems: list[str] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.problems.append(f"<{tag}> repeats an attribute at {self.getpos()}")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self._open[-1:] or 'nothing'} at {self.getpos()}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts[-1] += data
        elif not self._open or self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """All words, single-spaced."""
        return " ".join(" ".join(self.words).split())

    @property
    def identifiers(self) -> list[str]:
        """Every ``id``, in order."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def data(self) -> dict[str, Any]:
        """What the charts are drawn from."""
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found

    def panel(self, identifier: str) -> dict[str, Any]:
        """The data of one panel over time."""
        return next(panel for panel in self.data["panels"] if panel["id"] == identifier)

    def series(self, identifier: str, label: str) -> dict[str, Any]:
        """The data of one series of a panel."""
        return next(series for series in self.panel(identifier)["series"] if series["label"] == label)
