#!/usr/bin/env python3
"""Fill in the numbers that docs take from thresholds.toml; with --check say which are out of date and exit with 1.

A number stands between two markers, in percent where the text between them has a percent sign:

    <!-- threshold: comparison.smallest_ratio -->1 %<!-- /threshold -->
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rackscope.analysis.thresholds import packaged_thresholds

ROOT = Path(__file__).parent.parent
_MARKED = re.compile(r"(<!-- threshold: (\S+) -->)(.*?)(<!-- /threshold -->)")


def filled(text: str) -> str:
    """The text with every marked number as it is in thresholds.toml. Raises RackscopeError for an unknown name."""

    def number(match: re.Match[str]) -> str:
        value = packaged_thresholds().limit(match[2])
        return f"{match[1]}{f'{100 * value:g} %' if '%' in match[3] else f'{value:g}'}{match[4]}"

    return _MARKED.sub(number, text)


def main(arguments: list[str]) -> int:
    """Fill in all pages of docs, or check them."""
    stale = []
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            stale.append(page.relative_to(ROOT))
            if "--check" not in arguments:
                page.write_text(new, encoding="utf-8")
    for page in stale:
        print(f"{page}: {'out of date, run tools/docs_numbers.py' if '--check' in arguments else 'filled in'}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
