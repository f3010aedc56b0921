"""The year in which a processor's generation came to servers, read off its name.

What a core does in one cycle, and what a second thread brings it, is a habit of the generation, and makers write the
generation into the name: the second digit of Xeon numbers, the last of EPYC's, the version of Xeon E5, the core of
Arm's. Hypervisors that hide the name write the code name. The rules hold for names never seen, of these generations.
"""

from __future__ import annotations

import re

#: Years of the generations by the digit that names them (makers' announcements).
_XEON = {"1": 2017.0, "2": 2019.0, "3": 2021.0, "4": 2023.0, "5": 2024.0}
_EPYC = {"1": 2017.0, "2": 2019.0, "3": 2021.0, "4": 2023.0, "5": 2024.8}
_XEON_VERSION = {"": 2012.0, "2": 2013.0, "3": 2014.0, "4": 2016.0, "5": 2016.0, "6": 2017.0}
_XEON_6 = 2024.7
_ARM = {"a72": 2016.0, "n1": 2019.0, "v1": 2021.0, "n2": 2022.0, "v2": 2023.0, "n3": 2025.0, "v3": 2025.0}
#: As hypervisors write them: "Intel Core Processor (Broadwell, no TSX, IBRS)", "AMD EPYC-Milan Processor".
_CODE_NAMES = {
    "sandybridge": 2012.0,
    "ivybridge": 2013.0,
    "haswell": 2014.0,
    "broadwell": 2016.0,
    "skylake": 2017.0,
    "cascadelake": 2019.0,
    "cooperlake": 2020.0,
    "icelake": 2021.0,
    "sapphirerapids": 2023.0,
    "emeraldrapids": 2024.0,
    "graniterapids": _XEON_6,
    "sierraforest": _XEON_6,
    "naples": 2017.0,
    "rome": 2019.0,
    "milan": 2021.0,
    "genoa": 2023.0,
    "bergamo": 2023.0,
    "siena": 2023.0,
    "turin": 2024.8,
}
_NEOVERSE = re.compile(r"\b(?:neoverse|cortex)[- ]([anv]\d+)")
_EPYC_NUMBER = re.compile(r"\bepyc\s+\d[\da-z]\d(\d)")
_XEON_E = re.compile(r"\be[357]-\d{4}\w*(?:\s*v(\d))?")
_XEON_6_NUMBER = re.compile(r"\b6[579]\d\d[pe]\b")
_XEON_NUMBER = re.compile(r"\b(?:platinum|gold|silver|bronze|w|e)[- ]\d(\d)\d\d")


def generation_year(description: str) -> float | None:
    """The year of the generation of ``description``, with a fraction; ``None`` where the name does not say it."""
    name = re.sub(r"\((r|tm|c)\)", " ", description.split("|", maxsplit=1)[0].lower())
    together = re.sub(r"[\s_-]", "", name)
    for code, year in _CODE_NAMES.items():
        if code in together:
            return year
    if found := _NEOVERSE.search(name):
        return _ARM.get(found[1])
    if found := _EPYC_NUMBER.search(name):
        return _EPYC.get(found[1])
    if found := _XEON_E.search(name):
        return _XEON_VERSION.get(found[1] or "")
    if _XEON_6_NUMBER.search(name):
        return _XEON_6
    if found := _XEON_NUMBER.search(name):
        return _XEON.get(found[1])
    return None
