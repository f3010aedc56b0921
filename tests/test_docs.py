"""The pages of ``docs`` point at what exists."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rackscope.errors import SystemUnderTestError
from rackscope.systems import resolve_knobs
from rackscope.systems.acquire import acquire_by_name
from rackscope.systems.base import Launch
from rackscope.workloads import plan

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCE = re.compile(r"```.*?```", re.DOTALL)
SOURCE = re.compile(r"`((?:python/rackscope|crates|tests|tools|fuzz|benches|docs)/[\w./-]+)`")


def anchors(page: Path) -> set[str]:
    """The names that headings are linked by."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    if page.name.startswith(("CHANGELOG", "adding-")):
        return  # what was, and what a reader is to write
    named = set(SOURCE.findall(page.read_text(encoding="utf-8")))
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_architecture_is_read_in_one_sitting() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= 8192


def examples(page: str) -> list[str]:
    """The blocks of Python in a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)


def run_module(source: str) -> ModuleType:
    module = ModuleType("example")
    exec(compile(source, "example.py", "exec"), vars(module))
    return module


def test_the_system_of_the_example_starts_serves_and_stops(tmp_path: Path) -> None:
    """Redis stands in for the program of the example, which takes the same options but one."""
    source = examples("reference/adding-a-system.md")[0].replace("--server-threads", "--io-threads")
    system = run_module(source).SYSTEM
    assert resolve_knobs(system, {}, tuned=True, cores=(0,)).values["threads"] == "1"
    redis = replace(acquire_by_name("redis", fetch=True), name=system.name)
    running = system.start(redis, Launch(tmp_path, (0,), {"threads": "1", "connections": "100"}))
    try:
        running.wait_ready()
        assert running.statistics()["redis_mode"] == "standalone"
    finally:
        running.stop()
    with pytest.raises(SystemUnderTestError):
        running.check_alive()


def test_the_workload_of_the_example_becomes_a_plan() -> None:
    (workload,) = run_module(examples("reference/adding-a-system.md")[1]).WORKLOADS
    planned = plan(
        workload, {"value_size": "2k"}, operations=frozenset({"read", "update"}), protocols=("resp",), system="redis"
    )
    assert planned.values == {"kind": "fixed", "bytes": 2048}
    assert planned.stages[0].operations == {"read": 0.7, "update": 0.3}
