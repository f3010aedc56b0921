"""Memory: how much, swap, huge pages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackscope.host.tree import Tree, integer, keyed_lines, kibibytes

_HUGE = "sys/kernel/mm/transparent_hugepage"


@dataclass(frozen=True)
class Memory:
    """What ``/proc/meminfo`` and the huge page settings say, in bytes."""

    total_bytes: int | None
    available_bytes: int | None
    swap_total_bytes: int | None
    swap_free_bytes: int | None
    huge_page_bytes: int | None
    huge_pages_total: int | None
    huge_pages_free: int | None
    transparent_huge_pages: str | None
    transparent_huge_page_defragmentation: str | None


def read_memory(tree: Tree) -> Memory:
    """Read ``/proc/meminfo`` and ``/sys/kernel/mm``."""
    info = keyed_lines(tree.text("proc/meminfo"))
    return Memory(
        total_bytes=kibibytes(info.get("MemTotal")),
        available_bytes=kibibytes(info.get("MemAvailable")),
        swap_total_bytes=kibibytes(info.get("SwapTotal")),
        swap_free_bytes=kibibytes(info.get("SwapFree")),
        huge_page_bytes=kibibytes(info.get("Hugepagesize")),
        huge_pages_total=integer(info.get("HugePages_Total")),
        huge_pages_free=integer(info.get("HugePages_Free")),
        transparent_huge_pages=_chosen(tree.text(f"{_HUGE}/enabled")),
        transparent_huge_page_defragmentation=_chosen(tree.text(f"{_HUGE}/defrag")),
    )


def _chosen(text: str | None) -> str | None:
    """``madvise`` of ``always [madvise] never``."""
    match = re.search(r"\[([^]]+)]", text or "")
    return match[1] if match else None
