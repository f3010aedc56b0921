"""What a processor's description says, by rules that hold for names never seen: no table of models."""

from __future__ import annotations

import re
from dataclasses import dataclass

_AMD = re.compile(r"\b(amd|epyc|opteron|ryzen|athlon|phenom)\b", re.IGNORECASE)
_ARM = re.compile(r"\b(arm|neoverse|cortex|ampere|altra|graviton|kunpeng|thunderx|grace|cobalt)\w*\b", re.IGNORECASE)
_SERVER_LINE = re.compile(r"\b(xeon|opteron|epyc|neoverse|altra|[exlw]\d?-?\d{4})", re.IGNORECASE)
#: Lower power by the makers' own letters: L5640, E5-2650L v3, 2376 HE, 4164EE, 8376HL, 9654... T and U of small ones.
_LOW_POWER = re.compile(r"\bl\d{4}\b|\d{4}h?l\b|\d{4}l ?v\d|\d{4} ?(he|ee)\b|\d{4}[tu]\b", re.IGNORECASE)
#: Higher power: X5670, W5590, 8384 SE, 8368Q, 9575F, 6226R.
_HIGH_POWER = re.compile(r"\b[xw]\d{4}\b|\d{4} ?se\b|\d{4}[qfhr]\b", re.IGNORECASE)
_NOISE = re.compile(
    r"\(.*?\)|®|™|\b\d+-core\b|\b(single|dual|two|four|quad|six|eight|ten|twelve)-core\b"
    r"|\b(processors?|cpu|series|intel|amd)\b|,.*",
    re.IGNORECASE,
)
#: A guest that shows only its clock: the clock is then all that tells such processors apart.
_ONLY_CLOCK = re.compile(r"^\s*(intel)?\s*xeon\s*cpu\s*@", re.IGNORECASE)


@dataclass(frozen=True)
class ProcessorName:
    """What can be read off a description. ``model`` is the same for spellings of one processor."""

    model: str
    amd: bool
    arm: bool
    server_line: bool
    low_power: bool
    high_power: bool


def parse_processor_name(description: str) -> ProcessorName:
    """Read ``description``, such as ``Intel(R) Xeon(R) CPU E5-2670 v2 @ 2.50GHz|board`` or ``Xeon L5420``."""
    own = re.sub(r"\((R|TM|C)\)", " ", description.split("|", maxsplit=1)[0], flags=re.IGNORECASE)
    if not _ONLY_CLOCK.match(own):
        own = own.split("@", maxsplit=1)[0]
    words = " ".join(_NOISE.sub(" ", own).lower().split())
    words = re.sub(r"(?<=[\dl]) (v\d|he|ee|se)\b", r"\1", words)
    return ProcessorName(
        model=words.removeprefix("xeon ") or words or description.lower(),
        amd=bool(_AMD.search(own)),
        arm=bool(_ARM.search(own)),
        server_line=bool(_SERVER_LINE.search(own)),
        low_power=bool(_LOW_POWER.search(words)),
        high_power=bool(_HIGH_POWER.search(words)),
    )
