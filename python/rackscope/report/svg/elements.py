"""SVG elements as text, escaped here and nowhere else."""

from __future__ import annotations

import re

#: What XML 1.0 forbids even when escaped (section 2.2), and what only confuses.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    """``text`` as it stands in an element or between double quotes."""
    kept = _FORBIDDEN.sub("�", text)
    return kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def element(tag: str, *children: str, **attributes: str | float | None) -> str:
    """An element around elements; ``_`` in a name is ``-``, ``None`` is left out, numbers are to a tenth of a pixel."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>"


def text(content: str, x: float, y: float, *, class_: str, anchor: str = "start", rotate: float = 0) -> str:
    """A line of text whose baseline is at ``y``."""
    turn = f"rotate({number(rotate)} {number(x)} {number(y)})" if rotate else None
    return element("text", escape(content), x=x, y=y, class_=class_, text_anchor=anchor, transform=turn)


def tooltip(content: str) -> str:
    """What a browser shows over the element that this is the first child of."""
    return element("title", escape(content))


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: list[tuple[float, float]], *, closed: bool = False) -> str:
    """The ``d`` of a path through ``points``."""
    drawn = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return f"M{drawn}{'Z' if closed else ''}"


def number(value: float) -> str:
    """To a tenth, without a needless ``.0``."""
    return f"{round(value, 1) + 0:g}" if abs(value) < 1e5 else f"{value:.0f}"
