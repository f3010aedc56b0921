"""The floors of ARCHITECTURE.md: a room imports only from floors below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "rackscope"
FLOORS = {
    "cli": 4,
    "studies": 3,
    "advice": 3,
    "report": 3,
    "runs": 2,
    "models": 2,
    "host": 1,
    "systems": 1,
    "workloads": 1,
    "squeezes": 1,
    "analysis": 1,
    "errors": 0,
    "units": 0,
    "metrics": 0,
    "network_namespace": 0,
    "process_identity": 0,
    "_native": 0,
    "__version__": 0,
}
PURE_ROOMS = ("analysis", "models", "workloads")
#: Modules that read files, start processes, open sockets or look at a clock.
IMPURE = {"os", "subprocess", "socket", "time", "datetime", "shutil", "tempfile", "threading", "random"}


def room_of(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rackscope":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "rackscope" and len(parts) > 1:
                    rooms.add(parts[1])
    return rooms


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_from_below(path: Path) -> None:
    room = room_of(path)
    for other in imported_rooms(ast.parse(path.read_text())) - {room}:
        assert other in FLOORS, f"{path} imports rackscope.{other}, which is no room"
        assert FLOORS[other] < FLOORS[room], f"{room} (floor {FLOORS[room]}) imports {other} (floor {FLOORS[other]})"


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) in PURE_ROOMS], ids=lambda p: p.name)
def test_pure_rooms_touch_nothing(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names: set[str] = set()
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = {node.module.split(".")[0]}
        assert not names & IMPURE, f"{path} is in a pure room and imports {sorted(names & IMPURE)}"


def test_only_the_command_line_prints() -> None:
    for path in SOURCES:
        if room_of(path) == "cli":
            continue
        calls = [
            node.lineno
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
        assert not calls, f"{path} prints in lines {calls}"
