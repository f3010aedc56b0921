"""Thermal design power of server processors by their names, as their makers state it.

``thermal_design_power.csv`` holds what data sheets of Xeon, EPYC and Opteron say, taken from the list of CPUs that
codecarbon keeps (``cpu_power.csv``, MIT License, copyright Mila, BCG Gamma, Comet ML, Haverford College and Code Carbon
NGO); names for which that list has two values are left out. It holds no measurement.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_AMD = re.compile(r"\b(amd|epyc|opteron)\b")
_ASIDE = re.compile(
    r"\(.*?\)|\[.*?\]|®|™|@.*|,.*|\bdell sku.*|\b[\d.]+ ?[gm]hz\b"
    r"|\b(\d+|dual|quad|six|eight|ten|twelve|two|four)-core\b"
    r"|\b(intel|amd|xeon|epyc|opteron|platinum|gold|silver|bronze|processors?|cpu|series)\b"
)


def thermal_design_watts(description: str) -> float | None:
    """Watts of one chip for a description such as ``Intel(R) Xeon(R) Gold 6140 CPU @ 2.30GHz``; None if not listed."""
    text = description.split("|", maxsplit=1)[0].lower()
    maker = "amd" if _AMD.search(text) else "intel"
    return _listed().get((maker, re.sub(r"[^a-z0-9+-]", "", _ASIDE.sub(" ", text))))


@cache
def _listed() -> dict[tuple[str, str], float]:
    text = files(__package__).joinpath("thermal_design_power.csv").read_text(encoding="utf-8")
    rows = (line.split(",") for line in text.splitlines()[1:])
    return {(maker, processor): float(watts) for maker, processor, watts in rows}
