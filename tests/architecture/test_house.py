"""The house as docs/design.md draws it: who may import whom, and how large a room may grow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "harness"

# A module imports only from floors above its own, or from its own package.
FLOORS = [
    ("cgroups", "errors", "files", "units"),
    ("model",),
    ("catalog_pipelines",),
    ("catalog", "layout"),
    ("config",),
    ("plan",),
    ("jobs",),
    ("runtime",),
    ("comm",),
    ("datasets",),
    ("pipelines",),
    ("workloads",),
    ("analysis",),
    ("report",),
    ("cli",),
]
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names}
HALVES = {
    "login": {"config", "plan", "jobs"},
    "compute": {"runtime", "comm", "datasets", "pipelines", "workloads"},
    "analysis": {"analysis", "report"},
}
FRAMEWORKS = {"tensorflow", "keras", "torch", "torchvision", "horovod", "mpi4py"}
FRAMEWORK_ROOMS = {"comm", "pipelines", "workloads"}
ANALYSIS_LIBRARIES = {"pandas", "pyarrow", "matplotlib", "scipy", "plotly"}
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FUNCTION = 60
LONGEST_MODULE = 350


def room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def for_types_only(tree: ast.AST) -> set[ast.AST]:
    """What stands under ``if TYPE_CHECKING:`` and never runs."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }


def imports(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    never_run = for_types_only(tree)
    for node in ast.walk(tree):
        if node in never_run:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write absolute imports"
            yield node.lineno, node.module or ""
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def half(name: str) -> str | None:
    return next((half for half, rooms in HALVES.items() if name in rooms), None)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_only_from_floors_above(path: Path) -> None:
    own = room(path)
    wrong = []
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "harness" or len(parts) < 2 or own in ("__init__", "__main__"):
            continue
        other = parts[1]
        if other == own or other == "__version__":
            continue
        if FLOOR_OF[other] >= FLOOR_OF[own]:
            wrong.append(f"{path}:{line}: {own} imports {other}, which stands below it")
        elif half(own) and half(other) and half(own) != half(other):
            wrong.append(f"{path}:{line}: the {half(own)} side imports the {half(other)} side; they meet only at files")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    own = room(path)
    engine = path.parent.name == "runtime" and path.name.startswith("engine_")
    wrong = []
    for line, name in imports(path):
        top = name.split(".")[0]
        if top in FRAMEWORKS and own not in FRAMEWORK_ROOMS and not engine:
            wrong.append(f"{path}:{line}: {own} imports {top}")
        if top in ANALYSIS_LIBRARIES and half(own) != "analysis":
            wrong.append(f"{path}:{line}: {own} imports {top}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_can_be_held_in_mind(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST_MODULE, f"{path} has {text.count(chr(10))} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{path}:{node.lineno}: {node.name} has {length} lines"


def test_the_floors_name_every_room() -> None:
    rooms = {room(p) for p in MODULES} - {"__init__", "__main__"}
    assert rooms == set(FLOOR_OF)
