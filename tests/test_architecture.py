"""The house: what docs/ARCHITECTURE.md promises of files, names and packages."""

import ast
import re
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]
PACKAGES = ("config", "crawler", "scheduler", "storage")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The files in a wheel of the project."""
    directory = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(directory), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        return frozenset(archive.namelist())


def test_the_architecture_page_names_every_module() -> None:
    page = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    words = {re.split(r"[/.]", quoted)[-1] for quoted in re.findall(r"`([\w/.]+?)(?:\.py)?`", page)}
    modules = {path.stem for path in SOURCES} - {"__init__", "__main__"}
    assert modules - words == set()


def test_the_glossary_is_in_alphabetical_order() -> None:
    page = (ROOT / "docs/GLOSSARY.md").read_text(encoding="utf-8")
    nouns = re.findall(r"^\*\*(.+?)\*\* – ", page, re.MULTILINE)
    assert len(nouns) > 50
    assert nouns == sorted(nouns)


def test_no_module_is_a_drawer_for_leftovers() -> None:
    drawers = {"base", "common", "helpers", "misc", "utils"}
    assert [name(path) for path in SOURCES if path.stem in drawers] == []


def test_no_class_is_a_manager_or_a_base() -> None:
    classes = (
        node.name
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [each for each in classes if re.search(r"^Base[A-Z]|Manager$", each)] == []


def test_no_file_is_longer_than_a_reader_bears() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


def test_every_dataclass_has_slots() -> None:
    loose = [
        f"{name(path)}: {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator.startswith("dataclass") and "slots=True" not in decorator
    ]
    assert loose == []


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel: frozenset[str]) -> None:
    tops = {file.split("/")[0] for file in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_holds_what_the_packages_read(wheel: frozenset[str]) -> None:
    data = {
        name(path)
        for package in PACKAGES
        for ending in ("sql", "html", "css")
        for path in (ROOT / package).rglob(f"*.{ending}")
    }
    typed = {f"{package}/py.typed" for package in PACKAGES}
    assert data
    assert data | typed | {"config/defaults.toml", "config/example-sites.txt"} <= wheel


def test_every_source_file_is_in_the_wheel(wheel: frozenset[str]) -> None:
    assert {name(path) for path in SOURCES} <= wheel
