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
#: From the ground up. Rooms on one floor do not import each other.
FLOORS = (
    ("errors", "units", "metrics", "mounts", "network_namespace", "process_identity", "_native", "__version__"),
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


def test_rooms_import_only_from_below() -> None:
    wrong = []
    for path in SOURCES:
        room = room_of(path)
        assert room in FLOOR_OF, f"{path} is in {room}, which has no floor"
        for other in sorted({name.split(".")[1] for name in imported_names(path)} - {room}):
            if FLOOR_OF.get(other, len(FLOORS)) >= FLOOR_OF[room]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports rackscope.{other}, which is not below {room}")
    assert not wrong, "\n".join(wrong)


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
    found = [" -> ".join(reversed(circle)) for circle in circles]
    assert not found, "files import each other in circles:\n" + "\n".join(found)


def test_pure_rooms_touch_nothing() -> None:
    for path in SOURCES:
        if room_of(path) in PURE_ROOMS:
            names = {name.split(".")[0] for _, _, name in imports_of(path)}
            assert not names & IMPURE, f"{path} is in a pure room and imports {sorted(names & IMPURE)}"


#: Those that are filled step by step, by what they are asked.
GROWING = {"SloSearch"}


def test_values_of_pure_rooms_and_steps_of_undoing_do_not_change() -> None:
    """What one part was given another may hold too, in a set or as a key: nobody changes it under the others."""
    for path in SOURCES:
        if room_of(path) not in (*PURE_ROOMS, "squeezes"):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                decorators = [ast.unparse(one) for one in node.decorator_list]
                loose = [one for one in decorators if one.startswith("dataclass") and "frozen=True" not in one]
                assert not loose or node.name in GROWING, f"{path}: {node.name} is a dataclass that is not frozen"


def imports_of(path: Path) -> list[tuple[int, bool, str]]:
    """Line, whether it is in a function, and the module, of each import; those for types only are left out."""
    found: list[tuple[int, bool, str]] = []

    def visit(node: ast.AST, in_function: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.extend((child.lineno, in_function, alias.name) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
                names = [f"{child.module}.{alias.name}" for alias in child.names]
                found.extend(
                    (child.lineno, in_function, name if name in MODULES else child.module or "") for name in names
                )
            elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
                visit(child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(tree_of(path), False)
    return found


@cache
def imported_with(module: str) -> frozenset[str]:
    """What is imported before the first line of ``module`` that does something, itself and its packages included."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        parts = waiting.pop().split(".")
        for name in {".".join(parts[: end + 1]) for end in range(len(parts))} - seen:
            seen.add(name)
            if name in MODULES:
                waiting += [other for _, inside, other in imports_of(MODULES[name]) if not inside]
    return frozenset(seen)


def test_imports_in_functions_save_something() -> None:
    """They are there for what is slow to import, or may be missing: not for what is imported in any case."""
    useless = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for module, path in MODULES.items()
        for line, inside, name in imports_of(path)
        if inside and name in imported_with(module) and not f"{module}.".startswith(f"{name}.")
    ]
    assert not useless, "move to the head of the file:\n" + "\n".join(useless)


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
