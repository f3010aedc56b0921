"""The floors of ARCHITECTURE.md: a room imports only from floors below it, and files do not import in circles."""

from __future__ import annotations

import ast
import graphlib
from functools import cache
from pathlib import Path

import pytest

from rust_arrows import circles_of

SOURCE = Path(__file__).parent.parent / "python"
PACKAGE = SOURCE / "rackscope"
CRATES = SOURCE.parent / "crates"
#: Their files still import each other in circles.
TANGLED_CRATES = {"cached"}
#: From the ground up. Rooms on one floor do not import each other.
FLOORS = (
    ("errors", "units", "metrics", "network_namespace", "process_identity", "_native", "__version__"),
    ("host", "systems", "workloads", "drivers", "squeezes", "analysis"),
    ("runs", "models"),
    ("studies", "advice", "report"),
    ("papers", "view"),
    ("api",),
    ("cli",),
)
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}
PURE_ROOMS = ("analysis", "models", "workloads")
#: Modules that read files, start processes, open sockets or look at a clock.
IMPURE = {"os", "subprocess", "socket", "time", "datetime", "shutil", "tempfile", "threading", "random"}
#: Folders in which files still import each other in a circle. Remove an entry when its circles are gone.
KNOWN_CIRCLES: set[str] = set()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)
MODULES = {module_of(path): path for path in PACKAGE.rglob("*.py")}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported_names(path: Path) -> set[str]:
    """Every dotted name under ``rackscope`` that the file imports, wherever in it: in functions and for types too."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "rackscope":
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("rackscope.")}
    return names


def imported_modules(path: Path) -> set[str]:
    """The files that it imports, as modules; ``rackscope`` itself imports only what is asked of it, by name."""
    found = {name if name in MODULES else name.rpartition(".")[0] for name in imported_names(path)}
    return (found & MODULES.keys()) - {module_of(path), "rackscope"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_from_below(path: Path) -> None:
    room = room_of(path)
    assert room in FLOOR_OF, f"{path} is in {room}, which has no floor"
    for other in {name.split(".")[1] for name in imported_names(path)} - {room}:
        assert other in FLOOR_OF, f"{path} imports rackscope.{other}, which has no floor"
        assert FLOOR_OF[other] < FLOOR_OF[room], f"{room} imports {other}, which is not below it"


def test_files_do_not_import_in_circles() -> None:
    circles = []
    imports = {module: imported_modules(path) for module, path in MODULES.items()}
    while True:
        try:
            graphlib.TopologicalSorter(imports).prepare()
            break
        except graphlib.CycleError as error:
            circle = error.args[1]
            circles.append(circle)
            # graphlib lists each module before the one that imports it.
            imports[circle[1]] = imports[circle[1]] - {circle[0]}
    new = [
        " -> ".join(reversed(circle))
        for circle in circles
        if not any(str(MODULES[module].parent.relative_to(PACKAGE)) in KNOWN_CIRCLES for module in circle)
    ]
    assert not new, "files import each other in circles:\n" + "\n".join(new)


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) in PURE_ROOMS], ids=lambda p: p.name)
def test_pure_rooms_touch_nothing(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
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
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
        assert not calls, f"{path} prints in lines {calls}"


@pytest.mark.parametrize("crate", sorted(CRATES.iterdir()), ids=lambda crate: crate.name)
def test_no_circle_of_rust_files(crate: Path) -> None:
    if crate.name in TANGLED_CRATES:
        pytest.skip("its files still import each other in circles")
    assert not circles_of(crate)


def test_a_circle_of_rust_files_is_found(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "inner").mkdir(parents=True)
    (source / "lib.rs").write_text("mod inner;\nmod low;\npub use inner::Thing;\n")
    (source / "low.rs").write_text("use crate::Thing;\n")
    (source / "inner" / "mod.rs").write_text("mod child;\npub struct Thing(child::Part);\n#[cfg(test)]\nmod tests;\n")
    (source / "inner" / "child.rs").write_text("pub struct Part;\n// use super::Thing;\n")
    (source / "inner" / "tests.rs").write_text("use crate::low;\n")
    assert not circles_of(tmp_path)
    (source / "inner" / "child.rs").write_text("use {super::{Thing}, std::fmt};\npub struct Part;\n")
    assert circles_of(tmp_path) == [["crate::inner", "crate::inner::child"]]
